/* The CPU watchdog of scripts; see budget.h. Called by task.c, generation.c and the sandbox's coroutine library. */
#include "script/budget.h"

#include <errno.h>
#include <lauxlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc 2.36 has the field but not its name */
#endif

enum { TICK_MS = 100 };

static timer_t timer;
static unsigned references;

/* Shared with the signal handler, which runs on this very thread. */
static lua_State *volatile running;
static volatile sig_atomic_t ticks, limit, expired;

static void on_overrun(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    /* A yield is no error, so no pcall sees it, and unlike an error it leaves hooks allowed for <close> variables.
     * Where a C function stands in between (sort, gsub) an error must do; the hook fires again behind every pcall. */
    if (lua_isyieldable(L))
        lua_yield(L, 0);
    else
        luaL_error(L, "the time for computing is over");
}

static void on_tick(int signal_number)
{
    (void)signal_number;
    lua_State *L = running;
    if (L == NULL || ++ticks < limit)
        return;
    expired = 1;
    lua_sethook(L, on_overrun, LUA_MASKCOUNT, 1); /* made for signal handlers: lua.c does the same */
}

int budget_ref(void)
{
    if (references > 0) {
        references++;
        return 0;
    }
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGRTMIN + 1, &action, NULL) != 0)
        return -1;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        return -1;
    struct itimerspec every = {.it_interval.tv_nsec = TICK_MS * 1000000L, .it_value.tv_nsec = TICK_MS * 1000000L};
    if (timer_settime(timer, 0, &every, NULL) != 0) {
        int saved_errno = errno;
        timer_delete(timer);
        errno = saved_errno;
        return -1;
    }
    references = 1;
    return 0;
}

void budget_unref(void)
{
    if (--references == 0)
        timer_delete(timer);
}

void budget_enter(struct budget *saved, lua_State *L, unsigned cpu_ms)
{
    *saved = (struct budget){.running = running, .ticks = ticks, .limit = limit, .expired = expired};
    running = NULL; /* a tick between these lines finds nothing to do */
    expired = 0;
    ticks = 0;
    limit = (sig_atomic_t)((cpu_ms + TICK_MS - 1) / TICK_MS + 1); /* the first tick may come at once */
    running = L;
}

bool budget_leave(const struct budget *saved, lua_State *L)
{
    running = NULL;
    bool out_of_time = expired;
    if (out_of_time)
        lua_sethook(L, NULL, 0, 0);
    ticks = saved->ticks;
    limit = saved->limit;
    expired = saved->expired;
    running = saved->running;
    return out_of_time;
}

lua_State *budget_switch(lua_State *L)
{
    lua_State *before = running;
    running = L;
    return before;
}

bool budget_expired(void)
{
    return expired;
}

int budget_die(lua_State *L)
{
    lua_sethook(L, on_overrun, LUA_MASKCOUNT, 1);
    if (lua_isyieldable(L))
        return lua_yield(L, 0);
    return luaL_error(L, "the time for computing is over");
}

bool budget_killed(lua_State *L)
{
    return lua_gethook(L) == on_overrun;
}
