/* One context: its cells one after another. A process is told the environment by `open` before its first cell; part of
 * the contexts. */
#include "base/json.h"
#include "base/json_member.h"
#include "prim/contexts_internal.h"
#include "prim/process_marker.h"
#include "prim/worker_refusal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPEN_DEADLINE_MS = 60 * 1000, /* IPython's import from a cold disk, on a busy machine */
};

static struct context_cell *first_cell(struct context *context)
{
    return list_empty(&context->cells) ? NULL : LIST_ENTRY(context->cells.next, struct context_cell, node);
}

static void forget_process(struct context *context)
{
    process_unref(context->opened);
    context->opened = NULL;
}

void context_lose_state(struct context *context)
{
    forget_process(context);
    context->lost = context->lost || context->has_state;
    context->has_state = false;
}

static void fail(struct context_cell *cell)
{
    cell->outcome = WORKER_FAILED;
    cell->done = true;
    cell->on_done(cell);
}

/* --- a cell runs */

static void on_sent(struct worker_call *call)
{
    struct context_cell *cell = call->ctx;
    struct context *context = cell->context;
    if (call->process != context->opened) { /* the one that was opened ended meanwhile; this one's environment is new */
        context_lose_state(context);
        context->opened = process_ref(call->process);
    }
    cell->process = call->process;
    cell->sent = true;
    cell->restarted = context->lost;
    context->lost = false;
    context->has_state = true;
    snprintf(cell->engine, sizeof(cell->engine), "%s", context->engine);
    cell->on_begin(cell);
}

static void on_notice(struct worker_call *call, const char *method, size_t method_len, const char *params, size_t len)
{
    struct context_cell *cell = call->ctx;
    struct json_span data = json_member(params, len, "data");
    if (method_len == strlen("result") && memcmp(method, "result", method_len) == 0 && json_span_kind(data) == '{')
        cell->on_result(cell, data.text, data.len);
}

static void on_done(struct worker_call *call)
{
    struct context_cell *cell = call->ctx;
    cell->outcome = call->outcome;
    cell->answer = call->answer;
    cell->answer_len = call->answer_len;
    cell->exit = call->exit;
    cell->err = call->err;
    cell->done = true;
    cell->on_done(cell);
}

static void execute(struct context *context, struct context_cell *cell)
{
    cell->call = (struct worker_call){
        .method = "execute",
        .params = cell->params,
        .params_len = cell->params_len,
        .deadline_ms = cell->timeout_ms > 0 ? cell->timeout_ms + CONTEXT_KILL_MS : 0,
        .ctx = cell,
        .on_sent = on_sent,
        .on_notice = on_notice,
        .on_done = on_done,
    };
    if (worker_call_start(context->worker, &cell->call, &cell->err) != 0)
        fail(cell);
}

/* --- a process is opened */

/* What is no variable of the client's: where a worker's private files are, and who it is. */
static bool is_own(const char *var)
{
    static const char *const names[] = {"HOME=", "TMPDIR=", PROCESS_MARKER "="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(var, names[i], strlen(names[i])) == 0)
            return true;
    return strncmp(var, "XDG_", strlen("XDG_")) == 0;
}

static int write_open_params(struct context *context)
{
    const struct env_block *env = process_table_env(context->contexts->processes);
    struct buf *out = &context->open_params;
    buf_reset(out);
    int failed = buf_append_text(out, "{\"env\":{");
    size_t written = 0;
    for (size_t i = 0; i < env->count; i++) {
        const char *var = env->vars[i], *equals = strchr(var, '=');
        if (is_own(var))
            continue;
        failed |= written++ > 0 ? buf_append(out, ",", 1) : 0;
        failed |= json_write_string(out, var, (size_t)(equals - var));
        failed |= buf_append(out, ":", 1);
        failed |= json_write_string(out, equals + 1, strlen(equals + 1));
    }
    failed |= json_write_text(out, "},\"cwd\":", context->contexts->cwd);
    failed |= buf_append(out, "}", 1);
    return failed;
}

