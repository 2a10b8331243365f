/* The byte buffer that everything growing is built on. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_BYTES = 64 };

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max = max_bytes};
}

void buf_deinit(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){.max = buf->max};
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
}

int buf_reserve(struct buf *buf, size_t more)
{
    if (more > buf->max || buf->len > buf->max - more)
        return -1;
    size_t needed = buf->len + more;
    if (needed <= buf->cap)
        return 0;

    size_t cap = buf->cap < BUF_FIRST_BYTES ? BUF_FIRST_BYTES : buf->cap;
    while (cap < needed)
        cap = cap > buf->max / 2 ? buf->max : cap * 2;
    if (cap > buf->max)
        cap = buf->max;
    char *data = realloc(buf->data, cap);
    if (!data)
        return -1;
    buf->data = data;
    buf->cap = cap;
    return 0;
}

int buf_append(struct buf *buf, const void *bytes, size_t len)
{
    if (buf_reserve(buf, len) < 0)
        return -1;
    if (len > 0) {
        memcpy(buf->data + buf->len, bytes, len);
        buf->len += len;
    }
    return 0;
}

int buf_append_text(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char small[256];
    int len = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (len < 0)
        return -1;
    if ((size_t)len < sizeof small)
        return buf_append(buf, small, (size_t)len);

    /* Not straight into the buffer: the NUL of vsnprintf would need a byte that the maximum may not allow. */
    char *text = malloc((size_t)len + 1);
    if (!text)
        return -1;
    va_start(args, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    int rc = buf_append(buf, text, (size_t)len);
    free(text);
    return rc;
}

void buf_consume(struct buf *buf, size_t len)
{
    if (len >= buf->len) {
        buf->len = 0;
        return;
    }
    if (len > 0)
        memmove(buf->data, buf->data + len, buf->len - len);
    buf->len -= len;
}

char *buf_steal(struct buf *buf, size_t *out_len)
{
    char *data = buf->data;
    *out_len = buf->len;
    *buf = (struct buf){.max = buf->max};
    return data;
}
