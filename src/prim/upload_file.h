/* One file on its way in: a temporary name in the target's directory, then the target's own. For upload.c. Blocking. */
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

/* The target directories, held open until the upload ends; files in the same one share it. */
enum { UPLOAD_DIRS_MAX = 64 };
struct upload_dirs {
    struct upload_dir {
        int fd; /* O_PATH */
        dev_t dev;
        ino_t ino;
    } items[UPLOAD_DIRS_MAX];
    size_t count;
};

/* Takes fd into the list, or closes it where that directory is there already. Its index; -1: fd was closed. */
ssize_t upload_dirs_keep(struct upload_dirs *dirs, int fd, struct err *err) ABX_MUST_USE;
/* fsyncs each, best effort: the files are whole and in place, and not every file system can sync a directory. */
void upload_dirs_sync(const struct upload_dirs *dirs);
void upload_dirs_close(struct upload_dirs *dirs);

struct upload_pending {
    size_t dir; /* index in the upload's directories */
    char *name; /* the target's */
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
/* Gives it its name; *out_created is false where it replaced a file. */
int upload_file_rename(struct upload_pending *file, int dir_fd, bool *out_created, struct err *err) ABX_MUST_USE;
/* Removes the temporary name, if it stands. */
void upload_file_discard(struct upload_pending *file, int dir_fd);

#endif
