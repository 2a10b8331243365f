/* A stand-in for script/generation and script/task, for tests of the rooms above them: "handlers" are C functions,
 * chosen by route->handler_ref. Include it in one file of a test program only. */
#ifndef ABX_TESTS_FAKE_SCRIPT_H
#define ABX_TESTS_FAKE_SCRIPT_H

#include "script/generation.h"
#include "script/task.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct generation {
    int references;
    const struct route *routes;
    size_t count;
};

struct task {
    struct request *request;
    const struct task_events *events;
    void *ctx;
    struct task **slot;
    struct sink *sink; /* of a streaming answer */
    void (*on_cancel)(struct task *task);
};

typedef void (*fake_handler)(struct task *task);

static fake_handler *fake_handlers;
static struct task *fake_last_task; /* the newest one that waits */
static int fake_cancelled, fake_living;

struct generation *generation_ref(struct generation *generation)
{
    generation->references++;
    return generation;
}

void generation_unref(struct generation *generation)
{
    if (generation)
        generation->references--;
}

size_t generation_route_count(const struct generation *generation)
{
    return generation->count;
}

const struct route *generation_route(const struct generation *generation, size_t index)
{
    return &generation->routes[index];
}

void task_start(struct generation *generation, const struct route *route, struct request *request,
                const struct task_events *events, void *ctx, struct task **out)
{
    struct task *task = calloc(1, sizeof(*task));

    (void)generation;
    assert(task);
    *task = (struct task){.request = request, .events = events, .ctx = ctx, .slot = out};
    *out = task;
    fake_living++;
    fake_last_task = task;
    fake_handlers[route->handler_ref](task);
}

static inline void fake_free(struct task *task)
{
    if (task->sink) {
        sink_end(task->sink, false);
        task->sink->on_drain = task->sink->on_gone = NULL;
        sink_unref(task->sink);
    }
    if (fake_last_task == task)
        fake_last_task = NULL;
    fake_living--;
    free(task);
}

void task_cancel(struct task *task)
{
    fake_cancelled++;
    if (task->on_cancel)
        task->on_cancel(task);
    fake_free(task);
}

static inline void fake_end(struct task *task)
{
    const struct task_events *events = task->events;
    void *ctx = task->ctx;

    fake_free(task);
    events->on_end(ctx);
}

static inline void fake_reply(struct task *task, int status, const char *type, const char *text)
{
    struct response response;
    int failed;

    response_init(&response);
    response.status = status;
    failed = buf_append_text(&response.bytes, text) | response_header(&response, "Content-Type", type);
    assert(!failed);
    (void)failed;
    task->events->on_response(task->ctx, &response);
    response_deinit(&response); /* as the real one does: nothing is left in it */
    fake_end(task);
}

static inline void fake_stream(struct task *task, const char *type)
{
    struct response response;
    int failed;

    response_init(&response);
    response.kind = RESPONSE_STREAM;
    failed = response_header(&response, "Content-Type", type);
    task->sink = response.sink = sink_new();
    assert(!failed && task->sink);
    (void)failed;
    task->events->on_response(task->ctx, &response);
    response_deinit(&response); /* as the real one does: nothing is left in it */
}

#endif
