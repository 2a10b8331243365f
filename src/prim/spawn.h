/* Starting one program: posix_spawn into a session of its own, with default signals and descriptors 0-2 only. */
#ifndef ABX_PRIM_SPAWN_H
#define ABX_PRIM_SPAWN_H

#include "base/err.h"

#include <limits.h>
#include <sys/types.h>

enum { SPAWN_ARG_MAX_BYTES = 131071 }; /* the kernel's MAX_ARG_STRLEN, less the NUL */

/* Which file `name` means: with a slash itself, else the first executable of that name in search_path (PATH as the
 * child will have it; NULL: the system's default). Relative results are relative to cwd_fd. ERR_EXECUTABLE_NOT_FOUND or
 * ERR_NOT_EXECUTABLE, field argv[0]. */
int spawn_find(const char *name, const char *search_path, int cwd_fd, char out[PATH_MAX], struct err *err) ABX_MUST_USE;

struct spawn {
    const char *path; /* as spawn_find tells */
    char *const *argv, *const *envp;
    int cwd_fd;
    int stdio[3]; /* become 0, 1, 2 of the child; stay the caller's; must be close-on-exec */
};

/* Starts it; the caller owns *out_pidfd. Errors as process_start tells. */
int spawn_start(const struct spawn *spawn, pid_t *out_pid, int *out_pidfd, struct err *err) ABX_MUST_USE;

#endif
