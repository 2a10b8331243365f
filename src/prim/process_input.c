/* A program's standard input, written as the pipe drains; part of the process table. */
#include "prim/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void process_input_close(struct process *process)
{
    struct process_input *input = &process->input;
    loop_fd_free(input->watch);
    if (input->fd >= 0)
        close(input->fd);
    free(input->bytes);
    *input = (struct process_input){.fd = -1};
}

/* Writes until the pipe is full; answers whether that was all, or nobody reads it any more (EPIPE: not our fault). */
static bool write_some(int fd, const char *bytes, size_t len, size_t *written)
{
    while (*written < len) {
        ssize_t n = write(fd, bytes + *written, len - *written);
        if (n >= 0)
            *written += (size_t)n;
        else if (errno != EINTR)
            return errno != EAGAIN;
    }
    return true;
}

static void on_writable(void *ctx, int events)
{
    struct process *process = ctx;
    struct process_input *input = &process->input;
    (void)events;
    if (write_some(input->fd, input->bytes, input->len, &input->written))
        process_input_close(process);
}

int process_input_open(struct process *process, int fd, const char *bytes, size_t len, struct err *err)
{
    struct process_input *input = &process->input;
    size_t written = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (write_some(fd, bytes, len, &written)) {
        close(fd);
        return 0;
    }
    input->fd = fd;
    input->len = len - written;
    input->bytes = malloc(input->len);
    input->watch = loop_fd_new(process->table->loop, fd, LOOP_WRITABLE, on_writable, process);
    if (input->bytes == NULL || input->watch == NULL) {
        process_input_close(process);
        return err_set(err, ERR_INTERNAL, "out of memory for standard input");
    }
    memcpy(input->bytes, bytes + written, input->len);
    return 0;
}
