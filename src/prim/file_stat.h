/* All that is known of one entry of the file system, as the JSON text of an answer. For fs.stat. */
#ifndef ABX_PRIM_FILE_STAT_H
#define ABX_PRIM_FILE_STAT_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/confine.h"
#include "prim/file_bytes.h"

#include <stdbool.h>
#include <stddef.h>

/* All borrowed. */
struct file_stat {
    const char *path;
    size_t path_len;
    const char *mime; /* what a regular file is said to be; of others the type is told */
    bool follow;      /* what a final link leads to, instead of the link */
    bool sha256;      /* that of a regular file's content, as long as the size that the answer tells */
};

/* Appends the answer of GET /files/stat in braces. The base itself may be named.
 * Blocks on the disk. 1: the checksum would be long work and terms->short_only is set: nothing was appended. -1 with
 * err: the path's, or with sha256 ERR_NOT_A_REGULAR_FILE, ERR_BUSY where another file took the name meanwhile. */
int file_stat(const struct confine *confine, const struct file_stat *request, const struct file_terms *terms,
              struct buf *out, struct err *err) ABX_MUST_USE;

#endif
