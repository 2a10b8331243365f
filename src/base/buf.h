/* A growable byte buffer that is told its maximum when it is made. */
#ifndef ABX_BASE_BUF_H
#define ABX_BASE_BUF_H

#include "base/err.h"

#include <stddef.h>

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

/* Drops len bytes at the front (moves the rest down). */
void buf_consume(struct buf *buf, size_t len);
/* Hands the memory to the caller, who frees it with free(); *out_len its length. The buffer is empty then. */
char *buf_steal(struct buf *buf, size_t *out_len);

#endif
