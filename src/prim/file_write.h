/* Writes one file: its whole content, more at its end, or edits of its text. For bind_file_write. Blocks, unless
 * at_once. */
#ifndef ABX_PRIM_FILE_WRITE_H
#define ABX_PRIM_FILE_WRITE_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/confine.h"
#include "prim/edits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What edits may read and make. */
enum { FILE_WRITE_EDIT_MAX_BYTES = 32 * 1024 * 1024 };

/* All borrowed. */
struct file_write {
    const char *path;
    size_t path_len;
    const char *content; /* NULL: edits, or a file */
    size_t content_len;
    bool from_file; /* the content is what content_fd holds, an open file at its start with content_len bytes; neither
                     * base64 nor append then */
    int content_fd;
    const struct edit *edits;
    size_t edit_count;
    bool base64; /* the content is */
    bool append; /* in place, at the end; makes the file where there is none */
    bool overwrite, create_parents;
    int mode;                     /* -1: keep what it replaces, else 0666 less umask */
    const char *if_match;         /* the etag (entry_etag) that the file must have, or "*": it must exist. NULL: any */
    const atomic_bool *cancelled; /* looked at between edits; may be NULL */
    bool at_once;                 /* the caller must wait for nobody: done only where that is so */
};

/* Appends {"path","size","created","etag"} to answer. Writers of one file (by directory and name) take turns within
 * this process; each is fsynced before the answer. Content and edits replace the file as prim/replace does: on failure
 * nothing has changed. A failed append is cut back to the length before. Errors as confine and replace, and:
 * ERR_INVALID_REQUEST with field: bad base64, content and edits, neither, append or base64 with edits. ERR_STALE_WRITE:
 * if_match names another state, or there is no file; or what was edited was changed by another program.
 * ERR_BUSY: the file that holds the content has another size by now. ERR_AMBIGUOUS_EDIT. ERR_FILE_NOT_FOUND: no file to
 * edit. ERR_PAYLOAD_TOO_LARGE: it is too large to edit. 1, with at_once only: it was not little content for a directory
 * in memory (confine_parent_cached), or another writer was at it, or it failed; nothing has changed, and without
 * at_once it is done, or the reason told. */
int file_write(const struct confine *confine, const struct file_write *request, struct buf *answer, bool *out_created,
               struct err *err) ABX_MUST_USE;

#endif
