/* libmicrohttpd's callbacks for one connection, turned into calls of the pipeline and back; used by http_listener. */
#include "net/http_connection.h"

#include "net/http_framing.h"
#include "net/http_listener_parts.h"
#include "net/http_reply.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void http_connection_suspend(struct http_connection *connection)
{
    if (connection->suspended)
        return;
    connection->suspended = true;
    http_watch_add(connection);
    MHD_suspend_connection(connection->mhd);
}

void http_connection_resume(struct http_connection *connection)
{
    if (!connection->suspended)
        return;
    connection->suspended = false;
    http_watch_remove(connection);
    MHD_resume_connection(connection->mhd);
    http_pump_wake(connection->listener->pump);
}

static void end_exchange(struct http_connection *connection, bool sent)
{
    struct exchange *exchange = connection->exchange;

    connection->exchange = NULL;
    if (exchange)
        exchange_free(exchange, sent);
}

void http_connection_cut(struct http_connection *connection)
{
    connection->gone = true;
    connection->deadline_ms = 0;
    end_exchange(connection, false);
    /* libmicrohttpd has no call to close a connection, but it does so when its socket has ended. */
    shutdown(connection->fd, SHUT_RDWR);
    http_connection_resume(connection);
}

static void set_deadline(struct http_connection *connection, uint64_t delay_ms)
{
    connection->deadline_ms = loop_now_ms(connection->listener->loop) + delay_ms;
}

void *http_connection_on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *connection = info ? info->socket_context : NULL;
    uint64_t head_ms;

    (void)cls;
    if (!connection)
        return NULL;
    connection->target_at = target;
    connection->target_len = target ? strlen(target) : 0;
    if (connection->target_cap <= connection->target_len) {
        free(connection->target);
        connection->target_cap = 0;
        connection->target = malloc(connection->target_len + 256);
        if (!connection->target)
            return connection;
        connection->target_cap = connection->target_len + 256;
    }
    if (target)
        memcpy(connection->target, target, connection->target_len);
    connection->target[connection->target_len] = '\0';
    if (target)
        http_framing_hide_query(target);
    head_ms = loop_now_ms(connection->listener->loop) + connection->listener->head_timeout_ms;
    if (!connection->deadline_ms || head_ms < connection->deadline_ms)
        connection->deadline_ms = head_ms;
    return connection;
}

static void begin_discard(struct http_connection *connection)
{
    if (connection->has_body && !connection->body_over)
        set_deadline(connection, HTTP_DISCARD_MAX_MS);
}

static void on_response(void *net, struct response *response)
{
    struct http_connection *connection = net;

    connection->response = *response;
    response_init(response);
    connection->answered = true;
    begin_discard(connection);
    http_connection_resume(connection);
}

static void on_wake(void *net)
{
    struct http_connection *connection = net;

    if (connection->suspended)
        set_deadline(connection, connection->listener->body_timeout_ms);
    http_connection_resume(connection);
}

struct header_copy {
    struct exchange *exchange;
    int status;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct header_copy *copy = cls;

    (void)kind;
    copy->status = exchange_header(copy->exchange, name, value ? value : "");
    return copy->status == 0 ? MHD_YES : MHD_NO;
}

static bool closes(const struct http_connection *connection)
{
    return pipeline_draining(connection->listener->pipeline);
}

/* The head is complete. An answer queued here closes the connection, which is what a malformed request gets, and a
 * client that need not send its body at all. */
static enum MHD_Result begin_request(struct http_connection *connection, const char *method, const char *version)
{
    static const struct exchange_events events = {on_response, on_wake};
    struct http_listener *listener = connection->listener;
    struct http_framing framing;
    struct header_copy copy;
    struct err err;

