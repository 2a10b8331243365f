/* The list of terminals: rows on the main thread, text on another; called by bind_pty_list. */
#include "prim/terminal_rows.h"

#include "base/json.h"
#include "prim/exit_json.h"
#include "prim/terminal_foreground.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Masked words may be longer than what they were: "a=b" becomes "a=***". */
enum { SCRATCH_MAX_BYTES = 8 * COMMAND_LINE_MAX_BYTES };

/* --- on the main thread */

static void add(struct process *process, struct terminal_view *view, void *ctx)
{
    struct terminal_rows *rows = ctx;
    if (rows->out_of_memory)
        return;
    if (rows->count == rows->cap) {
        size_t cap = rows->cap > 0 ? rows->cap * 2 : 16;
        struct terminal_row *more = realloc(rows->rows, cap * sizeof(*more));
        if (more == NULL) {
            rows->out_of_memory = true;
            return;
        }
        rows->rows = more;
        rows->cap = cap;
    }
    struct terminal_row *row = &rows->rows[rows->count++];
    process_row_take(&row->process, process);
    row->view = terminal_view_ref(view);
    row->ticket[0] = '\0';
}

int terminal_rows_take(struct terminal_rows *out, struct terminals *terminals, bool with_tickets)
{
    *out = (struct terminal_rows){0};
    terminals_each(terminals, add, out);
    if (out->out_of_memory)
        return -1;
    for (size_t i = 0; i < out->count && with_tickets; i++)
        terminals_ticket(terminals, out->rows[i].process.held, out->rows[i].ticket);
    return 0;
}

void terminal_rows_free(struct terminal_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        process_row_free(&rows->rows[i].process);
        terminal_view_unref(rows->rows[i].view);
    }
    free(rows->rows);
    *rows = (struct terminal_rows){0};
}

/* --- on another */

/* What one call of terminal_rows_write has in hand. */
struct writing {
    struct buf *out;
    struct buf scratch;
    int proc_fd;
    struct terminal_foreground front;
};

static int put(struct buf *out, const char *text)
{
    return buf_append_few(out, text, strlen(text));
}

static int put_time(struct buf *out, const char *member, uint64_t ms)
{
    char text[32];
    process_format_time(ms, text);
    return json_write_text(out, member, text);
}

static int write_foreground(struct writing *writing, const struct process_info *info)
{
    struct terminal_foreground *front = &writing->front;
    front->name[0] = '\0';
    front->cwd_len = 0;
    if (!info->exited)
        terminal_foreground_look(front, writing->proc_fd, info->pid);
    if (json_write_text(writing->out, ",\"foreground\":", front->name[0] != '\0' ? front->name : NULL) != 0 ||
        put(writing->out, ",") != 0)
        return -1;
    return front->cwd_len > 0 ? entry_write_path(writing->out, "cwd", front->cwd, front->cwd_len)
                              : put(writing->out, "\"cwd\":null");
}

static int write_use(struct buf *out, const struct terminal_view *view)
{
    unsigned clients = atomic_load_explicit(&view->clients, memory_order_relaxed);
    uint64_t offset = atomic_load_explicit(&view->offset, memory_order_relaxed);
    return buf_printf(out, ",\"clients\":%u,\"offset\":%" PRIu64, clients, offset);
}

static int write_times(struct buf *out, const struct process_info *info, const struct terminal_view *view)
{
    uint64_t active_ms = atomic_load_explicit(&view->last_activity_ms, memory_order_relaxed);
    return put_time(out, ",\"created_at\":", info->started_ms) != 0 ||
                   put_time(out, ",\"last_activity_at\":", active_ms) != 0 || put(out, ",") != 0
               ? -1
               : exit_json_write(out, &info->exit, info->exit_known, info->started_ms);
}

static int write_row(struct writing *writing, const struct terminal_row *row)
{
    struct buf *out = writing->out;
    const struct process_info *info = &row->process.info;
    struct terminal_size size = terminal_view_size(row->view);
    if (json_write_text(out, "{\"id\":", info->id) != 0 || buf_printf(out, ",\"pid\":%d", (int)info->pid) != 0 ||
        json_write_text(out, ",\"tag\":", info->tag) != 0 || put(out, ",") != 0 ||
        command_line_write(out, &writing->scratch, &info->line) != 0 ||
        buf_printf(out, ",\"cols\":%u,\"rows\":%u", size.cols, size.rows) != 0)
        return -1;
    if (write_foreground(writing, info) != 0 || write_use(out, row->view) != 0 ||
        write_times(out, info, row->view) != 0)
        return -1;
    if (row->ticket[0] != '\0' && json_write_text(out, ",\"ticket\":", row->ticket) != 0)
        return -1;
    return put(out, "}");
}

static int write_rows(struct writing *writing, const struct terminal_rows *rows, const atomic_bool *cancelled)
{
    if (put(writing->out, "[") != 0)
        return -1;
    for (size_t i = 0; i < rows->count && !atomic_load_explicit(cancelled, memory_order_relaxed); i++)
        if ((i > 0 && put(writing->out, ",") != 0) || write_row(writing, &rows->rows[i]) != 0)
            return -1;
    return put(writing->out, "]");
}

int terminal_rows_write(const struct terminal_rows *rows, struct buf *out, const atomic_bool *cancelled,
                        struct err *err)
{
    struct writing *writing = malloc(sizeof(*writing)); /* of a path's size */
    if (writing == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for a list of terminals");
    writing->out = out;
    writing->proc_fd = proc_open();
    if (writing->proc_fd < 0) {
        int error = errno;
        free(writing);
        return err_set_errno(err, ERR_INTERNAL, error, "cannot open /proc");
    }
    buf_init(&writing->scratch, SCRATCH_MAX_BYTES);
    int failed = write_rows(writing, rows, cancelled);
    buf_deinit(&writing->scratch);
    close(writing->proc_fd);
    free(writing);
    return failed != 0 ? err_set(err, ERR_INTERNAL, "out of memory for a list of terminals") : 0;
}
