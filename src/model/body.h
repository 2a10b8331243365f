/* A request body on its way from net to the one that reads it, with back-pressure and without copies. Main thread only.
 */
#ifndef ABX_MODEL_BODY_H
#define ABX_MODEL_BODY_H

#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>

/* Zeroed by its owner, who fills in what net sets, and calls body_drop before it frees it. net pushes; whatever the
 * reader does not take is offered again after body_resume. */
struct body {
    /* set by the reader with body_read */
    size_t (*on_data)(void *ctx, const char *bytes, size_t len); /* how many bytes it took; less than len: "wait" */
    void (*on_end)(void *ctx, bool complete);                    /* once; complete is false where the client left */
    void *ctx;
    /* set by net */
    struct loop *loop;
    void (*wake)(void *net); /* bytes can be offered again (not from inside this call); NULL where none will come */
    void *net;
    bool ended, complete; /* a request without a body starts with both true */
    bool dropped;
    struct loop_defer start;
};

/* Starts reading (once for a body): on_data and on_end come from the loop, never from inside this call. */
void body_read(struct body *body, size_t (*on_data)(void *, const char *, size_t), void (*on_end)(void *, bool),
               void *ctx);
/* The reader can take bytes again. */
void body_resume(struct body *body);
/* The reader gives up: no callback comes any more, what still arrives is thrown away by net. */
void body_drop(struct body *body);

/* For net: offers bytes, answers how many were taken (0 while nobody reads, all after body_drop). */
size_t body_push(struct body *body, const char *bytes, size_t len);
/* For net: the body is over. A reader that is there is told at once, a later one from the loop. */
void body_end(struct body *body, bool complete);

#endif
