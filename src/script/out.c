/* `out`, the handler's end of a stream: out:write and out:event wait while the client is slow, and answer false once it
 * is gone. Called by task.c, and by bindings that pump into the sink. */
#include "base/json.h"
#include "model/sse.h"
#include "script/bindings.h"
#include "script/marks.h"
#include "script/sandbox.h"
#include "script/task_state.h"

#include <lauxlib.h>
#include <string.h>

struct out_ud {
    struct task *task;
    uint64_t serial;
};

static struct task *check_out(lua_State *L, int arg)
{
    struct out_ud *ud = lua_touserdata(L, arg);
    if (ud == NULL || !mark_has(L, arg, vm_of(L)->out_meta))
        luaL_typeerror(L, arg, "output stream");
    if (ud->task->serial != ud->serial || ud->task->out.sink == NULL)
        luaL_error(L, "this stream is over");
    return ud->task;
}

struct sink *lua_arg_out(lua_State *L, int arg)
{
    return check_out(L, arg)->out.sink;
}

bool lua_arg_out_is_sse(lua_State *L, int arg)
{
    return check_out(L, arg)->out.sse;
}

static void on_drain(void *ctx)
{
    struct task *task = ctx;
    if (!task->out.waiting)
        return;
    task->out.waiting = false;
    task_resume(task);
}

static void on_gone(void *ctx)
{
    struct task *task = ctx;
    if (task->out.waiting)
        on_drain(task); /* its write answers false */
    else
        task_drop(task);
}

static void on_heartbeat(void *ctx)
{
    struct task *task = ctx;
    struct out *out = &task->out;
    struct loop *loop = task->vm->loop;
    uint64_t now = loop_now_ms(loop), idle_ms = now - out->last_write_ms;
    if (idle_ms >= SSE_HEARTBEAT_MS) {
        struct buf comment;
        buf_init(&comment, 64);
        if (sink_room(out->sink) > 0 && sse_append_comment(&comment) == 0 &&
            sink_write(out->sink, comment.data, comment.len) != SINK_OK)
            idle_ms = 0; /* gone or full: both are noticed elsewhere */
        buf_deinit(&comment);
        out->last_write_ms = now;
        idle_ms = 0;
    }
    loop_timer_start(loop, &out->heartbeat, SSE_HEARTBEAT_MS - idle_ms, on_heartbeat, task);
}

void out_begin(struct task *task, struct sink *sink, bool sse)
{
    struct loop *loop = task->vm->loop;
    task->out.sink = sink;
    task->out.sse = sse;
    task->out.waiting = false;
    task->out.last_write_ms = loop_now_ms(loop);
    out_attach(task);
    if (sse)
        loop_timer_start(loop, &task->out.heartbeat, SSE_HEARTBEAT_MS, on_heartbeat, task);
}

void out_attach(struct task *task)
{
    struct sink *sink = task->out.sink;
    if (sink == NULL)
        return;
    sink->on_drain = on_drain;
    sink->on_gone = on_gone;
    sink->producer = task;
}

/* The problem as clients get it everywhere, but for its title, which only matters to people reading HTTP. */
static int append_problem(struct buf *out, const struct task *task, const struct err *err)
{
    int status = buf_printf(out, "{\"status\":%d,\"code\":\"%s\",\"detail\":", err_code_status(err->code),
                            err_code_name(err->code));
    status |= json_write_string(out, err->text, strlen(err->text));
    if (err->field[0] != '\0') {
        status |= buf_append_text(out, ",\"field\":");
        status |= json_write_string(out, err->field, strlen(err->field));
    }
    status |= buf_append_text(out, ",\"request_id\":");
    status |= json_write_string(out, task->request->id, strlen(task->request->id));
    return status | buf_append_text(out, "}");
}

