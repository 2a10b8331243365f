/* What a run kept of its output, on its way to Lua and into answers: little is made into text at once, much on the
 * pool. Called by bind_run and bind_code. */
#include "bind/bind_output.h"

#include "prim/capture_text.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* More goes to the pool: the worst of this takes some 5 ms. */
enum { ON_LOOP_MAX_BYTES = 256 * 1024, SCRATCH_MAX_BYTES = 128 * 1024 * 1024 };

static const char *const stream_names[][2] = {{"stdout", "stdout_bytes"}, {"stderr", "stderr_bytes"}};

void bind_output_init(struct bind_output *output)
{
    *output = (struct bind_output){0};
    for (int i = 0; i < 2; i++)
        buf_init(&output->scratch[i], SCRATCH_MAX_BYTES);
}

void bind_output_deinit(struct bind_output *output)
{
    for (int i = 0; i < 2; i++)
        buf_deinit(&output->scratch[i]);
}

static struct capture_text text_arg(lua_State *L, const struct bind_output *output)
{
    static const char *const encodings[] = {"utf-8", "base64", NULL};
    struct capture_text how = {
        .base64 = luaL_checkoption(L, 2, "utf-8", encodings) == 1,
        .running = output->more,
    };
    if (process_kind(output->process) == PROCESS_TERMINAL)
        luaL_error(L, "the output of a terminal is for its WebSocket clients");
    if (!output->captures)
        luaL_error(L, "this run keeps no output: start it with capture_bytes");
    return how;
}

/* Borrowed: of use until the loop goes on. */
static void view_both(const struct bind_output *output, struct capture_view views[2])
{
    process_captured(output->process, PROCESS_STDOUT, &views[PROCESS_STDOUT]);
    process_captured(output->process, PROCESS_STDERR, &views[PROCESS_STDERR]);
}

/* Sets NAME, from the top, and NAME_bytes in the table below it, and whether it was cut in the table below that. */
static void set_stream(lua_State *L, enum process_stream stream, const struct capture_view *view)
{
    lua_setfield(L, -2, stream_names[stream][0]);
    lua_pushinteger(L, (lua_Integer)view->total_bytes);
    lua_setfield(L, -2, stream_names[stream][1]);
    lua_pushboolean(L, view->total_bytes > view->head_len + view->tail_len);
    lua_setfield(L, -3, stream_names[stream][0]);
}

/* Ends the table on top: what is below it, `truncated`, goes into it. */
static void set_rest(lua_State *L, bool lossy)
{
    lua_pushboolean(L, lossy);
    lua_setfield(L, -2, "lossy");
    lua_insert(L, -2);
    lua_setfield(L, -2, "truncated");
}

static void push_tables(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_createtable(L, 0, 6);
}

static int push_text(lua_State *L, struct bind_output *output, const struct capture_view views[2],
                     const struct capture_text *how)
{
    bool lossy = false;
    push_tables(L);
    for (int i = 0; i < 2; i++) {
        struct buf *text = &output->scratch[i];
        buf_reset(text);
        if (capture_text_append(text, &views[i], how, &lossy) != 0)
            luaL_error(L, "out of memory for the output of %s", process_id(output->process));
        lua_pushlstring(L, text->len > 0 ? text->data : "", text->len);
        buf_deinit(text);
        set_stream(L, i, &views[i]);
    }
    set_rest(L, lossy);
    return 1;
}

int bind_output_captured(lua_State *L, struct bind_output *output)
{
    struct capture_text how = text_arg(L, output);
    struct capture_view views[2];
    view_both(output, views);
    return push_text(L, output, views, &how);
}

/* --- on the pool */

/* Makes the text on the pool: plain data, a copy of what was captured. */
struct text_job {
    struct task *task; /* NULL once the request is gone */
    struct capture_text how;
    struct {
        struct capture_view view;
        char *bytes; /* what the view shows */
        struct buf text;
    } streams[2];
    bool lossy, failed;
};

