/* One client's connection and its current request: the glue between libmicrohttpd's callbacks and an exchange.
 *
 * Made and freed by libmicrohttpd's connection callback; everything here is for the main thread. */
#ifndef ABX_NET_HTTP_CONNECTION_H
#define ABX_NET_HTTP_CONNECTION_H

#include "base/list.h"
#include "base/loop.h"
#include "request/pipeline.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_DISCARD_MAX_BYTES = 16 * 1024 * 1024,
    HTTP_DISCARD_MAX_MS = 5000,
    HTTP_WATCH_AFTER_MS = 100, /* a request that waits longer is watched for its client leaving */
};

struct http_listener;

struct http_connection {
    struct list node;      /* among the listener's connections */
    struct list wait_node; /* among those that wait, oldest first; not watched yet */
    struct http_listener *listener;
    struct MHD_Connection *mhd;
    int fd;
    uint64_t deadline_ms; /* 0: none; past it the connection is cut */
    uint64_t waiting_since_ms;
    bool suspended, watched;
    bool gone; /* the client left, or time is over: libmicrohttpd is to close it */

    /* the current request */
    const char *target_at; /* in libmicrohttpd's buffer, for comparing only */
    char *target;          /* as it came; kept for the next request */
    size_t target_len, target_cap;
    struct exchange *exchange;
    bool has_body, body_over;
    bool head;     /* the method is HEAD */
    bool answered; /* response is filled */
    bool queued;
    bool lingered;  /* libmicrohttpd is asked to come back once: for the answer, or for sending it with others */
    int sending_fd; /* libmicrohttpd's, while a file goes out; else -1 */
    uint64_t discarded_bytes;
    struct response response;
};

/* Callbacks for MHD_start_daemon; cls is the listener. */
void *http_connection_on_target(void *cls, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_connection_on_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                          const char *version, const char *upload, size_t *upload_len, void **context);
void http_connection_on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                                  enum MHD_RequestTerminationCode how);
void http_connection_on_change(void *cls, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode what);

/* Suspends the request until http_connection_resume; each harmless the second time. */
void http_connection_suspend(struct http_connection *connection);
void http_connection_resume(struct http_connection *connection);
/* Ends it: cancels the exchange, then has libmicrohttpd close. */
void http_connection_cut(struct http_connection *connection);

#endif
