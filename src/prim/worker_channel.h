/* Our end of a worker's channel: a Unix stream socket that carries lines both ways. Embedded by prim/worker_run, main
 * thread only, never blocks. */
#ifndef ABX_PRIM_WORKER_CHANNEL_H
#define ABX_PRIM_WORKER_CHANNEL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct worker_channel {
    struct loop *loop;
    int fd; /* -1: closed, by us or by the other end */
    struct loop_fd *watch;
    struct buf in, out;
    size_t searched; /* of in: there is no end of a line before it */
    size_t sent;     /* of out */
    bool deaf;       /* the other end takes nothing any more */
    void *ctx;
    /* A line without its end, borrowed. The channel may be closed in there, but not given up (deinit). */
    void (*on_line)(void *ctx, const char *line, size_t len);
    /* Once: the other end closed it (why is NULL), or it cannot go on; it is closed afterwards. From the loop, or from
     * worker_channel_finish. */
    void (*on_closed)(void *ctx, const char *why);
};

/* Makes the pair; *out_theirs, close-on-exec and blocking, is the caller's. line_max_bytes bounds what comes in,
 * out_max_bytes what waits to go out. The last three members are the caller's to fill in. */
int worker_channel_open(struct worker_channel *channel, struct loop *loop, size_t line_max_bytes, size_t out_max_bytes,
                        int *out_theirs, struct err *err) ABX_MUST_USE;
/* Sends what was appended to channel->out; what does not go now follows. */
void worker_channel_send(struct worker_channel *channel);
/* Reads what has come until now, after the end of the program: all its whole lines. */
void worker_channel_finish(struct worker_channel *channel);
/* Nothing is called any more. What on_line borrowed stays until deinit. */
void worker_channel_close(struct worker_channel *channel);
void worker_channel_deinit(struct worker_channel *channel);

#endif
