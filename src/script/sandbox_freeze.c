/* Read-only tables: a stand-in without members of its own, whose metatable leads to the real table, which never gets
 * into a script's hands. Called by the sandbox, by require and at the end of loading; bindings thaw what they read raw.
 */
#include "script/sandbox.h"

#include "script/bindings.h"
#include "script/marks.h"

#include <lauxlib.h>

static const char frozen_key; /* at its address the metatable of a stand-in holds the real table */

static int on_write(lua_State *L)
{
    if (lua_type(L, 2) == LUA_TSTRING)
        return luaL_error(L, "undeclared global or read-only table: cannot set '%s'", lua_tostring(L, 2));
    return luaL_error(L, "the table is read-only");
}

static int on_pairs(lua_State *L)
{
    lua_pushcfunction(L, sandbox_next);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int on_len(lua_State *L)
{
    lua_thaw(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, 1));
    return 1;
}

/* Makes the table at `stand_in`, which is empty, lead to the one on top, and takes that. */
static void link_real(lua_State *L, int stand_in)
{
    lua_createtable(L, 0, 6);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, on_write);
    lua_setfield(L, -2, "__newindex");
    lua_pushcfunction(L, on_pairs);
    lua_setfield(L, -2, "__pairs");
    lua_pushcfunction(L, on_len);
    lua_setfield(L, -2, "__len");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_insert(L, -2);
    lua_rawsetp(L, -2, &frozen_key);
    lua_setmetatable(L, stand_in);
}

void sandbox_freeze(lua_State *L)
{
    lua_newtable(L);
    lua_insert(L, -2);
    link_real(L, lua_gettop(L) - 1);
}

/* Whether it is a table as scripts make them: others have a behaviour of their own, stand-ins are done already. */
static bool is_plain(lua_State *L, int index)
{
    if (!lua_istable(L, index))
        return false;
    if (!lua_getmetatable(L, index))
        return true;
    lua_pop(L, 1);
    return mark_has(L, index, vm_of(L)->array_meta);
}

/* Moves what the table on top holds behind it; tables in there go to the end of the queue, whose new length it is. */
static lua_Integer freeze_in_place(lua_State *L, int queue, lua_Integer waiting)
{
    int table = lua_gettop(L), real = table + 1;
    lua_newtable(L);
    if (lua_getmetatable(L, table))
        lua_setmetatable(L, real);
    for (lua_pushnil(L); lua_next(L, table);) {
        if (lua_istable(L, -1)) {
            lua_pushvalue(L, -1);
            lua_rawseti(L, queue, ++waiting);
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, real);
        lua_pushvalue(L, -1); /* to clear a member is allowed while the table is gone through */
        lua_pushnil(L);
        lua_rawset(L, table);
    }
    link_real(L, table);
    return waiting;
}

void sandbox_freeze_deep(lua_State *L)
{
    luaL_checkstack(L, 12, NULL);
    lua_newtable(L);
    int queue = lua_gettop(L);
    lua_Integer waiting = 1;
    lua_pushvalue(L, queue - 1);
    lua_rawseti(L, queue, waiting);
    while (waiting > 0) {
        lua_rawgeti(L, queue, waiting);
        lua_pushnil(L);
        lua_rawseti(L, queue, waiting--);
        if (is_plain(L, -1))
            waiting = freeze_in_place(L, queue, waiting);
        lua_settop(L, queue);
    }
    lua_pop(L, 1);
}

/* The members of the list or module table behind a registry reference, and all that can be reached from them. */
static void freeze_members(lua_State *L, int ref)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        sandbox_freeze_deep(L);
    lua_pop(L, 1);
}

void sandbox_freeze_loaded(lua_State *L)
{
    const struct vm *vm = vm_of(L);
    freeze_members(L, vm->modules);
    freeze_members(L, vm->groups);
    freeze_members(L, vm->routes);
    freeze_members(L, vm->commands);
}

bool sandbox_is_frozen(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return false;
    bool frozen = lua_rawgetp(L, -1, &frozen_key) != LUA_TNIL;
    lua_pop(L, 2);
    return frozen;
}

void lua_thaw(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return;
    if (lua_rawgetp(L, -1, &frozen_key) != LUA_TNIL) {
        lua_replace(L, index);
        lua_pop(L, 1);
    } else {
        lua_pop(L, 2);
    }
}

/* ---- the functions of scripts that read raw ---- */

int sandbox_next(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_thaw(L, 1);
    if (lua_next(L, 1))
        return 2;
    lua_pushnil(L);
    return 1;
}

int sandbox_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    lua_thaw(L, 1);
    lua_rawget(L, 1);
    return 1;
}

int sandbox_rawlen(lua_State *L)
{
    luaL_argexpected(L, lua_istable(L, 1) || lua_type(L, 1) == LUA_TSTRING, 1, "table or string");
    lua_thaw(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, 1));
    return 1;
}

int sandbox_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    if (sandbox_is_frozen(L, 1))
        return luaL_error(L, "the table is read-only");
    lua_settop(L, 3);
    lua_rawset(L, 1);
    return 1;
}
