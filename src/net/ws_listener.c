/* The terminals' port: the thread, who is accepted, and how it ends. Made and ended by server. */
#include "net/ws_listener.h"

#include "base/log.h"
#include "net/listen_socket.h"
#include "net/ws_listener_parts.h"
#include "net/ws_session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTS_A_TURN = 64,
    ACCEPT_PAUSE_MS = 100, /* when descriptors have run out */
    PING_MS = 20 * 1000,
    GIVE_UP_MS = 500, /* for closing politely */
};

/* --- accepting */

static void watch_accepts(struct ws_listener *listener)
{
    if (listener->accepting)
        loop_fd_set(listener->accepting, listener->full || listener->pausing ? 0 : LOOP_READABLE);
}

void ws_listener_one_less(struct ws_listener *listener)
{
    listener->connections--;
    listener->full = false;
    watch_accepts(listener);
    if (listener->closing && listener->connections == 0)
        loop_stop(listener->own);
}

static void on_pause_over(void *ctx)
{
    struct ws_listener *listener = ctx;

    listener->pausing = false;
    watch_accepts(listener);
}

static void pause_accepting(struct ws_listener *listener, int error)
{
    log_warn("ws", "cannot accept a connection: %s", strerror(error));
    listener->pausing = true;
    watch_accepts(listener);
    loop_timer_start(listener->own, &listener->accept_pause, ACCEPT_PAUSE_MS, on_pause_over, listener);
}

static void on_acceptable(void *ctx, int events)
{
    struct ws_listener *listener = ctx;
    int one = 1;

    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd;

        if (listener->connections >= listener->connections_max) {
            listener->full = true;
            watch_accepts(listener);
            return;
        }
        fd = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_accepting(listener, errno);
            return; /* a client that left in the queue comes up here too: the next turn looks on */
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        ws_opening_new(listener, fd);
    }
}

static void stop_accepting(struct ws_listener *listener)
{
    loop_fd_free(listener->accepting);
    listener->accepting = NULL;
    if (listener->socket >= 0)
        close(listener->socket);
    listener->socket = -1;
}

/* --- pings */

static void on_pings(void *ctx)
{
    struct ws_listener *listener = ctx;

    LIST_EACH (&listener->sessions, node) {
        ws_session_ping(ws_session_of_node(node));
    }
    loop_timer_start(listener->own, &listener->pings, PING_MS, on_pings, listener);
}

/* --- the thread */

static void on_give_up(void *ctx)
{
    struct ws_listener *listener = ctx;

    loop_stop(listener->own);
}

static void on_wake(void *ctx, int events)
{
    struct ws_listener *listener = ctx;
    eventfd_t count;

    (void)events;
    (void)!eventfd_read(listener->wake, &count);
    if (!atomic_load(&listener->stopping) || listener->closing)
        return;
    listener->closing = true;
    stop_accepting(listener);
    ws_openings_drop(listener);
    LIST_EACH (&listener->sessions, node) {
        ws_session_shut_down(ws_session_of_node(node));
    }
    loop_timer_start(listener->own, &listener->give_up, listener->connections > 0 ? GIVE_UP_MS : 0, on_give_up,
                     listener);
}

static void *run(void *ctx)
{
    struct ws_listener *listener = ctx;

    loop_run(listener->own);
    return NULL;
}

int ws_listener_start(struct ws_listener *listener, struct err *err)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&listener->thread, NULL, run, listener);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return err_set_errno(err, ERR_INTERNAL, failed, "cannot start the terminals' thread");
    pthread_setname_np(listener->thread, "terminals");
    listener->started = true;
    return 0;
}

/* --- life */

static int open_parts(struct ws_listener *listener, const struct ws_options *options, struct err *err)
{
    listener->frame = malloc(WS_FRAME_MAX_BYTES);
    listener->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!listener->frame || listener->wake < 0)
        return err_set(err, ERR_INTERNAL, "out of memory for the terminals' port");
    listener->socket = listen_socket_open(options->host, options->port, err);
    if (listener->socket < 0)
        return -1;
    listener->port = listen_socket_port(listener->socket);
    listener->wake_watch = loop_fd_new(listener->own, listener->wake, LOOP_READABLE, on_wake, listener);
    listener->accepting = loop_fd_new(listener->own, listener->socket, LOOP_READABLE, on_acceptable, listener);
    if (!listener->wake_watch || !listener->accepting)
        return err_set(err, ERR_INTERNAL, "cannot watch the terminals' port");
    return 0;
}

struct ws_listener *ws_listener_new(struct loop *own, struct terminals *terminals, const struct ws_options *options,
                                    struct err *err)
{
    struct ws_listener *listener = calloc(1, sizeof(*listener));

    if (!listener) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    listener->own = own;
    listener->terminals = terminals;
    listener->policy = options->policy;
    listener->connections_max = options->connections_max;
    listener->socket = listener->wake = -1;
    list_init(&listener->openings);
    list_init(&listener->sessions);
    arena_init(&listener->arena, WS_MESSAGE_ARENA_BYTES);
    buf_init(&listener->out, WS_OUT_MAX_BYTES);
    if (open_parts(listener, options, err) < 0) {
        ws_listener_free(listener);
        return NULL;
    }
    loop_timer_start(own, &listener->pings, PING_MS, on_pings, listener);
    return listener;
}

unsigned ws_listener_port(const struct ws_listener *listener)
{
    return listener->port;
}

void ws_listener_drain(struct ws_listener *listener)
{
    atomic_store(&listener->draining, true);
}

void ws_listener_free(struct ws_listener *listener)
{
    if (!listener)
        return;
    atomic_store(&listener->draining, true);
    if (listener->started) {
        atomic_store(&listener->stopping, true);
        (void)!eventfd_write(listener->wake, 1);
        pthread_join(listener->thread, NULL);
    }
    LIST_EACH (&listener->sessions, node) {
        ws_session_free(ws_session_of_node(node));
    }
    ws_openings_drop(listener);
    stop_accepting(listener);
    loop_timer_stop(&listener->pings);
    loop_timer_stop(&listener->accept_pause);
    loop_timer_stop(&listener->give_up);
    loop_fd_free(listener->wake_watch);
    if (listener->wake >= 0)
        close(listener->wake);
    arena_deinit(&listener->arena);
    free(listener->frame);
    buf_deinit(&listener->out);
    free(listener);
}
