/* Copies of the process table; called by bind_proc_list and bind_proc_describe. */
#include "prim/process_rows.h"

#include "prim/proc_stat.h"

#include <stdlib.h>

void process_row_take(struct process_row *out, struct process *process)
{
    out->held = process_ref(process);
    process_info_of(&out->info, process);
}

void process_row_free(struct process_row *row)
{
    process_unref(row->held);
    row->held = NULL;
}

static void add(struct process *process, void *ctx)
{
    struct process_rows *rows = ctx;
    if (rows->out_of_memory || process_kind_name(process_kind(process)) == NULL)
        return;
    if (rows->count == rows->cap) {
        size_t cap = rows->cap > 0 ? rows->cap * 2 : 64;
        struct process_row *more = realloc(rows->rows, cap * sizeof(*more));
        if (more == NULL) {
            rows->out_of_memory = true;
            return;
        }
        rows->rows = more;
        rows->cap = cap;
    }
    process_row_take(&rows->rows[rows->count++], process);
}

static int by_start(const void *a, const void *b)
{
    uint64_t left = process_started_ns(((const struct process_row *)a)->held),
             right = process_started_ns(((const struct process_row *)b)->held);
    return (left > right) - (left < right);
}

int process_rows_take(struct process_rows *out, struct process_table *table)
{
    *out = (struct process_rows){.taken_ticks = proc_ticks_now()};
    process_table_each(table, add, out);
    if (out->out_of_memory)
        return -1;
    if (out->count > 0)
        qsort(out->rows, out->count, sizeof(*out->rows), by_start);
    return 0;
}

void process_rows_free(struct process_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        process_row_free(&rows->rows[i]);
    free(rows->rows);
    *rows = (struct process_rows){0};
}
