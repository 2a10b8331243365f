/* Hands a request body from net to its reader: pipeline owns it, bindings read it. */
#include "model/body.h"

#include <assert.h>

static void wake(struct body *body)
{
    if (body->wake)
        body->wake(body->net);
}

static void tell_end(struct body *body)
{
    void (*on_end)(void *, bool) = body->on_end;
    loop_defer_stop(&body->start);
    body->on_data = NULL;
    body->on_end = NULL;
    if (on_end)
        on_end(body->ctx, body->complete); /* may free the body */
}

static void on_start(void *ctx)
{
    struct body *body = ctx;
    if (body->ended)
        tell_end(body);
    else
        wake(body);
}

void body_read(struct body *body, size_t (*on_data)(void *, const char *, size_t), void (*on_end)(void *, bool),
               void *ctx)
{
    if (body->dropped)
        return;
    assert(body->loop && "whoever made the body sets its loop");
    body->on_data = on_data;
    body->on_end = on_end;
    body->ctx = ctx;
    loop_defer_start(body->loop, &body->start, on_start, body);
}

void body_resume(struct body *body)
{
    if (!body->ended && !body->start.pending)
        wake(body);
}

void body_drop(struct body *body)
{
    if (body->dropped)
        return;
    body->dropped = true;
    body->on_data = NULL;
    body->on_end = NULL;
    loop_defer_stop(&body->start);
    if (!body->ended)
        wake(body); /* net may be holding bytes that nobody will take now */
}

size_t body_push(struct body *body, const char *bytes, size_t len)
{
    if (body->dropped)
        return len;
    return body->on_data && len > 0 ? body->on_data(body->ctx, bytes, len) : 0;
}

void body_end(struct body *body, bool complete)
{
    if (body->ended)
        return;
    body->ended = true;
    body->complete = complete;
    tell_end(body);
}
