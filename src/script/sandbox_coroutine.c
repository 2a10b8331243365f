/* The `coroutine` library of scripts: Lua's own, but it tells the budget what runs, lets nobody resume a task, and a
 * task cannot be suspended by coroutine.yield. Called by sandbox.c. */
#include "script/sandbox.h"

#include "script/budget.h"

#include <lauxlib.h>
#include <stdbool.h>

static bool is_task(lua_State *L)
{
    return *(void **)lua_getextraspace(L) != NULL;
}

static lua_State *check_coroutine(lua_State *L, int arg)
{
    lua_State *co = lua_tothread(L, arg);
    luaL_argexpected(L, co != NULL, arg, "coroutine");
    luaL_argcheck(L, !is_task(co), arg, "the coroutine of a request");
    return co;
}

/* Resumes co with the topmost `arguments` of L. The count of results, which lie on L; -1: one error value does. */
static int resume(lua_State *L, lua_State *co, int arguments)
{
    int results;
    if (budget_killed(co) || !lua_checkstack(co, arguments)) {
        lua_pushliteral(L, "cannot resume this coroutine");
        return -1;
    }
    lua_xmove(L, co, arguments);
    lua_State *before = budget_switch(co);
    int status = lua_resume(co, L, arguments, &results);
    budget_switch(before);
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_pushvalue(co, -1); /* the error stays there too, for <close> variables */
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(co, results);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, results);
    return results;
}

static int coroutine_resume(lua_State *L)
{
    lua_State *co = check_coroutine(L, 1);
    int results = resume(L, co, lua_gettop(L) - 1);
    if (budget_expired()) /* whoever noticed it, it ends all that runs */
        return budget_die(L);
    lua_pushboolean(L, results >= 0);
    if (results < 0)
        results = 1;
    lua_insert(L, -(results + 1));
    return results + 1;
}

static int wrap_call(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int results = resume(L, co, lua_gettop(L));
    if (budget_expired())
        return budget_die(L);
    if (results >= 0)
        return results;
    int status = lua_status(co);
    if (status != LUA_OK && status != LUA_YIELD) { /* dead by an error: its <close> variables run now */
        lua_State *before = budget_switch(co);
        lua_resetthread(co);
        budget_switch(before);
        if (budget_expired())
            return budget_die(L);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int coroutine_create(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    return 1;
}

static int coroutine_wrap(lua_State *L)
{
    coroutine_create(L);
    lua_pushcclosure(L, wrap_call, 1);
    return 1;
}

static int coroutine_yield(lua_State *L)
{
    if (is_task(L))
        return luaL_error(L, "coroutine.yield works inside a coroutine of your own only");
    return lua_yield(L, lua_gettop(L));
}

static const char *status_name(lua_State *L, lua_State *co)
{
    if (L == co)
        return "running";
    if (lua_status(co) == LUA_YIELD)
        return "suspended";
    if (lua_status(co) != LUA_OK)
        return "dead";
    lua_Debug ar;
    if (lua_getstack(co, 0, &ar))
        return "normal"; /* it resumed the one that asks */
    return lua_gettop(co) == 0 ? "dead" : "suspended";
}

static int coroutine_status(lua_State *L)
{
    lua_pushstring(L, status_name(L, check_coroutine(L, 1)));
    return 1;
}

static int coroutine_close(lua_State *L)
{
    lua_State *co = check_coroutine(L, 1);
    const char *state = status_name(L, co);
    if ((state[0] != 'd' && state[0] != 's') || budget_killed(co))
        return luaL_error(L, "cannot close a %s coroutine", state);
    lua_State *before = budget_switch(co);
    int status = lua_resetthread(co);
    budget_switch(before);
    if (budget_expired())
        return budget_die(L);
    lua_pushboolean(L, status == LUA_OK);
    if (status == LUA_OK)
        return 1;
    lua_xmove(co, L, 1);
    return 2;
}

static int coroutine_isyieldable(lua_State *L)
{
    lua_pushboolean(L, !is_task(L) && lua_isyieldable(L));
    return 1;
}

void sandbox_push_coroutine(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"create", coroutine_create},
        {"resume", coroutine_resume},
        {"wrap", coroutine_wrap},
        {"yield", coroutine_yield},
        {"status", coroutine_status},
        {"close", coroutine_close},
        {"isyieldable", coroutine_isyieldable},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
}
