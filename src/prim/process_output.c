/* Pipes into rings, readers and their pace, and the drain at a program's end; part of the process table. */
#include "prim/process_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 * 1024,
    /* Of one pipe at a time, then everybody else has a turn: `yes` starves nobody. Where many live each gets less, as
     * all of them are read in one turn of the loop. */
    TURN_BYTES_MAX = 4 * READ_BYTES,
    TURN_BYTES_MIN = 16 * 1024,
    TURN_ALL_BYTES = 8 * TURN_BYTES_MAX,
    PIPE_BYTES = 1024 * 1024,
    /* What the fastest reader may be behind. With a full pipe drained at the end on top it is still well below the
     * ring, so the fastest reader never meets a gap. */
    BACKLOG_MAX_BYTES = 1024 * 1024,
    DRAIN_TURN_BYTES = 2 * 1024 * 1024,
    STALL_MS = 30 * 1000,
    READERS_PER_TURN = 8, /* each may take some hundred KiB: two hundred readers hold nobody up */
};

static int capture_output(struct process_output *output, size_t limit_bytes, struct err *err)
{
    output->capture = malloc(sizeof(*output->capture));
    if (output->capture == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for a process");
    capture_init(output->capture, limit_bytes);
    return 0;
}

int process_output_open(struct process_output *output, int fd, size_t capture_bytes, struct err *err)
{
    output->fd = fd;
    process_ref(output->process);
    return capture_bytes > 0 ? capture_output(output, capture_bytes, err) : 0;
}

void process_output_close(struct process_output *output)
{
    loop_fd_free(output->watch);
    output->watch = NULL;
    if (output->fd >= 0) {
        close(output->fd);
        output->fd = -1;
        process_unref(output->process);
    }
}

/* --- readers */

static bool is_waiting(const struct process_reader *reader)
{
    const struct process_output *outputs = reader->process->outputs;
    return reader->offset[0] < outputs[0].ring.end || reader->offset[1] < outputs[1].ring.end;
}

/* How far behind the fastest reader that counts is; 0 where nobody does. */
static uint64_t backlog(const struct process *process, enum process_stream stream, uint64_t now_ms)
{
    uint64_t end = process->outputs[stream].ring.end;
    if (process->held_until_ms > now_ms)
        return end;
    uint64_t least = UINT64_MAX;
    LIST_EACH (&process->readers, node) {
        const struct process_reader *reader = LIST_ENTRY(node, struct process_reader, node);
        if (reader->offset[stream] == PROCESS_NOT_READ ||
            (is_waiting(reader) && now_ms - reader->took_at_ms >= STALL_MS))
            continue;
        uint64_t behind = reader->offset[stream] < end ? end - reader->offset[stream] : 0;
        least = behind < least ? behind : least;
    }
    return least == UINT64_MAX ? 0 : least;
}

static void update_pace(void *ctx)
{
    struct process *process = ctx;
    uint64_t now_ms = loop_now_ms(process->table->loop);
    bool any_paused = false;
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        if (output->watch == NULL)
            continue;
        /* Half of it taken before the pipe is watched again, or each small read would cost two epoll_ctl. */
        uint64_t bound = output->paused ? BACKLOG_MAX_BYTES / 2 : BACKLOG_MAX_BYTES;
        output->paused = process->state != PROCESS_EXITED && backlog(process, output->stream, now_ms) >= bound;
        loop_fd_set(output->watch, output->paused ? 0 : LOOP_READABLE);
        any_paused |= output->paused;
    }
    if (!any_paused) {
        loop_timer_stop(&process->stall_timer);
        return;
    }
    uint64_t next_ms = now_ms + STALL_MS;
    if (process->held_until_ms > now_ms)
        next_ms = process->held_until_ms;
    LIST_EACH (&process->readers, node) {
        const struct process_reader *reader = LIST_ENTRY(node, struct process_reader, node);
        uint64_t stalls_ms = reader->took_at_ms + STALL_MS;
        if (stalls_ms > now_ms && stalls_ms < next_ms)
            next_ms = stalls_ms;
    }
    loop_timer_start(process->table->loop, &process->stall_timer, next_ms - now_ms, update_pace, process);
}

