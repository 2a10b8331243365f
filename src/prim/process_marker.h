/* The variable that tells which entry of the process table a process descends from, as long as it keeps it. */
#ifndef ABX_PRIM_PROCESS_MARKER_H
#define ABX_PRIM_PROCESS_MARKER_H

#include <stdbool.h>
#include <sys/types.h>

#define PROCESS_MARKER "ABX_PROCESS_ID"

enum { PROCESS_MARKER_MAX = 32 };

/* Its value in the environment that this process was executed with. False where it has none, or one that is no id, or
 * is not ours to read. Any thread; reads procfs, which can wait for the process to finish an exec. */
bool process_marker_read(int proc_fd, pid_t pid, char out[PROCESS_MARKER_MAX]);

#endif
