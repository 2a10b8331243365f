/* An answer on its way from a producer to net, with back-pressure: a bounded buffer with two ends. Main thread only.
 *
 * The producer writes and ends it; net takes bytes out. Each end holds one of the two references, and the sink is freed
 * when both let go, so neither has to know whether the other still lives. */
#ifndef ABX_MODEL_SINK_H
#define ABX_MODEL_SINK_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Over this a writer should wait for on_drain, which comes below half of it. */
enum { SINK_HIGH_WATER_BYTES = 256 * 1024, SINK_MAX_BYTES = 64 * 1024 * 1024 };

enum sink_state {
    SINK_OPEN,
    SINK_DONE,    /* the producer ended it: all bytes, then a proper end */
    SINK_ABORTED, /* the producer failed: the connection must be cut, so that nobody takes it for whole */
};

struct sink {
    struct buf buf;
    size_t taken; /* bytes at the front of buf that net has taken already */
    enum sink_state state;
    bool gone; /* net's end closed: the client left */
    /* producer's callbacks, while the sink is open; called from the loop, never from inside a sink function that the
     * producer called (there the result of sink_write tells) */
    void (*on_drain)(void *ctx);
    void (*on_gone)(void *ctx);
    void *producer;
    /* net's: there is something to take, or the state changed. Called from inside sink_write and sink_end */
    void (*on_ready)(void *ctx);
    void *net;
    int references;
    bool waiting; /* the producer was told SINK_FULL */
    int inside;   /* depth of the producer's calls */
};

enum sink_write { SINK_GONE = -1, SINK_OK = 0, SINK_FULL = 1 };

/* NULL out of memory. Two references: one for the producer, one for net. */
struct sink *sink_new(void);
void sink_unref(struct sink *sink);

/* Producer. SINK_FULL means taken, but wait for on_drain before the next. SINK_GONE: nobody will read it (also when the
 * buffer would pass SINK_MAX_BYTES: then the sink is aborted). */
enum sink_write sink_write(struct sink *sink, const void *bytes, size_t len) __attribute__((warn_unused_result));
/* Room before the writer has to wait; 0 when full. */
size_t sink_room(const struct sink *sink);
/* Ends it, whole or cut; harmless the second time. The producer still calls sink_unref. */
void sink_end(struct sink *sink, bool complete);

/* Net. The bytes that can be taken now (NULL and 0: none). */
const char *sink_peek(const struct sink *sink, size_t *out_len);
/* Takes len of them; may call on_drain. */
void sink_take(struct sink *sink, size_t len);
/* The client left: calls on_gone once. Net still calls sink_unref. */
void sink_close(struct sink *sink);

#endif
