/* abx.session: turns in a shell session, for the handlers that run commands in one. */
#include "bind/bind_session.h"

#include "bind/bind.h"
#include "bind/host.h"
#include "script/bindings.h"

#include <lauxlib.h>

#define TURN_META "abx.session.turn"

struct turn_ud {
    struct task_owned owned;   /* the turn ends with the request, even where the script forgot it */
    struct session_turn *turn; /* NULL: given back */
};

struct enter_op {
    struct task *task;
    struct turn_ud *ud; /* on the coroutine's stack */
};

static void give_back(struct turn_ud *ud)
{
    task_disown(&ud->owned);
    if (ud->turn != NULL)
        session_leave(ud->turn);
    ud->turn = NULL;
}

static int turn_give_back(lua_State *L)
{
    give_back(luaL_checkudata(L, 1, TURN_META));
    return 0;
}

static void on_task_end(struct task_owned *owned)
{
    give_back((struct turn_ud *)((char *)owned - offsetof(struct turn_ud, owned)));
}

struct session_turn *bind_session_turn(lua_State *L, int index)
{
    struct turn_ud *ud = luaL_checkudata(L, index, TURN_META);
    if (ud->turn == NULL)
        luaL_error(L, "this turn of the session was given back");
    return ud->turn;
}

static void on_granted(void *ctx)
{
    struct enter_op *op = ctx;
    task_resume(op->task);
}

static void enter_cancel(void *ctx)
{
    struct enter_op *op = ctx;
    give_back(op->ud);
}

static int enter_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    lua_settop(L, 2); /* the userdata stands above the name */
    return 1;
}

/* session.enter(name) -> turn | nil, code, message, field.  Yields until the turn has come. */
static int bind_session_enter(lua_State *L)
{
    struct task *task = task_check(L);
    struct host *host = script_host(L);
    struct err err;
    size_t len;
    const char *name = luaL_checklstring(L, 1, &len);
    lua_settop(L, 1);
    struct turn_ud *ud = lua_newuserdatauv(L, sizeof(*ud), 0);
    *ud = (struct turn_ud){0};
    luaL_setmetatable(L, TURN_META);
    task_own(task, &ud->owned, on_task_end);
    struct enter_op *op = task_op_new(L, sizeof(*op), true, enter_cancel);
    op->task = task;
    op->ud = ud;
    ud->turn = session_enter(host->sessions, name, len, on_granted, op, &err);
    if (ud->turn == NULL) {
        task_op_end(L);
        return lua_push_err(L, &err);
    }
    return lua_yieldk(L, 0, (lua_KContext)op, enter_done);
}

int bind_session_open(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__close", turn_give_back}, {"__gc", turn_give_back}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"enter", bind_session_enter}, {NULL, NULL}};
    luaL_newmetatable(L, TURN_META);
    luaL_setfuncs(L, meta, 0);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
