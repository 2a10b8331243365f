/* A program on a new pseudo-terminal that is its controlling one; called by prim/terminals. Main thread only. */
#ifndef ABX_PRIM_PTY_CHILD_H
#define ABX_PRIM_PTY_CHILD_H

#include "base/err.h"
#include "prim/process.h"
#include "prim/terminal_size.h"

/* process_start with spec->terminal set here: the slave end is the program's descriptors 0 to 2, and nobody else holds
 * it. *out_master (non-blocking, close-on-exec, the caller's) is the other end: UTF-8 aware (IUTF8), else as the kernel
 * sets a terminal up. The slave is opened through the master (TIOCGPTPEER, Linux 4.13): its name may mean another one
 * where /dev/pts is not the same mount. Errors as process_start; ERR_TOO_MANY_TERMINALS where the system has no pty
 * left, ERR_UNAVAILABLE without /dev/ptmx. */
struct process *pty_child_start(struct process_table *table, const struct process_spec *spec,
                                const struct process_terminal *terminal, struct terminal_size size, int *out_master,
                                struct err *err);

#endif
