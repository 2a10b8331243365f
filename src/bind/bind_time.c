/* abx.time: clocks, and waiting. Called by scripts. */
#include "base/loop.h"
#include "bind/bind.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdio.h>
#include <time.h>

enum { SLEEP_MAX_MS = 24 * 60 * 60 * 1000 };

/* time.now() -> "2026-01-31T12:00:00.123Z" */
static int bind_time_now(lua_State *L)
{
    struct timespec now;
    struct tm utc;
    char text[48];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + len, sizeof(text) - len, ".%03dZ", (int)(now.tv_nsec / 1000000));
    lua_pushstring(L, text);
    return 1;
}

/* time.now_ms() -> milliseconds of a clock that never goes back */
static int bind_time_now_ms(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)(loop_clock_ns() / 1000000));
    return 1;
}

struct sleep {
    struct task *task;
    struct loop_timer timer;
    struct loop_defer defer;
};

static void on_wake(void *ctx)
{
    task_resume(((struct sleep *)ctx)->task);
}

static void sleep_cancel(void *op)
{
    struct sleep *sleep = op;
    loop_timer_stop(&sleep->timer);
    loop_defer_stop(&sleep->defer);
}

static int sleep_done(lua_State *L, int status, lua_KContext context)
{
    (void)L;
    (void)status;
    (void)context;
    return 0;
}

/* time.sleep(ms); 0 is the next turn of the loop.  Yields, and counts to the deadline. */
static int bind_time_sleep(lua_State *L)
{
    struct task *task = task_check(L);
    lua_Integer ms = lua_arg_int(L, 1, 0, SLEEP_MAX_MS);
    struct sleep *sleep = task_op_new(L, sizeof(*sleep), false, sleep_cancel);
    sleep->task = task;
    if (ms == 0)
        loop_defer_start(script_loop(L), &sleep->defer, on_wake, sleep);
    else
        loop_timer_start(script_loop(L), &sleep->timer, (uint64_t)ms, on_wake, sleep);
    return lua_yieldk(L, 0, (lua_KContext)sleep, sleep_done);
}

int bind_time_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"now", bind_time_now},
        {"now_ms", bind_time_now_ms},
        {"sleep", bind_time_sleep},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
