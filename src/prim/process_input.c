/* A program's standard input: what it was started with, then, where it is kept open, what writers bring in turn, each
 * as the pipe drains; part of the process table. */
#include "prim/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURN_BYTES = 256 * 1024 }; /* a program that reads as fast as we write starves nobody */

enum written { WRITTEN_ALL, WRITTEN_SOME, WRITTEN_UNREAD };

/* Writes until the pipe is full. WRITTEN_UNREAD: nobody reads it any more (EPIPE: not our fault). */
static enum written write_some(int fd, const char *bytes, size_t len, size_t *written)
{
    size_t until = len - *written < TURN_BYTES ? len : *written + TURN_BYTES;
    while (*written < until) {
        ssize_t n = write(fd, bytes + *written, until - *written);
        if (n >= 0)
            *written += (size_t)n;
        else if (errno != EINTR)
            return errno == EAGAIN ? WRITTEN_SOME : WRITTEN_UNREAD;
    }
    return until == len ? WRITTEN_ALL : WRITTEN_SOME;
}

/* --- one writer after another */

/* It is no longer among the writers; tells nobody. The reference that it held is the caller's then. */
static struct process *leave(struct process_write *write, bool done)
{
    struct process *process = write->process;
    list_remove(&write->node);
    write->process = NULL;
    write->state = done ? PROCESS_WRITE_DONE : PROCESS_WRITE_FAILED;
    return process;
}

static void end_write(struct process_write *write, bool done)
{
    struct process *process = leave(write, done);
    if (write == &process->input.first) {
        free(process->input.bytes);
        process->input.bytes = NULL;
        return;
    }
    loop_defer_start(process->table->loop, &write->defer, write->fn, write->ctx);
    process_unref(process);
}

/* Whoever calls holds the process. */
static void shut(struct process *process, enum process_stdin state)
{
    struct process_input *input = &process->input;
    loop_fd_free(input->watch);
    input->watch = NULL;
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
    if (input->state == PROCESS_STDIN_OPEN)
        input->state = state;
    LIST_EACH (&input->writes, node)
        end_write(LIST_ENTRY(node, struct process_write, node), false);
}

void process_input_close(struct process *process)
{
    shut(process, PROCESS_STDIN_UNREAD);
}

/* Writes for whoever's turn it is, until the pipe is full. */
static void pump(struct process *process)
{
    struct process_input *input = &process->input;
    process_ref(process);
    while (!list_empty(&input->writes)) {
        struct process_write *write = LIST_ENTRY(input->writes.next, struct process_write, node);
        enum written written = write_some(input->fd, write->bytes, write->len, &write->written);
        if (written == WRITTEN_UNREAD)
            shut(process, PROCESS_STDIN_UNREAD);
        if (written != WRITTEN_ALL)
            break;
        bool eof = write->eof;
        end_write(write, true);
        if (eof)
            shut(process, PROCESS_STDIN_ENDED);
    }
    if (input->watch != NULL)
        loop_fd_set(input->watch, list_empty(&input->writes) ? 0 : LOOP_WRITABLE);
    process_unref(process);
}

static void on_writable(void *ctx, int events)
{
    (void)events;
    pump(ctx);
}

/* --- what others call */

int process_input_open(struct process *process, int fd, const char *bytes, size_t len, bool keep, struct err *err)
{
    struct process_input *input = &process->input;
    struct process_write *first = &input->first;
    size_t written = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    input->fd = fd;
    if (keep)
        input->state = PROCESS_STDIN_OPEN;
    enum written first_try = write_some(fd, bytes, len, &written);
    if (first_try == WRITTEN_UNREAD || (first_try == WRITTEN_ALL && !keep)) {
        process_input_close(process);
        return 0;
    }
    first->len = len - written;
    first->eof = !keep;
    if (first->len > 0) {
        input->bytes = malloc(first->len);
        if (input->bytes == NULL)
            return err_set(err, ERR_INTERNAL, "out of memory for standard input");
        memcpy(input->bytes, bytes + written, first->len);
        first->bytes = input->bytes;
        first->process = process;
        list_append(&input->writes, &first->node);
    }
    input->watch = loop_fd_new(process->table->loop, fd, first->len > 0 ? LOOP_WRITABLE : 0, on_writable, process);
    if (input->watch == NULL)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot watch standard input");
    return 0;
}

enum process_stdin process_stdin(const struct process *process)
{
    return process->input.state;
}

void process_write_start(struct process *process, struct process_write *write, loop_fn fn)
{
    struct process_input *input = &process->input;
    if (input->state != PROCESS_STDIN_OPEN) {
        write->state = PROCESS_WRITE_FAILED;
        return;
    }
    write->fn = fn;
    write->process = process_ref(process);
    list_append(&input->writes, &write->node);
    if (input->writes.next == &write->node)
        pump(process);
    if (write->state != PROCESS_WRITE_WAITING)
        loop_defer_stop(&write->defer);
}

void process_write_stop(struct process_write *write)
{
    loop_defer_stop(&write->defer);
    if (write->process == NULL)
        return;
    struct process *process = leave(write, false);
    pump(process);
    process_unref(process);
}
