/* Tasks: the handler's coroutine from its start to its end, and every way in which it can end; see task.h. Called by
 * the pipeline, and through bindings.h by the operations that resume it. */
#include "script/task_state.h"

#include "script/bindings.h"
#include "script/budget.h"
#include "script/failure.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_CPU_MS = 100 };

/* ---- failing ---- */

static void fail(struct task *task, const struct err *err, char *details)
{
    free(task->details);
    task->failed = true;
    task->failure = *err;
    task->details = details;
}

void task_fail_internal(struct task *task, const char *fmt, ...)
{
    struct err err;
    char *details = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&details, fmt, args) < 0)
        details = NULL;
    va_end(args);
    err_set(&err, ERR_INTERNAL, "the handler failed; the log has the details under this request id");
    fail(task, &err, details);
}

static void fail_timeout(struct task *task, const char *what, unsigned limit_ms)
{
    struct err err;
    char *details = NULL;
    err_set(&err, ERR_HANDLER_TIMEOUT, "the handler was ended: %s of %u ms", what, limit_ms);
    fail(task, &err, asprintf(&details, "%s", err.text) < 0 ? NULL : details);
}

/* The error value on top of L, after a run that ended with it. Raw access only: this is outside of any protected call.
 */
static void fail_raised(struct task *task, lua_State *L, int status)
{
    struct err err;
    if (status == LUA_ERRMEM || !lua_checkstack(L, 4)) {
        vm_tell_kept(task->vm);
        task_fail_internal(task, "out of memory: a request may take %zu bytes", task->vm->task_bytes);
        return;
    }
    if (lua_type(L, -1) == LUA_TTABLE && failure_is(L, -1)) {
        failure_to_err(L, -1, &err);
        fail(task, &err, NULL);
        return;
    }
    char *traceback = task->details;
    task->details = NULL;
    if (traceback != NULL)
        task_fail_internal(task, "%s", traceback);
    else if (lua_type(L, -1) == LUA_TSTRING)
        task_fail_internal(task, "%s", lua_tostring(L, -1));
    else
        task_fail_internal(task, "a %s was raised", luaL_typename(L, -1));
    free(traceback);
}

/* Message handler below the handler: the stack is still there, so the traceback is taken here. */
static int on_raise(lua_State *L)
{
    struct task *task = task_of(L);
    if (budget_expired() || failure_is(L, 1))
        return 1;
    const char *message = lua_tostring(L, 1);
    if (message == NULL)
        message = lua_pushfstring(L, "a %s was raised", luaL_typename(L, 1));
    luaL_traceback(L, L, message, 1);
    free(task->details);
    task->details = strdup(lua_tostring(L, -1));
    lua_settop(L, 1);
    return 1;
}

/* ---- the code in the coroutine ---- */

static int handler_done(lua_State *L, int status, lua_KContext context)
{
    struct task *task = (struct task *)context;
    if (status == LUA_OK || status == LUA_YIELD)
        return reply_make(L, task);
    fail_raised(task, L, status);
    return 0;
}

static int run_handler(lua_State *L)
{
    struct task *task = task_of(L);
    lua_pushcfunction(L, on_raise);
    lua_rawgeti(L, LUA_REGISTRYINDEX, task->route->handler_ref);
    request_ud_push(L, task);
    /* Errors stop here, not at the coroutine's end: only then Lua allows hooks again before <close> variables run. */
    int status = lua_pcallk(L, 1, 1, 1, (lua_KContext)task, handler_done);
    return handler_done(L, status, (lua_KContext)task);
}

static int stream_done(lua_State *L, int status, lua_KContext context)
{
    if (status != LUA_OK && status != LUA_YIELD)
        fail_raised((struct task *)context, L, status);
    return 0;
}

static int run_stream(lua_State *L)
{
    struct task *task = task_of(L);
    lua_pushcfunction(L, on_raise);
    lua_insert(L, 1);
    out_push(L, task);
    int status = lua_pcallk(L, 1, 0, 1, (lua_KContext)task, stream_done);
    return stream_done(L, status, (lua_KContext)task);
}

/* ---- running ---- */

/* What the state was busy with before; runs may nest. */
struct run {
    struct task *running;
    struct account *charged;
    bool capped;
    struct budget budget;
};

static void run_enter(struct run *before, struct task *task, unsigned cpu_ms)
{
    struct vm *vm = task->vm;
    *before = (struct run){.running = vm->running, .charged = vm->charged, .capped = vm->capped};
    vm->running = task;
    vm->charged = task->account;
    vm->capped = true;
    budget_enter(&before->budget, task->L, cpu_ms);
}

static bool run_leave(const struct run *before, struct task *task)
{
    struct vm *vm = task->vm;
    bool expired = budget_leave(&before->budget, task->L);
    vm->running = before->running;
    vm->charged = before->charged;
    vm->capped = before->capped;
    return expired;
}

/* Empties the coroutine; pending <close> variables run now and may not wait. */
static void close_coroutine(struct task *task)
{
    task->phase = TASK_CLOSING;
    int state = lua_status(task->L);
    if (state != LUA_OK) {
        struct run before;
        run_enter(&before, task, CLOSE_CPU_MS);
        int status = lua_resetthread(task->L);
        run_leave(&before, task);
        if (state == LUA_YIELD && status != LUA_OK) { /* else it is the error that is known already */
            struct log_context who = task_log_context(task);
            const char *text = lua_type(task->L, -1) == LUA_TSTRING ? lua_tostring(task->L, -1) : "an error";
            log_write(LOG_LEVEL_WARN, "script", &who, "ending the handler: %s", text);
        }
    }
    lua_settop(task->L, 0);
}

