/* Lines over a socket without ever waiting for it; see the header. Called by prim/worker_run. */
#include "prim/worker_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 * 1024,
    TURN_BYTES = 8 * READ_BYTES, /* then everybody else has a turn */
    KEEP_BYTES = 1024 * 1024,    /* of memory, by an empty buffer */
};

int worker_channel_open(struct worker_channel *channel, struct loop *loop, size_t line_max_bytes, size_t out_max_bytes,
                        int *out_theirs, struct err *err)
{
    int pair[2];
    *channel = (struct worker_channel){.loop = loop, .fd = -1};
    /* One more for the end of the line, and what is read at once may go beyond that before it is looked at. */
    buf_init(&channel->in, line_max_bytes + 1 + READ_BYTES);
    buf_init(&channel->out, out_max_bytes);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return err_set_errno(err, ERR_TOO_MANY_PROCESSES, errno, "cannot make another channel");
    channel->fd = pair[0];
    *out_theirs = pair[1];
    return 0;
}

void worker_channel_close(struct worker_channel *channel)
{
    loop_fd_free(channel->watch);
    channel->watch = NULL;
    if (channel->fd >= 0)
        close(channel->fd);
    channel->fd = -1;
}

void worker_channel_deinit(struct worker_channel *channel)
{
    worker_channel_close(channel);
    buf_deinit(&channel->in);
    buf_deinit(&channel->out);
}

/* Told first: who is to be killed for it does not see the end and get away. */
static void end(struct worker_channel *channel, const char *why)
{
    if (channel->fd >= 0)
        channel->on_closed(channel->ctx, why);
    worker_channel_close(channel);
}

static void empty(struct buf *buf)
{
    if (buf->cap > KEEP_BYTES)
        buf_deinit(buf);
    else
        buf_reset(buf);
}

/* Hands on the whole lines; the rest moves to the front once. */
static void take_lines(struct worker_channel *channel)
{
    struct buf *in = &channel->in;
    size_t line_at = 0;
    while (channel->fd >= 0 && channel->searched < in->len) {
        const char *from = in->data + channel->searched;
        const char *feed = memchr(from, '\n', in->len - channel->searched);
        channel->searched = feed != NULL ? (size_t)(feed + 1 - in->data) : in->len;
        if (feed == NULL)
            break;
        if (channel->searched - line_at - 1 > in->max - 1 - READ_BYTES) {
            end(channel, "it sent a line that is too long");
            return;
        }
        channel->on_line(channel->ctx, in->data + line_at, (size_t)(feed - in->data) - line_at);
        line_at = channel->searched;
    }
    if (channel->fd < 0)
        return; /* whoever closed it may still look at the line */
    if (line_at == in->len)
        empty(in);
    else if (line_at > 0)
        buf_consume(in, line_at);
    channel->searched = in->len;
}

/* Up to `budget` bytes of what is there. */
static void read_some(struct worker_channel *channel, size_t budget)
{
    while (channel->fd >= 0 && budget > 0) {
        size_t wanted = budget < READ_BYTES ? budget : READ_BYTES;
        if (channel->in.len > channel->in.max - READ_BYTES) {
            end(channel, "it sent a line that is too long");
            return;
        }
        if (buf_reserve(&channel->in, wanted) != 0) {
            end(channel, "there is no memory for what it sent");
            return;
        }
        ssize_t len = recv(channel->fd, channel->in.data + channel->in.len, wanted, MSG_DONTWAIT);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return;
        if (len <= 0) {
            end(channel, NULL);
            return;
        }
        channel->in.len += (size_t)len;
        budget -= (size_t)len;
        take_lines(channel);
    }
}

static void on_ready(void *ctx, int events)
{
    struct worker_channel *channel = ctx;
    bool was_deaf = channel->deaf;
    if (events & LOOP_WRITABLE)
        worker_channel_send(channel);
    if (events & ~LOOP_WRITABLE)
        read_some(channel, TURN_BYTES);
    else if (was_deaf) /* and has nothing to say, not even that it has ended */
        end(channel, "it does not read its channel");
}

void worker_channel_send(struct worker_channel *channel)
{
    struct buf *out = &channel->out;
    while (channel->fd >= 0 && channel->sent < out->len) {
        ssize_t len =
            send(channel->fd, out->data + channel->sent, out->len - channel->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0) {
            channel->deaf = errno == EPIPE; /* if it has ended, that is seen where it is read, behind what it said */
            break;
        }
        channel->sent += (size_t)len;
    }
    if (channel->fd < 0)
        return;
    bool all = channel->sent == out->len;
    if (all) {
        empty(out);
        channel->sent = 0;
    } else if (channel->sent > out->len / 2) { /* who is always a bit behind shall not fill it up */
        buf_consume(out, channel->sent);
        channel->sent = 0;
    }
    if (channel->watch == NULL)
        channel->watch = loop_fd_new(channel->loop, channel->fd, LOOP_READABLE, on_ready, channel);
    if (channel->watch != NULL)
        loop_fd_set(channel->watch, LOOP_READABLE | (all ? 0 : LOOP_WRITABLE));
}

void worker_channel_finish(struct worker_channel *channel)
{
    int left = 0;
    /* What a child of it still writes is not waited for. */
    if (channel->fd >= 0 && ioctl(channel->fd, FIONREAD, &left) == 0 && left > 0)
        read_some(channel, (size_t)left);
}
