/* Starting one program in a session of its own, with default signals, and no descriptors but 0-2 (and 3 where it has a
 * channel). */
#ifndef ABX_PRIM_SPAWN_H
#define ABX_PRIM_SPAWN_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
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
    int stdio[3];          /* become 0, 1, 2 of the child; stay the caller's; must be close-on-exec */
    int channel_fd;        /* 0: none; else becomes 3 of the child. Stays the caller's; must be close-on-exec */
    size_t data_max_bytes; /* RLIMIT_DATA, 0: as the server's; neither is ever above that */
    unsigned fds_max;      /* RLIMIT_NOFILE, the same */
    bool on_terminal;      /* stdio[0] is a terminal, which becomes its controlling one */
    int cgroup_fd;         /* the directory of the control group that it is to be born in; -1: the server's */
};

struct spawned {
    pid_t pid;
    int pidfd;   /* the caller's */
    bool placed; /* it is in that control group; without one, or where the kernel refused, it is in the server's */
};

/* Starts it. Blocks until the program is loaded, and no signal is taken meanwhile. Errors as process_start tells. */
int spawn_start(const struct spawn *spawn, struct spawned *out, struct err *err) ABX_MUST_USE;

#endif
