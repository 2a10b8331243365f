/* What a terminal is used for now: the program in its foreground, and the directory that that is in. */
#ifndef ABX_PRIM_TERMINAL_FOREGROUND_H
#define ABX_PRIM_TERMINAL_FOREGROUND_H

#include "prim/proc_stat.h"

#include <limits.h>
#include <stdbool.h>

struct terminal_foreground {
    char name[PROC_NAME_MAX]; /* of the foreground group's leader, or where that has ended of its first process; ""
                               * where it cannot be told. Any bytes */
    size_t cwd_len;           /* 0: cannot be told */
    char cwd[PATH_MAX];       /* of that process, else of the first program. Any bytes, not terminated */
};

/* Whether anything of that process group lives in that session: while it does, no other group can have its number.
 * Reads all of /proc where the group's leader has ended. */
bool terminal_foreground_lives(int proc_fd, pid_t group, pid_t session);
/* first: the program that was started on the terminal, which leads its session and is a child of this process. Reads
 * /proc, and all of it where a leader has ended: for a thread. */
void terminal_foreground_look(struct terminal_foreground *out, int proc_fd, pid_t first);

#endif
