/* The HTTP listener: libmicrohttpd in external epoll mode on the main loop. Main thread only. */
#ifndef ABX_NET_HTTP_LISTENER_H
#define ABX_NET_HTTP_LISTENER_H

#include "base/err.h"
#include "base/loop.h"
#include "request/pipeline.h"

struct http_listener;

struct http_options {
    const char *host; /* numeric address or name; v4 or v6 */
    unsigned port;    /* 0: the kernel chooses */
    size_t connections_max;
    unsigned idle_timeout_s;  /* connections without a request, and clients that stopped taking their answer */
    unsigned head_timeout_ms; /* for the whole head of a request (slow clients) */
    unsigned body_timeout_ms; /* between two pieces of a body */
};

/* Binds and listens; NULL with *err (saved_errno EADDRINUSE where the port is taken). */
struct http_listener *http_listener_new(struct loop *loop, struct pipeline *pipeline,
                                        const struct http_options *options, struct err *err);
unsigned http_listener_port(const struct http_listener *listener);
/* Stops accepting; open connections go on. */
void http_listener_quiesce(struct http_listener *listener);
size_t http_listener_connections(const struct http_listener *listener);
/* Ends what is left (suspended connections are resumed with an answer first: libmicrohttpd aborts otherwise) and frees.
 */
void http_listener_free(struct http_listener *listener);

#endif
