/* A growable byte buffer that is told its maximum when it is made. */
#ifndef ABX_BASE_BUF_H
#define ABX_BASE_BUF_H

#include "base/err.h"

#include <stddef.h>
#include <string.h>

struct buf {
    char *data; /* NULL while empty; not NUL-terminated */
    size_t len, cap, max;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_deinit(struct buf *buf); /* frees; the buffer may be used again */
void buf_reset(struct buf *buf);  /* len = 0, keeps the memory */

/* All answer 0, or -1 when the maximum would be passed or memory is out: then the buffer is as it was. */
int buf_reserve(struct buf *buf, size_t more) ABX_MUST_USE;
int buf_append(struct buf *buf, const void *bytes, size_t len) ABX_MUST_USE;
int buf_append_text(struct buf *buf, const char *text) ABX_MUST_USE;
int buf_printf(struct buf *buf, const char *fmt, ...) ABX_PRINTF(2, 3) ABX_MUST_USE;

/* buf_append where there is room already, without a call: for loops that append a few bytes at a time. */
static inline int buf_append_few(struct buf *buf, const char *bytes, size_t len)
{
    if (buf->cap - buf->len < len)
        return buf_append(buf, bytes, len);
    if (len > 0)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    return 0;
}

/* Drops len bytes at the front (moves the rest down). */
void buf_consume(struct buf *buf, size_t len);
/* Hands the memory to the caller, who frees it with free(); *out_len its length. The buffer is empty then. */
char *buf_steal(struct buf *buf, size_t *out_len);

#endif