struct text_op {
    struct text_job *job;
    struct bind_output *output; /* in a userdata on the task's stack */
};

static void text_job_free(struct text_job *job)
{
    for (int i = 0; i < 2; i++) {
        free(job->streams[i].bytes);
        buf_deinit(&job->streams[i].text);
    }
    free(job);
}

static struct text_job *text_job_new(struct task *task, const struct capture_view views[2],
                                     const struct capture_text *how)
{
    struct text_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return NULL;
    job->task = task;
    job->how = *how;
    job->how.json = true;
    for (int i = 0; i < 2; i++) {
        struct capture_view *view = &job->streams[i].view;
        *view = views[i];
        buf_init(&job->streams[i].text, RESPONSE_BODY_MAX_BYTES);
        char *bytes = job->streams[i].bytes = malloc(view->head_len + view->tail_len + 1);
        if (bytes == NULL) {
            text_job_free(job);
            return NULL;
        }
        if (view->head_len > 0)
            memcpy(bytes, view->head, view->head_len);
        if (view->tail_len > 0)
            memcpy(bytes + view->head_len, view->tail, view->tail_len);
        view->head = bytes;
        view->tail = bytes + view->head_len;
    }
    return job;
}

static void text_work(void *ctx)
{
    struct text_job *job = ctx;
    for (int i = 0; i < 2 && !job->failed; i++) {
        job->failed = capture_text_append(&job->streams[i].text, &job->streams[i].view, &job->how, &job->lossy) != 0;
        free(job->streams[i].bytes);
        job->streams[i].bytes = NULL;
    }
}

static void on_text_done(void *ctx)
{
    struct text_job *job = ctx;
    if (job->task != NULL)
        task_resume(job->task);
    else
        text_job_free(job);
}

static void text_cancel(void *op)
{
    ((struct text_op *)op)->job->task = NULL; /* freed when it comes back */
}

static int text_taken(lua_State *L, int status, lua_KContext context)
{
    struct text_job *job = ((struct text_op *)context)->job;
    struct bind_output *output = ((struct text_op *)context)->output;
    struct capture_view views[2];
    bool lossy = job->lossy, failed = job->failed;
    (void)status;
    for (int i = 0; i < 2; i++) { /* what follows can raise: these have the text until a value has it */
        views[i] = job->streams[i].view;
        buf_deinit(&output->scratch[i]);
        output->scratch[i] = job->streams[i].text;
        buf_init(&job->streams[i].text, 0);
    }
    text_job_free(job);
    if (failed)
        return luaL_error(L, "the output of %s is too much for an answer", process_id(output->process));
    push_tables(L);
    for (int i = 0; i < 2; i++) {
        size_t len;
        char *text = buf_steal(&output->scratch[i], &len);
        lua_push_raw_json(L, text, len);
        set_stream(L, i, &views[i]);
    }
    set_rest(L, lossy);
    return 1;
}

int bind_output_answer(lua_State *L, struct bind_output *output)
{
    struct capture_text how = text_arg(L, output);
    struct task *task = task_check(L);
    struct capture_view views[2];
    view_both(output, views);
    if (views[0].head_len + views[0].tail_len + views[1].head_len + views[1].tail_len <= ON_LOOP_MAX_BYTES)
        return push_text(L, output, views, &how);
    /* Bounded: it always ends, and what a run said must not be lost to a slow machine. */
    struct text_op *op = task_op_new(L, sizeof(*op), true, text_cancel);
    op->output = output;
    op->job = text_job_new(task, views, &how);
    if (op->job == NULL || loop_job(script_loop(L), text_work, on_text_done, op->job) != 0) {
        if (op->job != NULL)
            text_job_free(op->job);
        task_op_end(L);
        return luaL_error(L, "out of memory for the output of %s", process_id(output->process));
    }
    return lua_yieldk(L, 0, (lua_KContext)op, text_taken);
}
