/* Where a page of a listing ends, as the opaque text that clients send back for the next one. */
#ifndef ABX_PRIM_LIST_CURSOR_H
#define ABX_PRIM_LIST_CURSOR_H

#include "base/buf.h"

#include <stdbool.h>

/* A place in a tree: the path of an entry relative to the listing's start. It is compared, never opened, so it need not
 * exist any more. */
struct list_cursor {
    bool past_below; /* what stands below the entry is done with too */
    char *path;      /* NUL-terminated names with one '/' between; the owner's to free */
};

/* Appends base64url text, without quotes. -1: out is full. */
int list_cursor_write(struct buf *out, const char *path, size_t len, bool past_below) ABX_MUST_USE;
/* -1: not what the above writes, or memory is out; clients may send anything. */
int list_cursor_read(const char *text, size_t len, struct list_cursor *out) ABX_MUST_USE;

#endif
