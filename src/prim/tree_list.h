/* Lists a directory or a whole tree as JSON text, a page at a time, for fs.list. Blocking. */
#ifndef ABX_PRIM_TREE_LIST_H
#define ABX_PRIM_TREE_LIST_H

#include "base/buf.h"
#include "prim/confine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct glob;

/* A directory that max_depth leaves closed is what the client asked for, below this; from here on it is an error. */
enum { TREE_LIST_DEEP = 64 };

struct tree_list_options {
    bool recursive, hidden;  /* without hidden, names with a dot at the start are left out, and what is below them */
    size_t max_depth;        /* 1: the directory's own entries */
    const struct glob *glob; /* NULL: all. Shows or not; directories that it does not match are walked all the same */
    size_t limit;            /* entries of a page, at least 1 */
    const char *cursor;      /* next_cursor of the page before; NULL: from the start */
    size_t cursor_len;
    const atomic_bool *cancelled; /* looked at between entries; the answer is of no use then */
};

/* Appends {"path","entries","truncated","next_cursor","errors"}: depth first, an entry before what is below it,
 * siblings by their bytes. The next page goes straight down along the cursor, whatever came or went. Links are never
 * followed. `errors` tells what is left out and why: unreadable directories, those that vanished, those too deep,
 * operator files, and what lies below mounted kernel file systems, which are never walked (their top level is listed
 * where it is the path). A page may be shorter than limit where it is large or has many errors. -1: the path cannot be
 * opened, or a cursor that is none (ERR_INVALID_REQUEST, field "cursor"). */
int tree_list(const struct confine *confine, const char *path, size_t len, const struct tree_list_options *options,
              struct buf *out, struct err *err) ABX_MUST_USE;

#endif
