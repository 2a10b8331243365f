/* The process table as it is at one moment, for threads: they may not look at the table itself. */
#ifndef ABX_PRIM_PROCESS_ROWS_H
#define ABX_PRIM_PROCESS_ROWS_H

#include "prim/process_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One entry. info borrows from what is held by a reference. */
struct process_row {
    struct process *held;
    struct process_info info;
};

struct process_rows {
    struct process_row *rows; /* in the order of their start */
    size_t count, cap;
    uint64_t taken_ticks; /* when, as proc_ticks_now */
    bool out_of_memory;
};

/* All these on the loop's thread. */
void process_row_take(struct process_row *out, struct process *process);
void process_row_free(struct process_row *row); /* harmless on a zeroed one */
/* All of the table but PROCESS_HELPER. -1 out of memory; process_rows_free in any case. */
int process_rows_take(struct process_rows *out, struct process_table *table) ABX_MUST_USE;
void process_rows_free(struct process_rows *rows);

#endif
