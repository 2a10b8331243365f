/* The list of terminals as it is at one moment, for a thread, and its JSON: GET /pty. */
#ifndef ABX_PRIM_TERMINAL_ROWS_H
#define ABX_PRIM_TERMINAL_ROWS_H

#include "base/buf.h"
#include "prim/process_rows.h"
#include "prim/terminals.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct terminal_row {
    struct process_row process;
    struct terminal_view *view; /* a reference */
    char ticket[TICKET_BYTES];  /* "": none was asked for */
};

struct terminal_rows {
    struct terminal_row *rows; /* in the order of their start */
    size_t count, cap;
    bool out_of_memory;
};

/* These two on the main thread. -1 out of memory; terminal_rows_free in any case. */
int terminal_rows_take(struct terminal_rows *out, struct terminals *terminals, bool with_tickets) ABX_MUST_USE;
void terminal_rows_free(struct terminal_rows *rows);

/* On any thread: reads /proc. Appends an array with what the terminals are now: those that lived when the rows were
 * taken may have no foreground any more. -1 with *err where out is full or memory is out. cancelled: ends early, any
 * how. */
int terminal_rows_write(const struct terminal_rows *rows, struct buf *out, const atomic_bool *cancelled,
                        struct err *err) ABX_MUST_USE;

#endif
