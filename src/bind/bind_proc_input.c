/* abx.proc: writing to a process's standard input. Called by the route of the extras pack. */
#include "bind/bind_proc.h"
#include "bind/host.h"
#include "script/bindings.h"

#include <lauxlib.h>

struct input_op {
    struct task *task;
    struct process *process; /* a reference */
    struct process_write write;
    struct loop_timer timer;
    bool timed_out;
    lua_Integer timeout_ms;
};

static void stop(struct input_op *op)
{
    loop_timer_stop(&op->timer);
    process_write_stop(&op->write);
}

static void on_cancel(void *ctx)
{
    struct input_op *op = ctx;
    stop(op);
    process_unref(op->process);
}

static void on_written(void *ctx)
{
    struct input_op *op = ctx;
    stop(op);
    task_resume(op->task);
}

static void on_timeout(void *ctx)
{
    ((struct input_op *)ctx)->timed_out = true;
    on_written(ctx);
}

/* Why the write is not done. */
static void tell_failure(const struct input_op *op, struct err *err)
{
    const struct process_write *write = &op->write;
    const char *id = process_id(op->process), *why = "its standard input is closed: a call before this one gave eof";
    if (op->timed_out) {
        err_set(err, ERR_UPSTREAM_TIMEOUT,
                "%zu of %zu bytes were taken: %s read no more of them in %lld ms, and the rest was dropped",
                write->written, write->len, id, (long long)op->timeout_ms);
        return;
    }
    if (process_state(op->process) != PROCESS_RUNNING)
        why = "it has ended";
    else if (process_stdin(op->process) == PROCESS_STDIN_UNREAD)
        why = "nobody reads its standard input any more: the program has closed it, or has just ended";
    err_set(err, ERR_ALREADY_EXITED, "%zu of %zu bytes were taken by %s: %s", write->written, write->len, id, why);
}

/* What the call answers; gives the process back before anything can raise. */
static int push_result(lua_State *L, struct input_op *op)
{
    struct err err = {0};
    bool done = op->write.state == PROCESS_WRITE_DONE, closed = process_stdin(op->process) != PROCESS_STDIN_OPEN;
    char id[32];
    snprintf(id, sizeof(id), "%s", process_id(op->process));
    if (!done)
        tell_failure(op, &err);
    process_unref(op->process);
    if (!done)
        return lua_push_err(L, &err);
    lua_createtable(L, 0, 3);
    lua_pushstring(L, id);
    lua_setfield(L, -2, "id");
    lua_pushinteger(L, (lua_Integer)op->write.len);
    lua_setfield(L, -2, "bytes");
    lua_pushboolean(L, closed);
    lua_setfield(L, -2, "eof");
    return 1;
}

static int input_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    return push_result(L, (struct input_op *)context);
}

static struct process *find(lua_State *L, const char *id, struct err *err)
{
    const struct host *host = script_host(L);
    struct process *process = process_find(host->processes, id);
    if (process == NULL)
        err_set(err, ERR_PROCESS_NOT_FOUND, "%s is no process that was started here, or it is no longer kept", id);
    else if (process_kind(process) == PROCESS_TERMINAL)
        err_set(err, ERR_INVALID_REQUEST, "%s is a terminal: attach to it by WebSocket, as POST /pty tells", id);
    else if (process_stdin(process) == PROCESS_STDIN_NOT_KEPT)
        err_set(err, ERR_INVALID_REQUEST, "%s was not started with keep_stdin", id);
    else
        return process;
    err_field(err, "id");
    return NULL;
}

/* proc.input(id, data, eof, timeout_ms) -> {id, bytes, eof} | nil, code, message, field.  Yields until the pipe has
 * taken all. */
int bind_proc_input(lua_State *L)
{
    struct err err = {0};
    size_t len;
    struct task *task = task_check(L);
    const char *id = luaL_checkstring(L, 1);
    const char *data = luaL_checklstring(L, 2, &len); /* stays on the stack while it is written */
    luaL_checktype(L, 3, LUA_TBOOLEAN);
    lua_Integer timeout_ms = lua_arg_int(L, 4, 0, INT32_MAX);
    struct process *process = find(L, id, &err);
    if (process == NULL)
        return lua_push_err(L, &err);
    struct input_op *op = task_op_new(L, sizeof(*op), true, on_cancel);
    op->task = task;
    op->process = process_ref(process);
    op->timeout_ms = timeout_ms;
    op->write = (struct process_write){.bytes = data, .len = len, .eof = lua_toboolean(L, 3), .ctx = op};
    process_write_start(process, &op->write, on_written);
    if (op->write.state == PROCESS_WRITE_WAITING) {
        loop_timer_start(script_loop(L), &op->timer, (uint64_t)timeout_ms, on_timeout, op);
        return lua_yieldk(L, 0, (lua_KContext)op, input_done);
    }
    struct input_op copy = *op;
    task_op_end(L);
    return push_result(L, &copy);
}
