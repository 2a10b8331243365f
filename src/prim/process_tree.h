/* Everything that descends from a program we started, found without cgroups: by session, process group, parents, and
 * the ABX_PROCESS_ID in its environment. Reads all of /proc: some milliseconds on a busy machine. */
#ifndef ABX_PRIM_PROCESS_TREE_H
#define ABX_PRIM_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_TREE_MARKER "ABX_PROCESS_ID"

struct process_tree {
    pid_t leader; /* the program itself: leader of its session and group */
    uint64_t
        reaped_ticks; /* process_tree_now() when it was reaped, 0 before: from then on its number may be another's */
    const char *id;   /* value of ABX_PROCESS_ID */
};

/* Sends a signal to all that lives of these trees and answers how many got it. Looks again until nothing new appears (a
 * bounded number of times), so that what forks meanwhile gets it too; a stopped one that gets SIGTERM is continued.
 * Never to pid 1, the server or its ancestors. */
size_t process_tree_signal(const struct process_tree *trees, size_t count, int signal);

/* How many live (zombies do not). */
size_t process_tree_living(const struct process_tree *trees, size_t count);

/* Time since boot in the unit of /proc/PID/stat. */
uint64_t process_tree_now(void);

#endif
