/* All terminals: the two threads' sides of them. The main thread starts programs on them, lists and closes them; the
 * terminal thread, whose loop `own` is, reads them and serves their clients. Messages go between (base/mailbox), and
 * each side uses its own functions only. */
#ifndef ABX_PRIM_TERMINALS_H
#define ABX_PRIM_TERMINALS_H

#include "base/err.h"
#include "base/loop.h"
#include "prim/process.h"
#include "prim/terminal_size.h"
#include "prim/terminal_view.h"
#include "prim/tickets.h"

#include <stdbool.h>
#include <stddef.h>

struct terminals;
struct terminal;

/* Made before the terminal thread starts. Neither loop may end before it. NULL with *err. */
struct terminals *terminals_new(struct loop *main, struct loop *own, struct process_table *processes, struct err *err);
/* After the terminal thread has ended, and after process_table_free: frees all. NULL is allowed. */
void terminals_free(struct terminals *terminals);

/* --- main thread */

/* process_start on a new pty of that size. spec->kind is PROCESS_TERMINAL; of spec, stdin, pace and capture_bytes mean
 * nothing. Errors as pty_child_start. The entry belongs to the table. */
struct process *terminals_start(struct terminals *terminals, const struct process_spec *spec, struct terminal_size size,
                                struct err *err);
/* By id, of those that are listed: started here, not closed, and still in the process table. NULL. Borrowed. */
struct process *terminals_find(struct terminals *terminals, const char *id);
/* All that are listed, in the order of their start; fn may take references to both. */
void terminals_each(struct terminals *terminals,
                    void (*fn)(struct process *process, struct terminal_view *view, void *ctx), void *ctx);
/* It is listed no more and nobody can attach any more; those who are get the rest and the exit. Its tree gets SIGHUP,
 * SIGKILL after 2 s (process_hang_up); harmless where it has ended. The process table still tells its exit. */
void terminals_close(struct terminals *terminals, struct process *process);
/* A ticket that opens it once within TICKET_LIFE_MS; the terminal thread knows of it before any client can use it. */
void terminals_ticket(struct terminals *terminals, const struct process *process, char out[TICKET_BYTES]);

/* --- terminal thread; each delivers first what the main thread has sent */

/* By id; NULL. Borrowed: attach, or take a reference, before the loop turns. */
struct terminal *terminals_lookup(struct terminals *terminals, const char *id, size_t len);
bool terminals_ticket_matches(struct terminals *terminals, const char *ticket, size_t len, const char *id);
/* The same, and uses it up. */
bool terminals_ticket_take(struct terminals *terminals, const char *ticket, size_t len, const char *id);

#endif
