/* The pipe between the producer of an answer (a task, the ring pump) and net. */
#include "model/sink.h"

#include <stdlib.h>

enum { SINK_KEEP_BYTES = 1024 * 1024 };

struct sink *sink_new(void)
{
    struct sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return NULL;
    buf_init(&sink->buf, SINK_MAX_BYTES);
    sink->references = 2;
    return sink;
}

void sink_unref(struct sink *sink)
{
    if (!sink || --sink->references > 0)
        return;
    buf_deinit(&sink->buf);
    free(sink);
}

static size_t pending(const struct sink *sink)
{
    return sink->buf.len - sink->taken;
}

/* While net looks at it, what it does must not call the producer back. */
static void tell_net(struct sink *sink)
{
    if (!sink->on_ready || sink->gone)
        return;
    sink->inside++;
    sink->on_ready(sink->net);
    sink->inside--;
}

enum sink_write sink_write(struct sink *sink, const void *bytes, size_t len)
{
    if (sink->gone || sink->state != SINK_OPEN)
        return SINK_GONE;
    /* Compact before growing, so that a stream stays in flat memory. */
    if (sink->taken > 0 && sink->buf.len + len > sink->buf.cap) {
        buf_consume(&sink->buf, sink->taken);
        sink->taken = 0;
    }
    if (buf_append(&sink->buf, bytes, len) < 0) {
        sink_end(sink, false);
        return SINK_GONE;
    }
    tell_net(sink);
    if (sink->gone)
        return SINK_GONE;
    if (pending(sink) < SINK_HIGH_WATER_BYTES)
        return SINK_OK; /* a wait that an earlier write began goes on: it is over below half, not here */
    sink->waiting = true;
    return SINK_FULL;
}

size_t sink_room(const struct sink *sink)
{
    size_t used = pending(sink);
    return used < SINK_HIGH_WATER_BYTES ? SINK_HIGH_WATER_BYTES - used : 0;
}

void sink_end(struct sink *sink, bool complete)
{
    if (sink->state != SINK_OPEN)
        return;
    sink->state = complete ? SINK_DONE : SINK_ABORTED;
    tell_net(sink);
}

const char *sink_peek(const struct sink *sink, size_t *out_len)
{
    *out_len = pending(sink);
    return *out_len ? sink->buf.data + sink->taken : NULL;
}

void sink_take(struct sink *sink, size_t len)
{
    sink->taken += len < pending(sink) ? len : pending(sink);
    if (sink->taken == sink->buf.len) {
        sink->taken = 0;
        if (sink->buf.cap > SINK_KEEP_BYTES)
            buf_deinit(&sink->buf);
        else
            buf_reset(&sink->buf);
    }
    if (!sink->waiting || sink->inside || sink->state != SINK_OPEN || pending(sink) >= SINK_HIGH_WATER_BYTES / 2)
        return;
    sink->waiting = false;
    if (sink->on_drain)
        sink->on_drain(sink->producer);
}

void sink_close(struct sink *sink)
{
    if (sink->gone)
        return;
    sink->gone = true;
    sink->on_ready = NULL;
    buf_deinit(&sink->buf);
    sink->taken = 0;
    if (!sink->inside && sink->state == SINK_OPEN && sink->on_gone)
        sink->on_gone(sink->producer);
}
