/* The private directories of one worker's process: HOME and TMPDIR, mode 0700, outside of the base. Blocking; called by
 * prim/worker_run, and by bind_browser for files that it takes. */
#ifndef ABX_PRIM_WORKER_DIR_H
#define ABX_PRIM_WORKER_DIR_H

#include "base/err.h"
#include "prim/confine.h"
#include "prim/env_block.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct worker_dir {
    char path[PATH_MAX]; /* "": there is none; else it holds `home` and `tmp` */
    int held_fd;         /* locks it (flock) for as long as the server lives; -1 where the file system has no locks */
};

/* Makes them below `parent` (NULL or unusable: /tmp), and holds them. */
int worker_dir_make(struct worker_dir *dir, const char *parent, struct err *err) ABX_MUST_USE;
/* Removes all of it, also what is below directories that do not let their owner in. What cannot go is logged. From any
 * thread. */
void worker_dir_remove(struct worker_dir *dir, const struct confine *confine);
/* Removes those below `parent` that a server left which did not end by itself: nobody holds them, and they belong to
 * our user alone. What else has such a name stays; links are not followed. From any thread. */
void worker_dir_sweep(const char *parent, const struct confine *confine);
/* Opens a file that the process made in its TMPDIR and told of, and takes its name away. Answers the descriptor, for
 * reading, which is the caller's. Client code may write there, too: -1 with ERR_INTERNAL for all that is not a plain
 * name of a regular file of our user, which has no other name and this size. */
int worker_dir_take(const struct worker_dir *dir, const char *name, size_t name_len, uint64_t size,
                    struct stat *out_found, struct err *err) ABX_MUST_USE;
/* A copy of `from` with HOME and TMPDIR in there, and without XDG_*. The caller frees it, also on failure. -1 out of
 * memory. */
int worker_dir_env(const struct worker_dir *dir, const struct env_block *from, struct env_block *out) ABX_MUST_USE;

#endif
