/* A run as scripts hold it: waiting, output, exit, stopping. bind_proc makes it; leaving its scope stops the program.
 */
#include "bind/bind_run.h"

#include "bind/bind_stream.h"
#include "prim/signals.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_META "abx.proc.run"

static struct run *run_arg(lua_State *L)
{
    struct run *run = luaL_checkudata(L, 1, RUN_META);
    if (run->process == NULL)
        luaL_error(L, "this run was closed");
    return run;
}

void bind_run_started(struct run *run)
{
    env_block_deinit(&run->env);
    if (run->cwd_fd >= 0)
        close(run->cwd_fd);
    run->cwd_fd = -1;
}

static void give_up(struct run *run)
{
    task_disown(&run->owned);
    bind_output_deinit(&run->output);
    bind_run_started(run);
    if (run->process == NULL)
        return;
    if (!run->detached && process_state(run->process) == PROCESS_RUNNING)
        process_stop(run->process);
    process_capture_free(run->process);
    process_unref(run->process);
    run->process = NULL;
}

static int run_close(lua_State *L)
{
    give_up(luaL_checkudata(L, 1, RUN_META));
    return 0;
}

static void on_task_end(struct task_owned *owned)
{
    give_up((struct run *)((char *)owned - offsetof(struct run, owned)));
}

struct run *bind_run_push(lua_State *L)
{
    struct run *run = lua_newuserdatauv(L, sizeof(*run), 0);
    memset(run, 0, sizeof(*run));
    run->cwd_fd = -1;
    bind_output_init(&run->output);
    env_block_init(&run->env);
    luaL_setmetatable(L, RUN_META);
    task_own(task_check(L), &run->owned, on_task_end);
    return run;
}

/* --- waiting */

struct wait_op {
    struct task *task;
    struct process_wait wait;
    struct loop_timer timer;
    bool ended;
};

static void wait_stop(void *ctx)
{
    struct wait_op *op = ctx;
    process_wait_stop(&op->wait);
    loop_timer_stop(&op->timer);
}

static void on_ended(void *ctx)
{
    struct wait_op *op = ctx;
    op->ended = true;
    wait_stop(op);
    task_resume(op->task);
}

static void on_wait_over(void *ctx)
{
    struct wait_op *op = ctx;
    wait_stop(op);
    task_resume(op->task);
}

static int wait_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    lua_pushboolean(L, ((struct wait_op *)context)->ended);
    return 1;
}

/* run:wait([timeout_ms]) -> true when it has ended | false not yet.  Yields. */
static int run_wait(lua_State *L)
{
    struct run *run = run_arg(L);
    lua_Integer timeout_ms = lua_arg_opt_int(L, 2, -1, 0, INT32_MAX);
    struct task *task = task_check(L);
    if (process_state(run->process) == PROCESS_DRAINED || timeout_ms == 0) {
        lua_pushboolean(L, process_state(run->process) == PROCESS_DRAINED);
        return 1;
    }
    struct wait_op *op = task_op_new(L, sizeof(*op), true, wait_stop);
    op->task = task;
    process_wait_start(run->process, &op->wait, on_ended, op);
    if (timeout_ms > 0)
        loop_timer_start(script_loop(L), &op->timer, (uint64_t)timeout_ms, on_wait_over, op);
    return lua_yieldk(L, 0, (lua_KContext)op, wait_done);
}

/* --- results */

static void push_null(lua_State *L)
{
    struct value null = {.type = VALUE_NULL};
    lua_push_value(L, &null);
}

/* run:exit() -> {exit_code, signal, timed_out, started_at, duration_ms} */
static int run_exit(lua_State *L)
{
    struct run *run = run_arg(L);
    struct process_exit exit;
    char text[32];
    bool running = process_exit(run->process, &exit) != 0;
    lua_createtable(L, 0, 5);
    if (running)
        push_null(L);
    else
        lua_pushinteger(L, exit.exit_code);
    lua_setfield(L, -2, "exit_code");
    if (running || exit.signal == 0) {
        push_null(L);
    } else {
        signals_name(exit.signal, text);
        lua_pushstring(L, text);
    }
    lua_setfield(L, -2, "signal");
    lua_pushboolean(L, exit.timed_out);
    lua_setfield(L, -2, "timed_out");
    process_started_at(run->process, text);
    lua_pushstring(L, text);
    lua_setfield(L, -2, "started_at");
    lua_pushinteger(L, (lua_Integer)exit.duration_ms);
    lua_setfield(L, -2, "duration_ms");
    return 1;
}

static struct bind_output *output_arg(lua_State *L)
{
    struct run *run = run_arg(L);
    run->output.process = run->process;
    run->output.more = process_state(run->process) != PROCESS_DRAINED;
    return &run->output;
}

static int run_captured(lua_State *L)
{
    return bind_output_captured(L, output_arg(L));
}

static int run_answer_output(lua_State *L)
{
    return bind_output_answer(L, output_arg(L));
}

/* run:stream(out, options): see bind_stream.h */
static int run_stream(lua_State *L)
{
    struct process *process = run_arg(L)->process;
    if (process_kind(process) == PROCESS_TERMINAL)
        luaL_error(L, "the output of a terminal is for its WebSocket clients");
    return bind_stream_run(L, process);
}

/* run:detach(): closing it no longer stops it. */
static int run_detach(lua_State *L)
{
    run_arg(L)->detached = true;
    return 0;
}

/* run:stop(): SIGTERM to the tree, SIGKILL after 2 s. */
static int run_stop(lua_State *L)
{
    process_stop(run_arg(L)->process);
    return 0;
}

/* Fields; else a method of the table that is the upvalue. */
static int run_index(lua_State *L)
{
    const struct run *run = run_arg(L);
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    char text[32];
    if (strcmp(key, "id") == 0) {
        lua_pushstring(L, process_id(run->process));
    } else if (strcmp(key, "pid") == 0) {
        lua_pushinteger(L, process_pid(run->process));
    } else if (strcmp(key, "cwd") == 0) {
        lua_pushstring(L, process_cwd(run->process));
    } else if (strcmp(key, "started_at") == 0) {
        process_started_at(run->process, text);
        lua_pushstring(L, text);
    } else {
        lua_settop(L, 2);
        lua_rawget(L, lua_upvalueindex(1));
    }
    return 1;
}

void bind_run_open(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__close", run_close}, {"__gc", run_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"wait", run_wait},         {"exit", run_exit},
                                       {"captured", run_captured}, {"answer_output", run_answer_output},
                                       {"stream", run_stream},     {"detach", run_detach},
                                       {"stop", run_stop},         {NULL, NULL}};
    luaL_newmetatable(L, RUN_META);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, run_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
