/* Looks a git directory through before libgit2 may: nothing in it leads out of the base. */
#ifndef ABX_HELPER_GIT_INSPECT_H
#define ABX_HELPER_GIT_INSPECT_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/confine.h"

/* The git directory at that absolute path, and the one that its `commondir` names: links anywhere in them (loose
 * objects apart, which are checked by their hashes), alternates, and files that the configuration includes.
 * ERR_PATH_OUTSIDE_BASE for what leads out. Blocks. */
int git_inspect(const struct confine *confine, const char *git_dir, struct err *err) ABX_MUST_USE;
/* Its configuration alone; for git_inspect. config.worktree and what is included too. */
int git_inspect_config(const struct confine *confine, const char *git_dir, struct err *err) ABX_MUST_USE;

/* A small file as text with a NUL; 1 where there is none, -1 with *err. The caller frees out, whose maximum bounds the
 * file. */
int git_inspect_read(const struct confine *confine, const char *path, struct buf *out, struct err *err) ABX_MUST_USE;
/* "DIR/NAME", or NAME where that is absolute. -1 where it is too long. */
int git_inspect_join(char out[PATH_MAX], const char *dir, const char *name, struct err *err) ABX_MUST_USE;

#endif
