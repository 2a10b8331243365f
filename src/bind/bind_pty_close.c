/* pty.close: hangs up a terminal and waits for its end. */
#include "bind/bind_pty.h"
#include "prim/exit_json.h"
#include "script/bindings.h"

#include <lauxlib.h>

/* SIGKILL comes after 2 s; a program that the kernel holds even then is not waited for any longer. */
enum { WAIT_MAX_MS = 10 * 1000, ANSWER_MAX_BYTES = 1024 };

struct close_op {
    struct task *task;
    struct process *process; /* a reference */
    struct buf *answer;      /* on the task's stack */
    struct process_wait wait;
    struct loop_timer timer;
};

static void stop(struct close_op *op)
{
    loop_timer_stop(&op->timer);
    process_wait_stop(&op->wait);
}

static void on_cancel(void *ctx)
{
    struct close_op *op = ctx;
    stop(op);
    process_unref(op->process);
}

static void on_over(void *ctx)
{
    struct close_op *op = ctx;
    stop(op);
    task_resume(op->task);
}

/* Gives the reference back before anything can raise. */
static int push_result(lua_State *L, struct process *process, struct buf *answer)
{
    bool full = buf_printf(answer, "{\"id\":\"%s\",", process_id(process)) != 0 ||
                exit_json_append(answer, process) != 0 || buf_append_text(answer, "}") != 0;
    process_unref(process);
    if (full)
        return luaL_error(L, "out of memory");
    size_t len;
    char *text = buf_steal(answer, &len);
    lua_push_raw_json(L, text, len);
    return 1;
}

static int close_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    const struct close_op *op = (const struct close_op *)context;
    return push_result(L, op->process, op->answer);
}

/* pty.close(id) -> JSON: id and exit fields (exit_code null where even SIGKILL has not ended it) | nil, code, message,
 * field.  Yields until it has ended; a client that leaves does not stop the end. */
int bind_pty_close(lua_State *L)
{
    struct err err = {0};
    struct task *task = task_check(L);
    lua_settop(L, 1);
    struct terminals *terminals = bind_pty_terminals(L, &err);
    struct process *process = terminals != NULL ? bind_pty_find(L, 1, terminals, &err) : NULL;
    if (process == NULL)
        return lua_push_err(L, &err);
    struct buf *answer = lua_push_buf(L, ANSWER_MAX_BYTES);
    struct close_op *op = task_op_new(L, sizeof(*op), true, on_cancel);
    op->task = task;
    op->process = process_ref(process);
    op->answer = answer;
    terminals_close(terminals, process);
    if (process_state(process) == PROCESS_DRAINED) {
        task_op_end(L);
        return push_result(L, process, answer);
    }
    process_wait_start(process, &op->wait, on_over, op);
    loop_timer_start(script_loop(L), &op->timer, WAIT_MAX_MS, on_over, op);
    return lua_yieldk(L, 0, (lua_KContext)op, close_done);
}