void out_finish(struct task *task, bool complete, const struct err *err)
{
    struct sink *sink = task->out.sink;
    if (sink == NULL)
        return;
    loop_timer_stop(&task->out.heartbeat);
    if (err != NULL && task->out.sse) {
        struct buf problem, event;
        buf_init(&problem, 4096);
        buf_init(&event, 8192);
        if (append_problem(&problem, task, err) == 0 &&
            sse_append(&event, "error", NULL, problem.data, problem.len) == 0 &&
            sink_write(sink, event.data, event.len) == SINK_GONE)
            complete = false; /* nobody reads it: all the same */
        buf_deinit(&problem);
        buf_deinit(&event);
    }
    sink->on_drain = NULL;
    sink->on_gone = NULL;
    sink->producer = NULL;
    task->out.sink = NULL;
    sink_end(sink, complete);
    sink_unref(sink);
}

static int wait_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    struct task *task = *(struct task **)context;
    lua_pushboolean(L, !task->out.sink->gone);
    return 1;
}

static void on_wait_cancel(void *op)
{
    (*(struct task **)op)->out.waiting = false;
}

/* Answers what sink_write said, to the script; waits where it was SINK_FULL. */
static int answer(lua_State *L, struct task *task, enum sink_write result)
{
    if (result != SINK_FULL || task->out.sink->gone) {
        lua_pushboolean(L, result != SINK_GONE);
        return 1;
    }
    struct task **op = task_op_new(L, sizeof(*op), true, on_wait_cancel);
    *op = task;
    task->out.waiting = true;
    return lua_yieldk(L, 0, (lua_KContext)op, wait_done);
}

static enum sink_write send(struct task *task, const char *bytes, size_t len)
{
    task->out.last_write_ms = loop_now_ms(task->vm->loop);
    return sink_write(task->out.sink, bytes, len);
}

/* out:write(bytes) -> true | false when the client is gone.  Yields. */
static int out_write(lua_State *L)
{
    struct task *task = check_out(L, 1);
    size_t len;
    const char *bytes = luaL_checklstring(L, 2, &len);
    task_check(L);
    return answer(L, task, send(task, bytes, len));
}

static const char *line_arg(lua_State *L, int arg)
{
    size_t len;
    const char *text = luaL_checklstring(L, arg, &len);
    luaL_argcheck(L, strcspn(text, "\r\n") == len, arg, "must be one line");
    return text;
}

/* out:event(name, table [, id]) -> true | false when the client is gone.  Yields. */
static int out_event(lua_State *L)
{
    struct task *task = check_out(L, 1);
    const char *name = line_arg(L, 2);
    const char *id = lua_isnoneornil(L, 4) ? NULL : line_arg(L, 4);
    task_check(L);
    if (!task->out.sse)
        return luaL_error(L, "events need the content type text/event-stream");
    struct buf json, event; /* nothing below raises before they are freed */
    struct err err = {0};
    enum sink_write result = SINK_GONE;
    buf_init(&json, SINK_MAX_BYTES / 2);
    buf_init(&event, SINK_MAX_BYTES);
    int status = lua_isnoneornil(L, 3) ? 0 : lua_write_json(L, 3, &json, &err);
    if (status == 0 && sse_append(&event, name, id, json.data, json.len) != 0)
        status = err_set(&err, ERR_INTERNAL, "the event is too large");
    if (status == 0)
        result = send(task, event.data, event.len);
    buf_deinit(&json);
    buf_deinit(&event);
    if (status != 0)
        return luaL_argerror(L, 3, lua_pushstring(L, err.text));
    return answer(L, task, result);
}

void out_push(lua_State *L, struct task *task)
{
    struct out_ud *ud = lua_newuserdatauv(L, sizeof(*ud), 0);
    ud->task = task;
    ud->serial = task->serial;
    mark_set(L, -1, task->vm->out_meta);
}

void out_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg methods[] = {{"write", out_write}, {"event", out_event}, {NULL, NULL}};
    vm->out_meta = mark_new(L, "output stream", NULL, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->out_meta);
    luaL_newlib(L, methods);
    sandbox_freeze(L);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
