/* Connections that wait: who has left while suspended, and whose time is over. Used by http_connection. */
#include "net/http_listener_parts.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, SWEEP_MIN_MS = 25, SWEEP_MAX_MS = 1000 };

/* The client closed its side, or the connection broke. One that only shut down its writing counts as gone too: a
 * suspended request could not tell it from one that left. */
static void on_hangup(void *ctx, int events)
{
    struct http_listener *listener = ctx;
    struct epoll_event list[EVENTS_MAX];
    int count = epoll_wait(listener->watch_epoll, list, EVENTS_MAX, 0);

    (void)events;
    for (int i = 0; i < count; i++) {
        struct http_connection *connection = list[i].data.ptr;

        if (connection->watched)
            http_connection_cut(connection);
    }
}

int http_watch_init(struct http_listener *listener, struct err *err)
{
    list_init(&listener->waiting);
    listener->watch_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (listener->watch_epoll < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "no epoll descriptor");
    listener->watch = loop_fd_new(listener->loop, listener->watch_epoll, LOOP_READABLE, on_hangup, listener);
    if (!listener->watch)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot watch connections");
    return 0;
}

void http_watch_deinit(struct http_listener *listener)
{
    loop_timer_stop(&listener->watch_timer);
    loop_timer_stop(&listener->sweep);
    loop_fd_free(listener->watch);
    if (listener->watch_epoll >= 0)
        close(listener->watch_epoll);
}

static void on_watch_timer(void *ctx)
{
    struct http_listener *listener = ctx;
    uint64_t now_ms = loop_now_ms(listener->loop);

    LIST_EACH (&listener->waiting, node) {
        struct http_connection *connection = LIST_ENTRY(node, struct http_connection, wait_node);
        struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = connection};
        uint64_t due_ms = connection->waiting_since_ms + HTTP_WATCH_AFTER_MS;

        if (due_ms > now_ms) {
            loop_timer_start(listener->loop, &listener->watch_timer, due_ms - now_ms, on_watch_timer, listener);
            return;
        }
        list_remove(node);
        connection->watched = epoll_ctl(listener->watch_epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0;
    }
}

void http_watch_add(struct http_connection *connection)
{
    struct http_listener *listener = connection->listener;

    connection->waiting_since_ms = loop_now_ms(listener->loop);
    list_append(&listener->waiting, &connection->wait_node);
    if (listener->watch_timer.heap_slot == 0)
        loop_timer_start(listener->loop, &listener->watch_timer, HTTP_WATCH_AFTER_MS, on_watch_timer, listener);
}

void http_watch_remove(struct http_connection *connection)
{
    list_remove(&connection->wait_node);
    if (connection->watched)
        epoll_ctl(connection->listener->watch_epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    connection->watched = false;
}

static void cut_closed(struct pollfd *polls, struct http_connection **connections, nfds_t count)
{
    char byte;

    if (count == 0 || poll(polls, count, 0) <= 0)
        return;
    for (nfds_t i = 0; i < count; i++) {
        if (polls[i].revents && recv(polls[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
            http_connection_cut(connections[i]);
    }
}

/* libmicrohttpd 0.9.75 misses the end of a connection that came together with a request: its edge-triggered epoll tells
 * of both at once, and it reads no further than the request. Such a client would wait for us until the idle time is
 * over. */
static void cut_half_closed(struct http_listener *listener)
{
    struct pollfd polls[EVENTS_MAX];
    struct http_connection *reading[EVENTS_MAX];
    nfds_t count = 0;

    LIST_EACH (&listener->connections, node) {
        struct http_connection *connection = LIST_ENTRY(node, struct http_connection, node);

        if (connection->gone || connection->suspended || connection->body_over)
            continue; /* what is being answered ends by itself */
        polls[count] = (struct pollfd){.fd = connection->fd, .events = POLLRDHUP};
        reading[count++] = connection;
        if (count == EVENTS_MAX) {
            cut_closed(polls, reading, count);
            count = 0;
        }
    }
    cut_closed(polls, reading, count);
}

/* A short sendfile looks to libmicrohttpd like a full socket, and it would wait for room that is there already. */
static bool file_shrank(const struct http_connection *connection)
{
    const struct response_file *file = &connection->response.file;
    struct stat status;

    return connection->sending_fd >= 0 && fstat(connection->sending_fd, &status) == 0 &&
           (uint64_t)status.st_size < file->first + file->length;
}

static void on_sweep(void *ctx)
{
    struct http_listener *listener = ctx;
    uint64_t now_ms = loop_now_ms(listener->loop);

    LIST_EACH (&listener->connections, node) {
        struct http_connection *connection = LIST_ENTRY(node, struct http_connection, node);

        bool late = connection->deadline_ms && now_ms >= connection->deadline_ms && !connection->suspended;

        if (late || file_shrank(connection))
            http_connection_cut(connection);
    }
    cut_half_closed(listener);
    http_watch_sweep(listener);
}

/* One timer for all: deadlines change with every request, and a timer for each would cost more than being a little
 * late. */
void http_watch_sweep(struct http_listener *listener)
{
    uint64_t shortest_ms =
        listener->head_timeout_ms < listener->body_timeout_ms ? listener->head_timeout_ms : listener->body_timeout_ms;
    uint64_t interval_ms = shortest_ms / 4;

    if (list_empty(&listener->connections) || listener->sweep.heap_slot != 0)
        return;
    if (interval_ms < SWEEP_MIN_MS)
        interval_ms = SWEEP_MIN_MS;
    if (interval_ms > SWEEP_MAX_MS)
        interval_ms = SWEEP_MAX_MS;
    loop_timer_start(listener->loop, &listener->sweep, interval_ms, on_sweep, listener);
}
