/* abx.json: null, arrays, encode and decode. Called by scripts. */
#include "bind/bind.h"
#include "script/bindings.h"

#include <lauxlib.h>

enum { TREE_MAX_BYTES = 256 * 1024 * 1024, TEXT_MAX_BYTES = 64 * 1024 * 1024 };

/* json.array(t) -> t, marked: it stays a list even when it is empty. */
static int bind_json_array(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    if (!lua_getmetatable(L, 1)) {
        lua_mark_array(L, 1);
    } else {
        luaL_argcheck(L, lua_is_array(L, 1), 1, "a plain table is wanted");
        lua_settop(L, 1);
    }
    return 1;
}

static int bind_json_is_array(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, lua_is_array(L, 1));
    return 1;
}

/* json.encode(value) -> text. A value that is no JSON raises. */
static int bind_json_encode(lua_State *L)
{
    struct err err;
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    struct buf *out = lua_push_buf(L, TEXT_MAX_BYTES);
    if (lua_write_json(L, 1, out, &err) != 0)
        return luaL_argerror(L, 1, lua_pushstring(L, err.text));
    lua_pushlstring(L, out->data, out->len);
    buf_deinit(out);
    return 1;
}

/* json.decode(text) -> value | nil, code, message */
static int bind_json_decode(lua_State *L)
{
    size_t len;
    struct err err;
    struct value value;
    const char *text = luaL_checklstring(L, 1, &len);
    struct arena *arena = lua_push_arena(L, TREE_MAX_BYTES);
    if (value_parse(arena, text, len, &value, &err) != 0) {
        arena_deinit(arena);
        return lua_push_err(L, &err);
    }
    lua_push_value(L, &value);
    arena_deinit(arena);
    return 1;
}

int bind_json_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"array", bind_json_array},
        {"is_array", bind_json_is_array},
        {"encode", bind_json_encode},
        {"decode", bind_json_decode},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    lua_push_null(L);
    lua_setfield(L, -2, "null");
    return 1;
}
