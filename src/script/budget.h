/* CPU time of scripts: a watchdog that costs nothing until it bites. For the files of script/; main thread only.
 *
 * A timer on the thread's CPU clock ticks every 100 ms of computing. When the same run was seen by too many ticks, its
 * coroutine gets a hook that fires at every instruction and ends it, again and again until the run is over. */
#ifndef ABX_SCRIPT_BUDGET_H
#define ABX_SCRIPT_BUDGET_H

#include <lua.h>
#include <signal.h>
#include <stdbool.h>

/* What was running before a run; kept by budget_enter's caller until budget_leave. */
struct budget {
    lua_State *running;
    sig_atomic_t ticks, limit, expired;
};

/* One timer for all generations of the process. -1: the kernel refuses it (errno tells). */
int budget_ref(void);
void budget_unref(void);

/* From here L computes, for cpu_ms at most. */
void budget_enter(struct budget *saved, lua_State *L, unsigned cpu_ms);
/* The run is over: takes the hook off L and tells whether the time ran out. */
bool budget_leave(const struct budget *saved, lua_State *L);

/* A script resumes a coroutine of its own: L is what runs now. Answers what ran before, to be put back the same way. */
lua_State *budget_switch(lua_State *L);
/* Whether the current run is to end; long C functions look now and then. */
bool budget_expired(void);
/* Ends the current run from a C function: `return budget_die(L)`. */
int budget_die(lua_State *L);
/* Whether that coroutine was ended by the hook: it must never run again, not even its <close> variables. */
bool budget_killed(lua_State *L);

#endif
