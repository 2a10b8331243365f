/* One file on its way in: a temporary name in the target's directory (or the nearest that exists), then the target's
 * own. For upload.c. Blocking. */
#ifndef ABX_PRIM_UPLOAD_FILE_H
#define ABX_PRIM_UPLOAD_FILE_H

#include "base/err.h"
#include "prim/replace.h"
#include "prim/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct upload_pending {
    struct replace replace; /* temporary in `dir` */
    size_t dir;             /* where the temporary name stands, in the upload's directories */
    size_t target;          /* and the target: another one where directories had to be made */
    char *missing;          /* directories to be made below dir first; NULL: none */
    size_t made;            /* how many of them, from the end, this upload made */
    uint64_t size;
    char sha256[SHA256_HEX_LEN + 1];
};

/* Looks at what stands at the target, unless its directory is missing still, and makes the temporary file. name is
 * copied. As replace_begin. */
int upload_file_begin(struct upload_pending *pending, struct sha256_ctx *hash, int dir_fd, const char *name,
                      bool overwrite, struct err *err) ABX_MUST_USE;
int upload_file_write(struct upload_pending *pending, struct sha256_ctx *hash, const char *bytes, size_t len,
                      struct err *err) ABX_MUST_USE;
/* All bytes are there: owner, mode (-1: what it replaces, else by the umask), fsync. Then it is closed, so that one
 * descriptor is enough however many files come. */
int upload_file_end(struct upload_pending *pending, struct sha256_ctx *hash, int mode, struct err *err) ABX_MUST_USE;

#endif
