/* The lines that go between a worker and us: JSON-RPC 2.0, one message each; called by prim/worker. What a message
 * carries is cut out of the line as it stands: no tree is built. */
#ifndef ABX_PRIM_WORKER_LINE_H
#define ABX_PRIM_WORKER_LINE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct worker_line {
    enum {
        WORKER_LINE_RESULT, /* body: the value of `result` */
        WORKER_LINE_ERROR,  /* body: the value of `error`, an object */
        WORKER_LINE_NOTICE, /* body: the value of `params`, an object; id stands in it */
    } kind;
    uint64_t id;
    const char *method; /* of a notice; without escapes */
    size_t method_len;
    const char *body; /* valid JSON */
    size_t body_len;
};

/* The parts of a line (without its end), which they point into. ERR_INVALID_JSON for what is no JSON, and for all that
 * is no message of a worker: no object, a member twice, no id from 1 to 2^63 - 1, result and error at once. Members
 * with other names are skipped. Linear. */
int worker_line_parse(const char *line, size_t len, struct worker_line *out, struct err *err) ABX_MUST_USE;

/* Append a request, or the notification that asks to stop one, with the end of the line. params may hold line ends
 * between its tokens, which become blanks. -1: out is full, and as it was. */
int worker_line_call(struct buf *out, uint64_t id, const char *method, const char *params,
                     size_t params_len) ABX_MUST_USE;
int worker_line_cancel(struct buf *out, uint64_t id) ABX_MUST_USE;

#endif
