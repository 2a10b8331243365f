/* TCP for libgit2: its own sockets wait for ever, and it tells nobody where a redirect leads. See the header. */
#include "helper/git_stream.h"

#include "base/loop.h"
#include "helper/git.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <git2/sys/stream.h>

static struct {
    uint64_t deadline_ns;
    git_stream_guard_fn guard;
    void *ctx;
} rules; /* libgit2 hands its streams no context */

struct tcp_stream {
    git_stream parent;
    char *host, *port;
    int fd;
};

/* The kernel gives up with the same word as our deadline does. */
static bool is_over(int errno_value)
{
    return errno_value == ETIMEDOUT && loop_clock_ns() >= rules.deadline_ns;
}

static int fail(const char *what, int errno_value)
{
    char text[512];
    snprintf(text, sizeof(text), "%s: %s", what, strerror(errno_value));
    git_error_set_str(GIT_ERROR_NET, text);
    return is_over(errno_value) ? git_stop(NULL) : -1;
}

/* 0, or the errno; ETIMEDOUT past the deadline. */
static int wait_for(int fd, short events)
{
    for (;;) {
        uint64_t now_ns = loop_clock_ns();
        if (now_ns >= rules.deadline_ns)
            return ETIMEDOUT;
        uint64_t left_ms = (rules.deadline_ns - now_ns) / 1000000 + 1;
        struct pollfd poll_fd = {.fd = fd, .events = events};
        int ready = poll(&poll_fd, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return errno;
    }
}

/* A descriptor, or -1 with errno. */
static int connect_to(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);
    if (fd < 0)
        return -1;
    int reason = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (reason == EINPROGRESS)
        reason = wait_for(fd, POLLOUT);
    socklen_t len = sizeof(reason);
    if (reason == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &len) != 0)
        reason = errno;
    if (reason == 0) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return fd;
    }
    close(fd);
    errno = reason;
    return -1;
}

static int stream_connect(git_stream *stream)
{
    struct tcp_stream *tcp = (struct tcp_stream *)stream;
    int rc = rules.guard(rules.ctx, tcp->host, tcp->port);
    if (rc != 0)
        return rc;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC}, *found;
    char text[400];
    rc = getaddrinfo(tcp->host, tcp->port, &hints, &found);
    if (rc != 0) {
        snprintf(text, sizeof(text), "cannot find the address of %s: %s", tcp->host, gai_strerror(rc));
        git_error_set_str(GIT_ERROR_NET, text);
        return -1;
    }
    int reason = EHOSTUNREACH;
    for (const struct addrinfo *address = found; address && tcp->fd < 0 && !is_over(reason);
         address = address->ai_next) {
        tcp->fd = connect_to(address);
        reason = errno;
    }
    freeaddrinfo(found);
    if (tcp->fd >= 0)
        return 0;
    snprintf(text, sizeof(text), "cannot connect to %s port %s", tcp->host, tcp->port);
    return fail(text, reason);
}

static ssize_t stream_read(git_stream *stream, void *data, size_t len)
{
    struct tcp_stream *tcp = (struct tcp_stream *)stream;
    for (;;) {
        ssize_t got = recv(tcp->fd, data, len, 0);
        if (got >= 0)
            return got;
        int reason = errno == EAGAIN ? wait_for(tcp->fd, POLLIN) : errno == EINTR ? 0 : errno;
        if (reason != 0)
            return fail("the connection broke while reading", reason);
    }
}

static ssize_t stream_write(git_stream *stream, const char *data, size_t len, int flags)
{
    (void)flags;
    struct tcp_stream *tcp = (struct tcp_stream *)stream;
    for (;;) {
        ssize_t sent = send(tcp->fd, data, len, MSG_NOSIGNAL);
        if (sent >= 0)
            return sent;
        int reason = errno == EAGAIN ? wait_for(tcp->fd, POLLOUT) : errno == EINTR ? 0 : errno;
        if (reason != 0)
            return fail("the connection broke while writing", reason);
    }
}

static int stream_close(git_stream *stream)
{
    struct tcp_stream *tcp = (struct tcp_stream *)stream;
    if (tcp->fd >= 0)
        close(tcp->fd);
    tcp->fd = -1;
    return 0;
}

static void stream_free(git_stream *stream)
{
    struct tcp_stream *tcp = (struct tcp_stream *)stream;
    stream_close(stream);
    free(tcp->host);
    free(tcp->port);
    free(tcp);
}

static int stream_init(git_stream **out, const char *host, const char *port)
{
    struct tcp_stream *tcp = calloc(1, sizeof(*tcp));
    if (!tcp) {
        git_error_set_oom();
        return -1;
    }
    tcp->parent = (git_stream){.version = GIT_STREAM_VERSION,
                               .connect = stream_connect,
                               .read = stream_read,
                               .write = stream_write,
                               .close = stream_close,
                               .free = stream_free};
    tcp->fd = -1;
    tcp->host = strdup(host);
    tcp->port = strdup(port);
    if (!tcp->host || !tcp->port) {
        stream_free(&tcp->parent);
        git_error_set_oom();
        return -1;
    }
    *out = &tcp->parent;
    return 0;
}

int git_stream_install(uint64_t deadline_ns, git_stream_guard_fn guard, void *ctx)
{
    git_stream_registration registration = {.version = GIT_STREAM_VERSION, .init = stream_init};
    rules.deadline_ns = deadline_ns;
    rules.guard = guard;
    rules.ctx = ctx;
    return git_stream_register(GIT_STREAM_STANDARD, &registration);
}
