/* Reads config/server.lua into plain values; see the header. Called by server/config. */
#include "script/config_file.h"

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_DEPTH_MAX = 8, CONFIG_STEPS_MAX = 1000000, CONFIG_MEMORY_MAX_BYTES = 8 * 1024 * 1024 };

static void *config_alloc(void *used_ptr, void *block, size_t old_size, size_t new_size)
{
    size_t *used = used_ptr;
    size_t had = block ? old_size : 0;
    if (new_size == 0) {
        free(block);
        *used -= had;
        return NULL;
    }
    if (new_size > had && *used + (new_size - had) > CONFIG_MEMORY_MAX_BYTES)
        return NULL;
    void *moved = realloc(block, new_size);
    if (moved)
        *used += new_size - had;
    return moved;
}

static void on_too_many_steps(lua_State *L, lua_Debug *where)
{
    (void)where;
    luaL_error(L, "the configuration does not come to an end");
}

static int copy_value(lua_State *L, int index, struct arena *arena, int depth, struct value *out);

/* Walks the table at index twice: once to count, once to copy, so that the arena gets one block of the right size. */
static int copy_table(lua_State *L, int index, struct arena *arena, int depth, struct value *out)
{
    size_t length = lua_rawlen(L, index), count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    if (length > 0) {
        if (count != length)
            return luaL_error(L, "a table is either a list or has named keys");
        out->type = VALUE_ARRAY;
        out->as.array.count = length;
        out->as.array.items = arena_alloc(arena, length * sizeof(struct value));
        if (!out->as.array.items)
            return luaL_error(L, "not enough memory");
        for (size_t i = 0; i < length; i++) {
            lua_rawgeti(L, index, (lua_Integer)i + 1);
            copy_value(L, lua_gettop(L), arena, depth + 1, &out->as.array.items[i]);
            lua_pop(L, 1);
        }
        return 0;
    }
    out->type = VALUE_OBJECT;
    out->as.object.count = count;
    out->as.object.members = arena_alloc(arena, (count ? count : 1) * sizeof(struct value_member));
    if (!out->as.object.members)
        return luaL_error(L, "not enough memory");
    struct value_member *member = out->as.object.members;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), member++) {
        if (lua_type(L, -2) != LUA_TSTRING)
            return luaL_error(L, "a key must be a name");
        const char *name = lua_tolstring(L, -2, &member->name_len);
        member->name = arena_strndup(arena, name, member->name_len);
        if (!member->name)
            return luaL_error(L, "not enough memory");
        copy_value(L, lua_gettop(L), arena, depth + 1, &member->value);
    }
    return 0;
}

static int copy_value(lua_State *L, int index, struct arena *arena, int depth, struct value *out)
{
    luaL_checkstack(L, 4, "nested too deep");
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        out->type = VALUE_BOOL;
        out->as.boolean = lua_toboolean(L, index);
        return 0;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) {
            out->type = VALUE_INT;
            out->as.integer = lua_tointeger(L, index);
        } else {
            out->type = VALUE_DOUBLE;
            out->as.number = lua_tonumber(L, index);
        }
        return 0;
    case LUA_TSTRING: {
        const char *text = lua_tolstring(L, index, &out->as.string.len);
        out->type = VALUE_STRING;
        out->as.string.text = arena_strndup(arena, text, out->as.string.len);
        return out->as.string.text ? 0 : luaL_error(L, "not enough memory");
    }
    case LUA_TTABLE:
        if (depth >= CONFIG_DEPTH_MAX)
            return luaL_error(L, "nested too deep");
        return copy_table(L, index, arena, depth, out);
    default:
        return luaL_error(L, "a value is a %s; only text, numbers, booleans and tables are allowed",
                          luaL_typename(L, index));
    }
}

struct reading {
    const char *path;
    struct arena *arena;
    struct value *out;
};

/* Runs protected: everything that Lua raises ends here as a message. */
static int read_protected(lua_State *L)
{
    struct reading *reading = lua_touserdata(L, 1);
    if (luaL_loadfilex(L, reading->path, "t") != LUA_OK)
        return lua_error(L);
    /* No globals at all: a configuration states values, it does not compute them from the outside world. */
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s:1: must return a table", reading->path);
    if (lua_rawlen(L, -1) > 0)
        return luaL_error(L, "%s:1: must return a table of names", reading->path);
    return copy_value(L, lua_gettop(L), reading->arena, 0, reading->out);
}

int config_file_read(const char *path, struct arena *arena, struct value *out, struct err *err)
{
    size_t used = 0;
    lua_State *L = lua_newstate(config_alloc, &used);
    if (!L)
        return err_set(err, ERR_INTERNAL, "not enough memory to read %s", path);
    lua_sethook(L, on_too_many_steps, LUA_MASKCOUNT, CONFIG_STEPS_MAX);
    struct value found = {0};
    struct reading reading = {path, arena, &found};
    lua_pushcfunction(L, read_protected);
    lua_pushlightuserdata(L, &reading);
    int status = lua_pcall(L, 1, 0, 0);
    if (status != LUA_OK) {
        const char *message = lua_tostring(L, -1);
        err_set(err, ERR_INVALID_REQUEST, "%s", message ? message : path);
    } else {
        *out = found;
    }
    lua_close(L);
    return status == LUA_OK ? 0 : -1;
}
