/* The `table` library of scripts. Its functions are C that no hook interrupts, so they work on plain tables only (a
 * __len could promise a billion members) and on bounded counts. Called by sandbox.c. */
#include "script/sandbox.h"

#include "script/bindings.h"
#include "script/budget.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

enum { MOVE_MAX = 16 * 1024 * 1024, SORT_MAX = 1024 * 1024 };

/* Lua's own functions, found once; they use nothing but their arguments, so they can be called as they are. */
static lua_CFunction real_insert, real_remove, real_concat, real_move, real_unpack, real_sort;

static void check_plain(lua_State *L, int arg)
{
    static const char *const refused[] = {"__len", "__index", "__newindex"};
    luaL_checktype(L, arg, LUA_TTABLE);
    if (!lua_getmetatable(L, arg))
        return;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        lua_pushstring(L, refused[i]);
        if (lua_rawget(L, -2) != LUA_TNIL)
            luaL_argerror(L, arg, "a plain table is wanted, without __len, __index and __newindex");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void check_count(lua_State *L, lua_Integer first, lua_Integer last, lua_Integer max)
{
    if (last >= first && (lua_Unsigned)last - (lua_Unsigned)first >= (lua_Unsigned)max)
        luaL_error(L, "too many members");
}

static int table_insert(lua_State *L)
{
    check_plain(L, 1);
    return real_insert(L);
}

static int table_remove(lua_State *L)
{
    check_plain(L, 1);
    return real_remove(L);
}

static int table_concat(lua_State *L)
{
    lua_thaw(L, 1);    /* a read-only list may be read */
    check_plain(L, 1); /* ends at the first member that is missing: no count is needed */
    return real_concat(L);
}

static int table_move(lua_State *L)
{
    if (!lua_isnoneornil(L, 5))
        lua_thaw(L, 1);
    check_plain(L, 1);
    check_plain(L, lua_isnoneornil(L, 5) ? 1 : 5);
    check_count(L, luaL_checkinteger(L, 2), luaL_checkinteger(L, 3), MOVE_MAX);
    return real_move(L);
}

static int table_unpack(lua_State *L)
{
    lua_thaw(L, 1);
    check_plain(L, 1); /* the stack bounds the count */
    return real_unpack(L);
}

static int look_at_budget(lua_State *L)
{
    return budget_expired() ? luaL_error(L, "the time for computing is over") : 0;
}

/* As <, but it looks at the budget. Strings are compared here: Lua's own way takes long over NUL bytes, and it asks
 * strcoll, which in the C locale we run in says what memcmp does. */
static int on_less(lua_State *L)
{
    size_t a_len, b_len;
    look_at_budget(L);
    if (lua_type(L, 1) != LUA_TSTRING || lua_type(L, 2) != LUA_TSTRING) {
        lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
        return 1;
    }
    const char *a = lua_tolstring(L, 1, &a_len), *b = lua_tolstring(L, 2, &b_len);
    int order = a == b ? 0 : memcmp(a, b, a_len < b_len ? a_len : b_len);
    lua_pushboolean(L, order != 0 ? order < 0 : a_len < b_len);
    return 1;
}

/* A comparator that is C itself (string.find): no hook sees it. */
static int on_compare(lua_State *L)
{
    look_at_budget(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static bool only_numbers(lua_State *L, lua_Integer count)
{
    bool only = true;
    for (lua_Integer i = 1; i <= count && only; i++) {
        only = lua_rawgeti(L, 1, i) == LUA_TNUMBER;
        lua_pop(L, 1);
    }
    return only;
}

static int table_sort(lua_State *L)
{
    check_plain(L, 1);
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    luaL_argcheck(L, count <= SORT_MAX, 1, "too many members to sort");
    lua_settop(L, 2);
    if (lua_iscfunction(L, 2)) {
        lua_pushcclosure(L, on_compare, 1);
    } else if (lua_isnil(L, 2) && !only_numbers(L, count)) {
        lua_pushcfunction(L, on_less);
        lua_replace(L, 2);
    }
    return real_sort(L);
}

static lua_CFunction take(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    lua_CFunction function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return function;
}

void sandbox_push_table(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"insert", table_insert}, /* raw length: bounded by memory */
        {"remove", table_remove}, /* the same */
        {"concat", table_concat}, /* stops at the first hole */
        {"move", table_move},     /* capped: a table of holes has no end */
        {"unpack", table_unpack}, /* bounded by the stack */
        {"sort", table_sort},     /* looks at the budget; capped: comparing numbers is C all the way */
        {NULL, NULL},
    };
    lua_pushcfunction(L, luaopen_table);
    lua_call(L, 0, 1);
    real_insert = take(L, "insert");
    real_remove = take(L, "remove");
    real_concat = take(L, "concat");
    real_move = take(L, "move");
    real_unpack = take(L, "unpack");
    real_sort = take(L, "sort");
    luaL_newlib(L, functions);
    lua_getfield(L, -2, "pack"); /* as it is: its arguments are on the stack already */
    lua_setfield(L, -2, "pack");
    lua_remove(L, -2);
}
