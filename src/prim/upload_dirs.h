/* The directories of an upload: those it writes into, and those that have to be made for its targets. For upload.c.
 * Blocking. */
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

/* Held while missing directories are made, used and perhaps taken back, and while a target's directory is looked up and
 * gets its first file: so no upload meets a directory that another one is about to remove. */
void upload_parents_lock(void);
void upload_parents_unlock(void);

/* Makes "a/b/c" below dir_fd, mode 0777 less umask; what stands there already is used. The last one, O_PATH, the
 * caller's; *out_made: how many, from the end, were made here. -1: nothing that was made here is left. */
int upload_parents_make(int dir_fd, const char *missing, size_t *out_made, struct err *err) ABX_MUST_USE;
/* Takes that back, as far as they are empty. */
void upload_parents_remove(int dir_fd, const char *missing, size_t made);

#endif
