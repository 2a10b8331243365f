/* The processes below this one, found in /proc: those that a cell of the shell left, or hangs in. */
#ifndef ABX_HELPER_SHELL_TREE_H
#define ABX_HELPER_SHELL_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shell_tree_filter {
    uint64_t began_ticks; /* leave older ones alone; 0: none */
    pid_t but;            /* leave this one alone, not those below it; 0: none */
    bool foreground;      /* leave those alone that ignore SIGINT and SIGQUIT, as a shell starts its background jobs */
};

/* What began_ticks counts: since the system's start, as /proc/PID/stat has it. */
uint64_t shell_tree_now_ticks(void);
/* Sends the signal to all descendants that the filter lets pass. Answers how many those were. Blocks for reading /proc.
 */
unsigned shell_tree_signal(int signal_number, const struct shell_tree_filter *filter);

#endif
