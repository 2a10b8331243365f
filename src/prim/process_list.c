/* Lists of processes; called by bind_proc_list and bind_proc_describe, from threads. */
#include "prim/process_list.h"

#include "prim/process_marker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process_list {
    int proc_fd;
    pid_t server;
    struct process_clock clock;
    struct process_writer writer;
    struct process_look look;
};

/* What one call of process_list_write has in hand. */
struct writing {
    struct process_list *list;
    struct buf *out;
    const struct process_rows *rows;
    const struct process_filter *filter;
    pid_t *managed; /* pids of rows that run, ascending */
    size_t managed_count;
    bool any;
};

struct process_list *process_list_open(struct err *err)
{
    struct process_list *list = malloc(sizeof(*list));
    if (list == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a list of processes");
        return NULL;
    }
    list->proc_fd = proc_open();
    if (list->proc_fd < 0) {
        err_set_errno(err, ERR_INTERNAL, errno, "cannot open /proc");
        free(list);
        return NULL;
    }
    list->server = getpid();
    process_clock_read(&list->clock);
    process_writer_init(&list->writer);
    return list;
}

void process_list_close(struct process_list *list)
{
    if (list == NULL)
        return;
    close(list->proc_fd);
    process_writer_deinit(&list->writer);
    free(list);
}

static int full(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory for a list of processes");
}

int process_list_look(struct process_list *list, pid_t pid, struct process_look *out)
{
    return process_look_at(out, list->proc_fd, pid);
}

/* The table's say with what /proc knows of one that lives. A child of ours bears its number until it is reaped; another
 * one's child has the number since. */
static struct process_info measured(struct process_list *list, const struct process_row *row)
{
    struct process_info info = row->info;
    struct proc_stat stat;
    if (!info.exited && proc_stat_read(list->proc_fd, info.pid, &stat) == 0 && stat.parent == list->server)
        process_measure(&info, &stat, &list->clock);
    return info;
}

int process_list_write_row(struct process_list *list, struct buf *out, const struct process_row *row, struct err *err)
{
    struct process_info info = measured(list, row);
    return process_info_write(out, &list->writer, &info) != 0 ? full(err) : 0;
}

int process_list_write_look(struct process_list *list, struct buf *out, struct process_look *look, bool ended,
                            struct err *err)
{
    struct process_info info;
    process_look_info(look, &list->clock, &info);
    if (ended) {
        info.exited = true;
        info.measured = false;
    }
    return process_info_write(out, &list->writer, &info) != 0 ? full(err) : 0;
}

/* --- lists */

static bool wants_state(const struct process_filter *filter, bool exited)
{
    return exited ? filter->exited : filter->running;
}

static int write_element(struct writing *writing, const struct process_info *info)
{
    if (buf_append_few(writing->out, writing->any ? ",{" : "{", writing->any ? 2 : 1) != 0 ||
        process_info_write(writing->out, &writing->list->writer, info) != 0)
        return -1;
    writing->any = true;
    return buf_append_few(writing->out, "}", 1);
}

static int write_row(struct writing *writing, const struct process_row *row)
{
    const struct process_filter *filter = writing->filter;
    if (!wants_state(filter, row->info.exited))
        return 0;
    struct process_info info = measured(writing->list, row);
    if (filter->parent != 0 && (!info.measured || info.parent != filter->parent))
        return 0;
    return write_element(writing, &info);
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

static bool is_managed(const struct writing *writing, pid_t pid)
{
    return writing->managed_count > 0 &&
           bsearch(&pid, writing->managed, writing->managed_count, sizeof(pid), compare_pids) != NULL;
}

/* What lost its parent was taken over by the server. */
static bool is_below(const struct writing *writing, const struct proc_stat *stat)
{
    const struct process_filter *filter = writing->filter;
    char id[PROCESS_MARKER_MAX];
    if (filter->parent == 0 || stat->parent == filter->parent)
        return true;
    return filter->left_by != NULL && stat->parent == writing->list->server &&
           process_marker_read(writing->list->proc_fd, stat->pid, id) && strcmp(id, filter->left_by) == 0;
}

/* Spares the look at all else where few are wanted. */
static bool is_worth_a_look(const struct writing *writing, pid_t pid)
{
    const struct process_filter *filter = writing->filter;
    struct proc_stat stat;
    if (filter->parent == 0 && filter->running)
        return true;
    return proc_stat_read(writing->list->proc_fd, pid, &stat) == 0 && wants_state(filter, proc_is_zombie(&stat)) &&
           is_below(writing, &stat);
}

static int write_stranger(struct writing *writing, pid_t pid)
{
    struct process_list *list = writing->list;
    struct process_look *look = &list->look;
    if (is_managed(writing, pid) || !is_worth_a_look(writing, pid) || process_list_look(list, pid, look) != 0 ||
        !wants_state(writing->filter, proc_is_zombie(&look->stat)))
        return 0;
    /* A child that we have since the rows were taken is in the table by now. */
    if (look->stat.parent == list->server && look->stat.start_ticks >= writing->rows->taken_ticks)
        return 0;
    struct process_info info;
    process_look_info(look, &list->clock, &info);
    return write_element(writing, &info);
}

static int collect_managed(struct writing *writing)
{
    writing->managed = malloc((writing->rows->count + 1) * sizeof(*writing->managed));
    if (writing->managed == NULL)
        return -1;
    for (size_t i = 0; i < writing->rows->count; i++)
        if (!writing->rows->rows[i].info.exited)
            writing->managed[writing->managed_count++] = writing->rows->rows[i].info.pid;
    if (writing->managed_count > 0)
        qsort(writing->managed, writing->managed_count, sizeof(*writing->managed), compare_pids);
    return 0;
}

static int write_strangers(struct writing *writing, const atomic_bool *cancelled)
{
    pid_t *pids;
    size_t count;
    if (collect_managed(writing) != 0 || proc_pids(writing->list->proc_fd, &pids, &count) != 0)
        return -1;
    int failed = 0;
    for (size_t i = 0; i < count && failed == 0 && !atomic_load_explicit(cancelled, memory_order_relaxed); i++)
        failed = write_stranger(writing, pids[i]);
    free(pids);
    return failed;
}

int process_list_write(struct process_list *list, struct buf *out, const struct process_rows *rows,
                       const struct process_filter *filter, const atomic_bool *cancelled, struct err *err)
{
    struct writing writing = {.list = list, .out = out, .rows = rows, .filter = filter};
    int failed = buf_append_few(out, "[", 1);
    for (size_t i = 0; i < rows->count && failed == 0; i++)
        failed = write_row(&writing, &rows->rows[i]);
    if (failed == 0 && filter->strangers)
        failed = write_strangers(&writing, cancelled);
    free(writing.managed);
    return failed != 0 || buf_append_few(out, "]", 1) != 0 ? full(err) : 0;
}
