/* Lua values as value trees. Called by load_schema.c (defaults) and tables.c (tables.check). */
#include "script/lua_value.h"

#include "base/json.h"
#include "script/bindings.h"
#include "script/marks.h"

#include <lauxlib.h>

static int convert(lua_State *L, int index, struct arena *arena, int depth, struct value *out, struct err *err);

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_PAYLOAD_TOO_LARGE, "the value is too large");
}

static int convert_array(lua_State *L, int index, struct arena *arena, int depth, struct value *out, struct err *err)
{
    size_t count = lua_rawlen(L, index);
    *out = (struct value){.type = VALUE_ARRAY};
    out->as.array.items = arena_alloc(arena, (count ? count : 1) * sizeof(struct value));
    if (out->as.array.items == NULL)
        return out_of_memory(err);
    for (; out->as.array.count < count; out->as.array.count++) {
        lua_rawgeti(L, index, (lua_Integer)out->as.array.count + 1);
        int status = convert(L, lua_gettop(L), arena, depth, &out->as.array.items[out->as.array.count], err);
        lua_pop(L, 1);
        if (status != 0)
            return -1;
    }
    return 0;
}

static int convert_object(lua_State *L, int index, struct arena *arena, int depth, struct value *out, struct err *err)
{
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    *out = (struct value){.type = VALUE_OBJECT};
    out->as.object.members = arena_alloc(arena, (count ? count : 1) * sizeof(struct value_member));
    if (out->as.object.members == NULL)
        return out_of_memory(err);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        struct value_member *member = &out->as.object.members[out->as.object.count++];
        int status;
        if (lua_type(L, -2) != LUA_TSTRING) {
            status = err_set(err, ERR_INVALID_REQUEST, "a table has keys that are no strings");
        } else {
            const char *name = lua_tolstring(L, -2, &member->name_len);
            member->name = arena_strndup(arena, name, member->name_len);
            status = member->name == NULL ? out_of_memory(err)
                                          : convert(L, lua_gettop(L), arena, depth, &member->value, err);
        }
        if (status != 0) {
            lua_pop(L, 2);
            return -1;
        }
    }
    return 0;
}

static int convert(lua_State *L, int index, struct arena *arena, int depth, struct value *out, struct err *err)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        *out = (struct value){.type = VALUE_NULL};
        return 0;
    case LUA_TBOOLEAN:
        *out = (struct value){.type = VALUE_BOOL, .as.boolean = lua_toboolean(L, index)};
        return 0;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            *out = (struct value){.type = VALUE_INT, .as.integer = lua_tointeger(L, index)};
        else
            *out = (struct value){.type = VALUE_DOUBLE, .as.number = lua_tonumber(L, index)};
        return 0;
    case LUA_TSTRING: {
        size_t len;
        const char *text = lua_tolstring(L, index, &len);
        *out = (struct value){.type = VALUE_STRING, .as.string = {arena_strndup(arena, text, len), len}};
        return out->as.string.text != NULL ? 0 : out_of_memory(err);
    }
    case LUA_TTABLE:
        if (depth >= JSON_DEPTH_MAX || !lua_checkstack(L, 8))
            return err_set(err, ERR_INVALID_REQUEST, "a table contains itself, or is nested over %d deep",
                           JSON_DEPTH_MAX);
        lua_thaw(L, index);
        return lua_is_array(L, index) ? convert_array(L, index, arena, depth + 1, out, err)
                                      : convert_object(L, index, arena, depth + 1, out, err);
    default:
        if (lua_is_null(L, index)) {
            *out = (struct value){.type = VALUE_NULL};
            return 0;
        }
        return err_set(err, ERR_INVALID_REQUEST, "a %s is not JSON", luaL_typename(L, index));
    }
}

int lua_to_value(lua_State *L, int index, struct arena *arena, struct value *out, struct err *err)
{
    if (!lua_checkstack(L, 8))
        return out_of_memory(err);
    return convert(L, lua_absindex(L, index), arena, 0, out, err);
}
