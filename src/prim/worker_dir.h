/* The private directories of one worker's process: HOME and TMPDIR, mode 0700, outside of the base. Blocking; called by
 * prim/worker_run. */
#ifndef ABX_PRIM_WORKER_DIR_H
#define ABX_PRIM_WORKER_DIR_H

#include "base/err.h"
#include "prim/confine.h"
#include "prim/env_block.h"

#include <limits.h>

struct worker_dir {
    char path[PATH_MAX]; /* "": there is none; else it holds `home` and `tmp` */
};

/* Makes them below `parent` (NULL or unusable: /tmp). */
int worker_dir_make(struct worker_dir *dir, const char *parent, struct err *err) ABX_MUST_USE;
/* Removes all of it, also what is below directories that do not let their owner in. What cannot go is logged. From any
 * thread. */
void worker_dir_remove(struct worker_dir *dir, const struct confine *confine);
/* A copy of `from` with HOME and TMPDIR in there, and without XDG_*. The caller frees it, also on failure. -1 out of
 * memory. */
int worker_dir_env(const struct worker_dir *dir, const struct env_block *from, struct env_block *out) ABX_MUST_USE;

#endif