static void cancel_op(struct task *task)
{
    void *op = task->op;
    if (op == NULL)
        return;
    task->op = NULL;
    if (task->op_cancel != NULL)
        task->op_cancel(op);
    free(op);
    out_attach(task);
}

static void abandon(struct task *task)
{
    loop_timer_stop(&task->deadline);
    cancel_op(task);
    close_coroutine(task);
}

static void log_failure(const struct task *task)
{
    if (task->details == NULL)
        return; /* an expected failure: the client's affair */
    struct log_context who = task_log_context(task);
    log_write(LOG_LEVEL_ERROR, "script", &who, "%s", task->details);
}

static void end(struct task *task)
{
    struct generation *generation = task->vm->generation;
    void (*on_end)(void *) = task->cancelled ? NULL : task->events.on_end;
    void *ctx = task->ctx;
    task_release_owned(task);
    task_give_back(task);
    if (on_end != NULL)
        on_end(ctx);
    generation_unref(generation); /* last: the callee may still look at the route */
}

/* The run is over and the coroutine empty, but for the stream function after a RESPONSE_STREAM. */
static void finish(struct task *task)
{
    task->phase = TASK_RUNNING; /* a task_cancel from inside the callbacks has to wait */
    if (task->failed)
        log_failure(task);
    if (!task->answered) {
        task->answered = true;
        if (task->failed) {
            task->events.on_error(task->ctx, &task->failure);
        } else {
            bool stream = task->response.kind == RESPONSE_STREAM;
            task->events.on_response(task->ctx, &task->response);
            response_deinit(&task->response);
            task->responded = false;
            if (stream && !task->cancelled) {
                lua_pushcfunction(task->L, run_stream);
                lua_insert(task->L, 1);
                task_advance(task, 1);
                return;
            }
            lua_settop(task->L, 0);
        }
    }
    out_finish(task, !task->failed && !task->cancelled, task->failed && !task->cancelled ? &task->failure : NULL);
    end(task);
}

static void on_deadline(void *ctx)
{
    struct task *task = ctx;
    fail_timeout(task, "it waited beyond its deadline", task->route->deadline_ms);
    abandon(task);
    finish(task);
}

static void suspend(struct task *task)
{
    task->phase = TASK_WAITING;
    if (task->route->deadline_ms == 0)
        return;
    task_spend(task);
    if (!task->op_bounded) {
        uint64_t late_ms = task->clock_ms - loop_now_ms(task->vm->loop); /* of the loop's clock, which timers go by */
        loop_timer_start(task->vm->loop, &task->deadline, task->left_ms + late_ms, on_deadline, task);
    } else if (task->left_ms == 0) { /* this wait does not count, and no timer would ever end what comes between */
        fail_timeout(task, "apart from its bounded waits it took longer than its deadline", task->route->deadline_ms);
        abandon(task);
        finish(task);
    }
}

void task_advance(struct task *task, int arguments)
{
    struct run before;
    int results;
    task->phase = TASK_RUNNING;
    run_enter(&before, task, task->vm->limits.cpu_ms);
    int status = lua_resume(task->L, task->vm->L, arguments, &results);
    bool expired = run_leave(&before, task);
    free(task->op_finished);
    task->op_finished = NULL;

    if (status == LUA_YIELD && task->op != NULL && !expired && !task->cancelled) {
        suspend(task);
        return;
    }
    if (expired && (status != LUA_OK || task->failed))
        fail_timeout(task, "it computed longer than its budget", task->vm->limits.cpu_ms);
    else if (status == LUA_YIELD)
        task_fail_internal(task, "the handler was suspended without an operation");
    else if (status != LUA_OK)
        fail_raised(task, task->L, status);
    if (status != LUA_OK || task->failed || task->answered || task->response.kind != RESPONSE_STREAM)
        abandon(task);
    if (task->cancelled) {
        out_finish(task, false, NULL);
        end(task);
        return;
    }
    finish(task);
}

void task_start(struct generation *generation, const struct route *route, struct request *request,
                const struct task_events *events, void *ctx, struct task **out)
{
    struct task *task = task_take(generation_vm(generation));
    *out = task;
    if (task == NULL)
        return;
    generation_ref(generation);
    task->route = route;
    task->request = request;
    task->events = *events;
    task->ctx = ctx;
    task->answered = false;
    task->left_ms = route->deadline_ms;
    task_clock_start(task);
    lua_pushcfunction(task->L, run_handler);
    task_advance(task, 0);
}

void task_drop(struct task *task)
{
    if (task->phase != TASK_WAITING)
        return;
    abandon(task);
    out_finish(task, false, NULL);
    end(task);
}

void task_cancel(struct task *task)
{
    task->cancelled = true;
    if (task->phase != TASK_WAITING) {
        task->request = NULL; /* its memory goes now, whatever the script still does */
        return;
    }
    abandon(task);
    out_finish(task, false, NULL);
    end(task);
}
