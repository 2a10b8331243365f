/* Opens the REST port and owns libmicrohttpd's daemon; made and ended by server. */
#include "net/http_listener.h"

#include "base/log.h"
#include "net/http_listener_parts.h"
#include "net/listen_socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* libmicrohttpd wipes all of it after every request (MHD_pool_reset), so twice as much costs a tenth of the rate;
     * it holds the heads of a request and of its answer. */
    CONNECTION_MEMORY_BYTES = 16384,
    CONNECTION_MEMORY_STEP_BYTES = 15000,
    LAST_RUNS_MAX = 16,
};

static void on_library_log(void *cls, const char *format, va_list args)
{
    char line[512];
    size_t len;

    (void)cls;
    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    vsnprintf(line, sizeof(line), format, args);
    len = strlen(line);
    while (len > 0 && line[len - 1] == '\n')
        line[--len] = '\0';
    log_write(LOG_LEVEL_DEBUG, "http", NULL, "%s", line);
}

/* The logger goes first, or early complaints go to stderr. No STRICT_FOR_CLIENT: its refusals come with the header
 * block twice. No LISTENING_ADDRESS_REUSE: 0 would switch SO_REUSEADDR off. */
static struct MHD_Daemon *start_daemon(struct http_listener *listener, const struct http_options *options)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, http_connection_on_access,
        listener, MHD_OPTION_EXTERNAL_LOGGER, on_library_log, NULL, MHD_OPTION_LISTEN_SOCKET, listener->socket,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)CONNECTION_MEMORY_STEP_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, options->idle_timeout_s, MHD_OPTION_URI_LOG_CALLBACK, http_connection_on_target,
        listener, MHD_OPTION_NOTIFY_COMPLETED, http_connection_on_completed, listener, MHD_OPTION_NOTIFY_CONNECTION,
        http_connection_on_change, listener, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

struct http_listener *http_listener_new(struct loop *loop, struct pipeline *pipeline,
                                        const struct http_options *options, struct err *err)
{
    struct http_listener *listener = calloc(1, sizeof(*listener));

    if (!listener) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    listener->loop = loop;
    listener->pipeline = pipeline;
    listener->watch_epoll = listener->socket = -1;
    listener->head_timeout_ms = options->head_timeout_ms;
    listener->body_timeout_ms = options->body_timeout_ms;
    listener->idle_timeout_ms = (uint64_t)options->idle_timeout_s * 1000;
    list_init(&listener->connections);
    if (http_watch_init(listener, err) < 0 ||
        (listener->socket = listen_socket_open(options->host, options->port, err)) < 0) {
        http_listener_free(listener);
        return NULL;
    }
    listener->port = listen_socket_port(listener->socket);
    listener->daemon = start_daemon(listener, options);
    if (listener->daemon)
        listener->pump = http_pump_new(loop, listener->daemon);
    if (!listener->pump) {
        http_listener_free(listener);
        err_set(err, ERR_INTERNAL, "the HTTP library did not start");
        return NULL;
    }
    return listener;
}

unsigned http_listener_port(const struct http_listener *listener)
{
    return listener->port;
}

void http_listener_quiesce(struct http_listener *listener)
{
    if (listener->socket < 0)
        return;
    MHD_quiesce_daemon(listener->daemon);
    close(listener->socket);
    listener->socket = -1;
}

size_t http_listener_connections(const struct http_listener *listener)
{
    return listener->connection_count;
}

/* Stopping with a suspended connection aborts the process, so all get an answer, or are cut where they stream. */
static void resume_all(struct http_listener *listener)
{
    struct err err;

    err_set(&err, ERR_SHUTTING_DOWN, "the server is shutting down");
    LIST_EACH (&listener->connections, node) {
        struct http_connection *connection = LIST_ENTRY(node, struct http_connection, node);

        if (connection->exchange && !connection->answered)
            exchange_fail(connection->exchange, &err);
    }
    for (int i = 0; i < LAST_RUNS_MAX; i++)
        MHD_run(listener->daemon);
    LIST_EACH (&listener->connections, node) {
        struct http_connection *connection = LIST_ENTRY(node, struct http_connection, node);

        if (connection->exchange)
            http_connection_cut(connection);
    }
    for (int i = 0; i < LAST_RUNS_MAX; i++)
        MHD_run(listener->daemon);
}

void http_listener_free(struct http_listener *listener)
{
    if (!listener)
        return;
    if (listener->daemon) {
        if (listener->pump) {
            http_listener_quiesce(listener);
            resume_all(listener);
        }
        http_pump_free(listener->pump);
        MHD_stop_daemon(listener->daemon);
    }
    if (listener->socket >= 0 && !listener->daemon)
        close(listener->socket);
    http_watch_deinit(listener);
    free(listener);
}
