/* Server-sent events as the contract has them: `id:`, `event:`, one line of JSON `data:`. */
#ifndef ABX_MODEL_SSE_H
#define ABX_MODEL_SSE_H

#include "base/buf.h"

#include <stdint.h>

enum { SSE_HEARTBEAT_MS = 15000 };

/* Appends one event; id and json may be NULL ("{}"). json must be one line (our writer makes no newlines). -1 when the
 * buffer is full, or where a line break in event, id or json would forge a field: then the buffer is as it was. */
int sse_append(struct buf *out, const char *event, const char *id, const char *json, size_t json_len) ABX_MUST_USE;
/* Appends a comment line, which keeps idle connections alive. */
int sse_append_comment(struct buf *out) ABX_MUST_USE;

#endif
