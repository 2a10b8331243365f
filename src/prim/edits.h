/* Replacements in a text, one after another, all of them or none; for file_write. Bytes, not characters. */
#ifndef ABX_PRIM_EDITS_H
#define ABX_PRIM_EDITS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct edit {
    const char *old, *new; /* borrowed */
    size_t old_len, new_len;
    bool all; /* every occurrence, from the left, without overlaps; else there must be exactly one, overlaps count */
};

/* Replaces the content of *text, each edit on what those before it left. -1: *text is of no use any more.
 * ERR_INVALID_REQUEST: an empty `old`; ERR_AMBIGUOUS_EDIT: none, or more than one where one is wanted; both with field
 * "edits[2].old". ERR_PAYLOAD_TOO_LARGE: the result would pass the maximum of *text. Looks at *cancelled (NULL: nobody
 * can) before each edit. */
int edits_apply(struct buf *text, const struct edit *edits, size_t count, const atomic_bool *cancelled,
                struct err *err) ABX_MUST_USE;

#endif
