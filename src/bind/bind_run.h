/* A run as scripts hold it: the userdata that proc.start makes and whose methods bind_run.c has. */
#ifndef ABX_BIND_RUN_H
#define ABX_BIND_RUN_H

#include "bind/bind_output.h"
#include "prim/process.h"
#include "script/bindings.h"

#include <lua.h>
#include <stdbool.h>

struct run {
    struct task_owned owned; /* by the task that started it: at its end it is closed, whatever became of the script */
    struct process *process; /* a reference; NULL until it was started */
    bool detached;           /* closing it stops nothing */
    struct bind_output output;
    /* while it is being started */
    struct env_block env;
    int cwd_fd;
};

/* Makes the metatable; once for a state. */
void bind_run_open(lua_State *L);
/* Pushes an empty one. */
struct run *bind_run_push(lua_State *L);
/* Gives back what only the start needed, whether it succeeded or not. */
void bind_run_started(struct run *run);

#endif
