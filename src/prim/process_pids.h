/* Process ids in ascending order, each once: who is in a group, which programs live. */
#ifndef ABX_PRIM_PROCESS_PIDS_H
#define ABX_PRIM_PROCESS_PIDS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Zero it before first use. */
struct process_pids {
    pid_t *pids; /* from malloc */
    size_t count, cap;
};

/* Appends, for many at once: process_pids_sort brings them into order then. -1 where memory is out. */
int process_pids_append(struct process_pids *set, pid_t pid) ABX_MUST_USE;
void process_pids_sort(struct process_pids *set);

/* These want and keep the order. Where memory is out nothing is inserted. */
void process_pids_insert(struct process_pids *set, pid_t pid);
void process_pids_remove(struct process_pids *set, pid_t pid);
bool process_pids_hold(const struct process_pids *set, pid_t pid);

void process_pids_deinit(struct process_pids *set);

#endif