/* Copies a plain string of an answer; what is none is left out. */
static void copy_text(struct json_span span, char *out, size_t out_size)
{
    out[0] = '\0';
    if (json_span_kind(span) == '"' && memchr(span.text, '\\', span.len) == NULL)
        snprintf(out, out_size, "%.*s", (int)(span.len - 2), span.text + 1);
}

static void on_opened(struct worker_call *call)
{
    struct context *context = call->ctx;
    context->opening = false;
    buf_deinit(&context->open_params);
    context_lose_state(context);
    /* Killed by somebody, or by the kernel, as a spare may be at any time: once more, with a fresh one. */
    bool again = call->outcome == WORKER_ENDED && !context->opened_in_vain;
    context->opened_in_vain = again;
    if (call->outcome == WORKER_ANSWERED) {
        context->opened = process_ref(call->process);
        copy_text(json_member(call->answer, call->answer_len, "engine"), context->engine, sizeof(context->engine));
        contexts_want_spare(context->contexts, context->language);
        context_advance_soon(context);
        return;
    }
    struct context_cell *cell = first_cell(context);
    if (cell == NULL || again) {
        context_advance_soon(context);
        return;
    }
    cell->err = call->err;
    if (call->outcome == WORKER_ENDED)
        cell->err.code = ERR_UNAVAILABLE;
    else if (call->outcome == WORKER_REFUSED)
        worker_refusal_read(call->answer, call->answer_len, &cell->err);
    fail(cell);
}

static void open_process(struct context *context, struct context_cell *cell)
{
    int failed = write_open_params(context);
    if (failed)
        err_set(&cell->err, ERR_INTERNAL, "out of memory for an environment");
    context->open = (struct worker_call){
        .method = "open",
        .params = context->open_params.data,
        .params_len = context->open_params.len,
        .deadline_ms = OPEN_DEADLINE_MS,
        .ctx = context,
        .on_done = on_opened,
    };
    if (failed || worker_call_start(context->worker, &context->open, &cell->err) != 0)
        fail(cell);
    else
        context->opening = true;
}

/* --- turns */

/* With a state nobody may see any more. -1 with the cell's err. */
static int reset(struct context *context, struct context_cell *cell)
{
    struct worker *worker = contexts_take_worker(context->contexts, context->language);
    if (worker == NULL)
        return err_set(&cell->err, ERR_INTERNAL, "out of memory for an interpreter");
    worker_retire(context->worker);
    context->worker = worker;
    context_lose_state(context);
    return 0;
}

static void advance(void *ctx)
{
    struct context *context = ctx;
    struct context_cell *cell = first_cell(context);
    if (context->opening)
        return;
    if (cell == NULL) {
        /* One that never ran (its program is missing, its client left) takes up no place. */
        if (!context->has_state)
            contexts_remove(context);
        return;
    }
    if (cell->sent || cell->done)
        return;
    if (cell->reset) {
        cell->reset = false;
        if (context->opened != NULL && reset(context, cell) != 0) {
            fail(cell);
            return;
        }
    }
    struct process *process = worker_process(context->worker);
    if (process != NULL && process == context->opened) {
        cell->sent = true; /* as far as turns go */
        execute(context, cell);
        return;
    }
    context_lose_state(context);
    open_process(context, cell);
}

void context_advance_soon(struct context *context)
{
    loop_defer_start(context->contexts->loop, &context->advance, advance, context);
}

void contexts_leave(struct context_cell *cell)
{
    struct context *context = cell->context;
    if (context == NULL)
        return;
    if (cell->sent && !cell->done)
        worker_call_cancel(&cell->call);
    list_remove(&cell->node);
    cell->context = NULL;
    cell->process = NULL;
    context->cell_count--;
    list_remove(&context->node);
    list_append(&context->contexts->list, &context->node);
    context_advance_soon(context);
}

void context_free(struct context *context)
{
    assert(list_empty(&context->cells));
    loop_defer_stop(&context->advance);
    if (context->opening)
        worker_call_cancel(&context->open);
    worker_retire(context->worker);
    forget_process(context);
    buf_deinit(&context->open_params);
    free(context);
}
