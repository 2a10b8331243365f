/* One file on its way in: a temporary name in the target's directory (or the nearest that exists), then the target's
 * own. For upload.c. Blocking. */
#ifndef ABX_PRIM_UPLOAD_FILE_H
#define ABX_PRIM_UPLOAD_FILE_H

#include "base/err.h"
#include "prim/confine.h"
#include "prim/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { UPLOAD_TEMP_NAME_LEN = 28 }; /* ".abx-upload-" and 16 hex digits */

struct upload_pending {
    size_t dir;    /* where the temporary name stands, in the upload's directories */
    size_t target; /* and the target: another one where directories had to be made */
    char *name;    /* the target's */
    char *missing; /* directories to be made below dir first; NULL: none */
    size_t made;   /* how many of them, from the end, this upload made */
    char temp[UPLOAD_TEMP_NAME_LEN + 1];
    bool has_temp; /* the temporary name stands on the disk */
    bool overwrite;
    bool replaces; /* a file of that name stood there when it began */
    struct stat replaced;
    uint64_t size;
    char sha256[SHA256_HEX_LEN + 1];
};

/* Being written: the newest file only, so one descriptor is enough however many files come. */
struct upload_writer {
    int fd; /* -1: none */
    struct sha256_ctx hash;
};

/* Looks at what stands at the target and makes the temporary file. name is copied. ERR_IS_A_DIRECTORY,
 * ERR_NOT_A_REGULAR_FILE, ERR_ALREADY_EXISTS. */
int upload_file_begin(struct upload_pending *file, struct upload_writer *writer, int dir_fd, const char *name,
                      bool overwrite, struct err *err) ABX_MUST_USE;
int upload_file_write(struct upload_pending *file, struct upload_writer *writer, const char *bytes, size_t len,
                      struct err *err) ABX_MUST_USE;
/* All bytes are there: owner, mode (-1: what it replaces, else by the umask), fsync. */
int upload_file_end(struct upload_pending *file, struct upload_writer *writer, int mode, struct err *err) ABX_MUST_USE;
/* Gives it its name in the target's directory; *out_created is false where it replaced a file. */
int upload_file_rename(struct upload_pending *file, int dir_fd, int target_fd, bool *out_created,
                       struct err *err) ABX_MUST_USE;
/* Removes the temporary name, if it stands. */
void upload_file_discard(struct upload_pending *file, int dir_fd);

#endif