    if (!connection->target_cap)
        return MHD_NO;
    connection->exchange = exchange_new(listener->pipeline, &events, connection, method, connection->target);
    if (!connection->exchange)
        return MHD_NO;
    connection->head = strcmp(method, "HEAD") == 0;
    if (http_framing_check(connection->mhd, method, connection->target_at, connection->target_len, version, &framing,
                           &err) < 0) {
        exchange_fail(connection->exchange, &err);
        return http_reply_queue(connection, true);
    }
    copy = (struct header_copy){.exchange = connection->exchange};
    MHD_get_connection_values(connection->mhd, MHD_HEADER_KIND, on_header, &copy);
    if (copy.status < 0)
        return MHD_NO;
    connection->has_body = framing.has_body;
    set_deadline(connection, listener->body_timeout_ms);
    exchange_head(connection->exchange, framing.has_body, framing.body_length);
    if (connection->answered && framing.has_body &&
        (framing.expects_continue || framing.body_length > HTTP_DISCARD_MAX_BYTES))
        return http_reply_queue(connection, true);
    return MHD_YES;
}

static enum MHD_Result take_body(struct http_connection *connection, const char *upload, size_t *upload_len)
{
    size_t len = *upload_len;

    if (!connection->answered) {
        *upload_len -= exchange_push(connection->exchange, upload, len);
        if (*upload_len == 0)
            set_deadline(connection, connection->listener->body_timeout_ms);
        else if (!connection->answered)
            http_connection_suspend(connection);
        if (!connection->answered)
            return MHD_YES;
    }
    *upload_len = 0;
    connection->discarded_bytes += len;
    return connection->discarded_bytes > HTTP_DISCARD_MAX_BYTES ? MHD_NO : MHD_YES;
}

enum MHD_Result http_connection_on_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                          const char *version, const char *upload, size_t *upload_len, void **context)
{
    struct http_connection *connection = *context;

    (void)cls;
    (void)mhd;
    (void)url;
    if (!connection || connection->gone)
        return MHD_NO;
    if (!connection->exchange)
        return begin_request(connection, method, version);
    if (*upload_len > 0)
        return take_body(connection, upload, upload_len);
    if (!connection->body_over) {
        connection->body_over = true;
        connection->deadline_ms = 0;
        if (connection->has_body)
            exchange_end(connection->exchange);
    }
    if (connection->answered) {
        bool first = !connection->lingered;

        connection->lingered = true;
        if (first && http_pump_gathers(connection->listener->pump))
            return MHD_YES;
        return http_reply_queue(connection, closes(connection));
    }
    /* Suspending and resuming cost three system calls. An answer that is ready in the next turn of the loop does
     * without: libmicrohttpd asks again. */
    if (connection->lingered)
        http_connection_suspend(connection);
    else
        http_pump_linger(connection->listener->pump);
    connection->lingered = true;
    return MHD_YES;
}

void http_connection_on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                                  enum MHD_RequestTerminationCode how)
{
    struct http_connection *connection = *context;

    (void)cls;
    (void)mhd;
    *context = NULL;
    if (!connection)
        return;
    end_exchange(connection, how == MHD_REQUEST_TERMINATED_COMPLETED_OK && connection->queued);
    if (connection->answered)
        response_deinit(&connection->response);
    connection->answered = connection->queued = connection->lingered = false;
    connection->sending_fd = -1;
    connection->has_body = connection->body_over = false;
    connection->discarded_bytes = 0;
    set_deadline(connection, connection->listener->idle_timeout_ms);
}

void http_connection_on_change(void *cls, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode what)
{
    struct http_listener *listener = cls;
    struct http_connection *connection = *socket_context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

        connection = calloc(1, sizeof(*connection));
        *socket_context = connection;
        if (!connection)
            return; /* its requests are refused */
        connection->listener = listener;
        connection->mhd = mhd;
        connection->sending_fd = -1;
        connection->fd = info ? info->connect_fd : -1;
        list_init(&connection->wait_node);
        list_append(&listener->connections, &connection->node);
        listener->connection_count++;
        set_deadline(connection, listener->head_timeout_ms);
        http_watch_sweep(listener);
        return;
    }
    *socket_context = NULL;
    if (!connection)
        return;
    list_remove(&connection->node);
    listener->connection_count--;
    free(connection->target);
    free(connection);
}