static void on_notify(void *ctx)
{
    struct process *process = process_ref(ctx);
    /* A call may detach any reader, so the list is turned round instead of walked; one call too many does no harm. */
    for (int told = 0; told < READERS_PER_TURN && process->untold > 0 && !list_empty(&process->readers); told++) {
        process->untold--;
        struct list *node = process->readers.next;
        struct process_reader *reader = LIST_ENTRY(node, struct process_reader, node);
        list_remove(node);
        list_append(&process->readers, node);
        reader->fn(reader->ctx);
    }
    if (process->untold > 0 && !list_empty(&process->readers))
        loop_defer_start(process->table->loop, &process->notify, on_notify, process);
    process_unref(process);
}

void process_output_notify(struct process *process)
{
    process->untold = 0;
    LIST_EACH (&process->readers, node)
        process->untold++;
    if (process->untold > 0)
        loop_defer_start(process->table->loop, &process->notify, on_notify, process);
}

void process_reader_attach(struct process *process, struct process_reader *reader, loop_fn fn, void *ctx)
{
    reader->process = process_ref(process);
    reader->took_at_ms = loop_now_ms(process->table->loop);
    reader->fn = fn;
    reader->ctx = ctx;
    list_append(&process->readers, &reader->node);
    if (reader->offset[0] != PROCESS_NOT_READ || reader->offset[1] != PROCESS_NOT_READ)
        process->held_until_ms = 0;
    update_pace(process);
    process_output_notify(process);
}

void process_reader_took(struct process_reader *reader)
{
    struct process *process = reader->process;
    reader->took_at_ms = loop_now_ms(process->table->loop);
    if (process->outputs[0].paused || process->outputs[1].paused)
        update_pace(process);
}

void process_reader_detach(struct process_reader *reader)
{
    struct process *process = reader->process;
    if (process == NULL)
        return;
    list_remove(&reader->node);
    reader->process = NULL;
    update_pace(process);
    process_unref(process);
}

/* --- reading */

static void take(struct process_output *output, const char *bytes, size_t len)
{
    const struct process *process = output->process;
    if (process->state == PROCESS_DRAINED)
        return; /* a grandchild's, read so that it need not die of SIGPIPE; what the program printed keeps its place */
    ring_append(&output->ring, bytes, len);
    if (output->capture != NULL)
        capture_append(output->capture, bytes, len);
}

/* Reads up to `budget` bytes, or until the pipe is empty or closed. */
static void read_pipe(struct process_output *output, uint64_t budget)
{
    static char bytes[READ_BYTES]; /* main thread only */
    while (budget > 0) {
        size_t wanted = budget < READ_BYTES ? (size_t)budget : READ_BYTES;
        ssize_t len = read(output->fd, bytes, wanted);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return;
        if (len <= 0) {
            process_output_close(output);
            return;
        }
        take(output, bytes, (size_t)len);
        budget -= (uint64_t)len;
        if (len < READ_BYTES)
            return;
        if (!output->widened) { /* not at the start: it costs a small program more than it gives */
            output->widened = true;
            fcntl(output->fd, F_SETPIPE_SZ, PIPE_BYTES);
        }
    }
}

static uint64_t turn_bytes(const struct process_table *table)
{
    uint64_t share = TURN_ALL_BYTES / (table->living_count + 1);
    return share > TURN_BYTES_MAX ? TURN_BYTES_MAX : share < TURN_BYTES_MIN ? TURN_BYTES_MIN : share;
}

/* What is in the pipe of one that has not ended. */
static uint64_t in_pipe(const struct process_output *output)
{
    int left = 0;
    return output->fd >= 0 && ioctl(output->fd, FIONREAD, &left) == 0 && left > 0 ? (uint64_t)left : 0;
}

