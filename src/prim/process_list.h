/* Processes as JSON: the table's, and the others of the sandbox out of /proc. All here is for a thread: it reads /proc
 * and looks up users. */
#ifndef ABX_PRIM_PROCESS_LIST_H
#define ABX_PRIM_PROCESS_LIST_H

#include "prim/process_look.h"
#include "prim/process_rows.h"

#include <stdatomic.h>
#include <stdbool.h>

struct process_filter {
    bool strangers;       /* those that were not started here, too */
    bool running, exited; /* in these states */
    pid_t parent;         /* only its children; 0: of whoever; -1: of nobody */
    const char *left_by;  /* with parent: and what this entry started that lost its parent. NULL: none */
};

/* Open descriptors and what was looked up, for one job. NULL with *err. */
struct process_list *process_list_open(struct err *err);
void process_list_close(struct process_list *list);

/* All these append to out; -1 with *err where that is full or memory is out. */
/* An array: the rows in the order of their start, then the others by pid. What vanishes meanwhile is left out, and so
 * is what was started here after the rows were taken. cancelled: ends early, any how. */
int process_list_write(struct process_list *list, struct buf *out, const struct process_rows *rows,
                       const struct process_filter *filter, const atomic_bool *cancelled, struct err *err) ABX_MUST_USE;
/* The members of one, without braces. */
int process_list_write_row(struct process_list *list, struct buf *out, const struct process_row *row,
                           struct err *err) ABX_MUST_USE;
/* ended: whatever look says, it has ended since. */
int process_list_write_look(struct process_list *list, struct buf *out, struct process_look *look, bool ended,
                            struct err *err) ABX_MUST_USE;
/* Looks at one by its pid. -1: there is none (any more). */
int process_list_look(struct process_list *list, pid_t pid, struct process_look *out) ABX_MUST_USE;

#endif
