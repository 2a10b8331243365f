/* The listener's insides, shared by the files of net/http_* only. */
#ifndef ABX_NET_HTTP_LISTENER_PARTS_H
#define ABX_NET_HTTP_LISTENER_PARTS_H

#include "net/http_connection.h"
#include "net/http_listener.h"

struct http_pump;

struct http_listener {
    struct loop *loop;
    struct pipeline *pipeline;
    struct MHD_Daemon *daemon;
    int socket; /* -1 once closed */
    unsigned port;
    struct http_pump *pump;

    struct list connections;
    size_t connection_count;
    uint64_t head_timeout_ms, body_timeout_ms, idle_timeout_ms;
    struct loop_timer sweep; /* looks for deadlines that have passed */

    struct list waiting; /* suspended, oldest first, not watched yet */
    struct loop_timer watch_timer;
    int watch_epoll; /* EPOLLRDHUP of the suspended ones */
    struct loop_fd *watch;
};

/* Runs libmicrohttpd from the loop; see http_pump.c. */
struct http_pump *http_pump_new(struct loop *loop, struct MHD_Daemon *daemon);
/* Something was resumed: run libmicrohttpd in this turn of the loop. */
void http_pump_wake(struct http_pump *pump);
/* Called within a run: the next one comes in the next turn of the loop, after all that is due in it. */
void http_pump_linger(struct http_pump *pump);
/* Called within a run, once for each answer that is ready at once: whether it is to be held back until the next run,
 * which follows. Under load the requests of a turn are all read before the first answer is sent: one that goes out at
 * once wakes the client for itself alone. */
bool http_pump_gathers(struct http_pump *pump);
void http_pump_free(struct http_pump *pump);

/* Connections that come, go and wait; see http_watch.c. */
int http_watch_init(struct http_listener *listener, struct err *err) ABX_MUST_USE;
void http_watch_deinit(struct http_listener *listener);
void http_watch_add(struct http_connection *connection);    /* it is suspended from now on */
void http_watch_remove(struct http_connection *connection); /* before it is resumed */
void http_watch_sweep(struct http_listener *listener);      /* starts looking for deadlines */

#endif