static uint64_t left_of(const struct process_output *output)
{
    if (output->process->state == PROCESS_RUNNING)
        return in_pipe(output);
    return output->fd >= 0 && output->ring.end < output->exit_end ? output->exit_end - output->ring.end : 0;
}

static void drained_if_so(struct process *process)
{
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        if (output->fd < 0)
            output->exit_end = output->ring.end;
        else if (output->ring.end < output->exit_end)
            return;
    }
    process->state = PROCESS_DRAINED;
    process_table_ended(process->table, process);
}

static void on_readable(void *ctx, int events)
{
    struct process_output *output = ctx;
    struct process *process = process_ref(output->process);
    (void)events;
    LIST_EACH (&process->readers, node) {
        struct process_reader *reader = LIST_ENTRY(node, struct process_reader, node);
        if (!is_waiting(reader))
            reader->took_at_ms = loop_now_ms(process->table->loop);
    }
    if (process->state == PROCESS_EXITED) {
        uint64_t left = output->exit_end - output->ring.end;
        if (left > 0) {
            read_pipe(output, left < DRAIN_TURN_BYTES ? left : DRAIN_TURN_BYTES);
            drained_if_so(process);
        }
    } else {
        read_pipe(output, turn_bytes(process->table));
    }
    process_output_notify(process);
    update_pace(process);
    process_unref(process);
}

int process_output_watch(struct process *process, struct err *err)
{
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        output->watch = loop_fd_new(process->table->loop, output->fd, LOOP_READABLE, on_readable, output);
        if (output->watch == NULL)
            return err_set_errno(err, ERR_INTERNAL, errno, "cannot watch a pipe");
    }
    return 0;
}

void process_output_drain(struct process *process)
{
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        uint64_t left = in_pipe(output);
        output->exit_end = output->ring.end + left;
        if (left > 0)
            read_pipe(output, left < DRAIN_TURN_BYTES ? left : DRAIN_TURN_BYTES);
    }
    drained_if_so(process);
    process_output_notify(process);
    update_pace(process);
}

void process_output_catch_up(struct process *process)
{
    bool was_exited = process->state == PROCESS_EXITED && process->terminal.on_dropped == NULL;
    if (process->state == PROCESS_DRAINED)
        return;
    process_ref(process);
    uint64_t read = 0;
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        uint64_t left = left_of(output);
        read += left;
        if (left > 0)
            read_pipe(output, left);
    }
    if (was_exited)
        drained_if_so(process);
    if (read > 0) {
        process_output_notify(process);
        update_pace(process);
    }
    process_unref(process);
}

uint64_t process_output_ahead(const struct process *process, enum process_stream stream)
{
    const struct process_output *output = &process->outputs[stream];
    return output->ring.end + left_of(output);
}

void process_terminal_drained(struct process *process)
{
    assert(process->state == PROCESS_EXITED && process->terminal.on_dropped != NULL);
    process_ref(process);
    drained_if_so(process); /* its pipes never were */
    process_output_notify(process);
    process_unref(process);
}

const struct ring *process_ring(const struct process *process, enum process_stream stream)
{
    return &process->outputs[stream].ring;
}

uint64_t process_exit_end(const struct process *process, enum process_stream stream)
{
    return process->outputs[stream].exit_end;
}

bool process_stream_closed(const struct process *process, enum process_stream stream)
{
    return process->outputs[stream].fd < 0;
}

void process_captured(struct process *process, enum process_stream stream, struct capture_view *out)
{
    struct capture *capture = process->outputs[stream].capture;
    if (capture == NULL)
        *out = (struct capture_view){0};
    else
        capture_view(capture, out);
}

int process_capture_restart(struct process *process, size_t limit_bytes, struct err *err)
{
    process_capture_free(process);
    for (int i = 0; i < 2; i++) {
        if (capture_output(&process->outputs[i], limit_bytes, err) != 0) {
            process_capture_free(process);
            return -1;
        }
    }
    return 0;
}

void process_capture_free(struct process *process)
{
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        if (output->capture != NULL) {
            capture_deinit(output->capture);
            free(output->capture);
            output->capture = NULL;
        }
    }
}
