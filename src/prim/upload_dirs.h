/* The directories that an upload writes into. For upload.c. Blocking. */
#ifndef ABX_PRIM_UPLOAD_DIRS_H
#define ABX_PRIM_UPLOAD_DIRS_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* Held open until the upload ends; files in the same one share it. */
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

#endif
