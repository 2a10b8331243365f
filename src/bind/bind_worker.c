/* Calls to workers and what becomes of them; see the header. */
#include "bind/bind_worker.h"

#include "bind/host.h"
#include "model/value.h"
#include "script/bindings.h"

#include <string.h>

/* Of a refusal: lists of conflicting files. */
enum { REFUSAL_MAX_BYTES = 64 * 1024 * 1024 };

struct call_op {
    struct task *task;
    struct bind_worker ask;
    struct worker_call call;
};

/* The continuation frees the operation, so what is needed afterwards is copied. */
static void on_done(struct worker_call *call)
{
    struct call_op *op = call->ctx;
    struct worker *single = op->ask.single ? op->ask.worker : NULL;
    if (op->ask.on_done)
        op->ask.on_done(op->ask.ctx, call);
    task_resume(op->task);
    worker_retire(single);
}

static void on_sent(struct worker_call *call)
{
    struct call_op *op = call->ctx;
    if (op->ask.on_sent)
        op->ask.on_sent(op->ask.ctx, call->process);
}

static void on_cancel(void *ctx)
{
    struct call_op *op = ctx;
    worker_call_cancel(&op->call);
    if (op->ask.single && op->call.process)
        op->ask.on_cancelled(op->ask.ctx, op->ask.worker);
    else if (op->ask.single)
        worker_retire(op->ask.worker);
}

static const char *text_of(const struct value *object, const char *name)
{
    const struct value *member = object ? value_member(object, name, strlen(name)) : NULL;
    return member && member->type == VALUE_STRING ? member->as.string.text : NULL;
}

/* The same whether the worker saw it itself or had to be ended. */
static void set_late(struct err *err, const struct bind_worker *ask)
{
    err_set(err, ERR_UPSTREAM_TIMEOUT, "%s did not end within timeout_ms (%llu) and was stopped", ask->what,
            (unsigned long long)ask->timeout_ms);
}

/* nil, code, message, field, data */
static int push_refusal(lua_State *L, const struct bind_worker *ask, const char *answer, size_t len)
{
    struct err err;
    struct value refusal;
    struct arena *arena = lua_push_arena(L, REFUSAL_MAX_BYTES);
    if (value_parse(arena, answer, len, &refusal, &err) != 0) {
        arena_deinit(arena);
        err_set(&err, ERR_INTERNAL, "%s: a refusal that cannot be read", ask->what);
        return lua_push_err(L, &err);
    }
    const struct value *data = value_member(&refusal, "data", 4);
    const char *code = text_of(data, "code"), *message = text_of(&refusal, "message"), *field = text_of(data, "field");
    enum err_code known = code ? err_code_find(code) : ERR_NONE;
    err_set(&err, known != ERR_NONE ? known : ERR_INTERNAL, "%s", message ? message : ask->what);
    if (known == ERR_UPSTREAM_TIMEOUT && !(ask->tells_late && message))
        set_late(&err, ask);
    if (field)
        err_field(&err, field);
    int count = lua_push_err(L, &err);
    if (data && data->type == VALUE_OBJECT)
        lua_push_value(L, data);
    else
        lua_createtable(L, 0, 0);
    arena_deinit(arena);
    return count + 1;
}

static int call_done(lua_State *L, int status, lua_KContext context)
{
    struct call_op *op = (struct call_op *)context;
    const struct host *host = script_host(L);
    struct worker_call *call = &op->call;
    struct err err = call->err;
    (void)status;
    switch (call->outcome) {
    case WORKER_ANSWERED:
        return op->ask.push(L, op->ask.ctx, call->answer, call->answer_len);
    case WORKER_REFUSED:
        return push_refusal(L, &op->ask, call->answer, call->answer_len);
    case WORKER_LATE:
        set_late(&err, &op->ask);
        break;
    case WORKER_ENDED:
        if (op->ask.ended != ERR_NONE)
            err.code = op->ask.ended;
        break;
    case WORKER_FAILED:
        break;
    }
    if (call->outcome == WORKER_ENDED && host->draining)
        err_set(&err, ERR_SHUTTING_DOWN, "%s: the server is shutting down", op->ask.what);
    return lua_push_err(L, &err);
}

int bind_worker_call(lua_State *L, const struct bind_worker *ask)
{
    struct err err;
    struct task *task = task_check(L);
    if (!ask->worker) {
        err_set(&err, ERR_UNAVAILABLE, "%s: out of memory", ask->what);
        return lua_push_err(L, &err);
    }
    struct call_op *op = task_op_new(L, sizeof(*op), true, on_cancel);
    op->task = task;
    op->ask = *ask;
    op->call = (struct worker_call){
        .method = ask->method,
        .params = ask->params->data,
        .params_len = ask->params->len,
        .deadline_ms = ask->timeout_ms + BIND_WORKER_PATIENCE_MS,
        .ctx = op,
        .on_sent = on_sent,
        .on_done = on_done,
    };
    if (worker_call_start(ask->worker, &op->call, &err) == 0)
        return lua_yieldk(L, 0, (lua_KContext)op, call_done);
    if (ask->single)
        worker_retire(ask->worker);
    task_op_end(L);
    return lua_push_err(L, &err);
}
