/* Sends answers: bytes from our memory, files by sendfile, streams as their sink fills. */
#include "net/http_reply.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { STREAM_BLOCK_BYTES = 8192 };

static void on_sink_ready(void *net)
{
    http_connection_resume(net);
}

/* The client must not take the answer for whole, so the socket ends first and the last chunk that "end of stream" makes
 * cannot be sent. The reader's own error code is no use: libmicrohttpd 0.9.75 leaves a chunked connection that ended by
 * it unreaped until it happens to be the oldest one (MHD_connection_handle_idle, CHUNKED_BODY_UNREADY). */
static ssize_t break_off(struct http_connection *connection)
{
    shutdown(connection->fd, SHUT_RDWR);
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/* A reader that has nothing must suspend; answering 0 alone would be a busy loop. */
static ssize_t on_read(void *cls, uint64_t position, char *out, size_t max)
{
    struct http_connection *connection = cls;
    struct sink *sink = connection->response.sink;
    const char *bytes;
    size_t len;

    (void)position;
    if (connection->gone)
        return break_off(connection);
    bytes = sink_peek(sink, &len);
    if (len == 0) {
        if (sink->state == SINK_DONE)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (sink->state == SINK_ABORTED)
            return break_off(connection);
        http_connection_suspend(connection);
        return 0;
    }
    if (len > max)
        len = max;
    memcpy(out, bytes, len);
    sink_take(sink, len);
    return (ssize_t)len;
}

static struct MHD_Response *make(struct http_connection *connection)
{
    struct response *response = &connection->response;
    struct response_file *file = &response->file;
    struct MHD_Response *reply;

    switch (response->kind) {
    case RESPONSE_FILE:
        if (file->length == 0) /* nothing to send: the descriptor stays ours and is closed with the response */
            return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
        reply = MHD_create_response_from_fd_at_offset64(file->length, file->fd, file->first);
        if (reply) {
            connection->sending_fd = file->fd;
            file->fd = -1; /* libmicrohttpd closes it */
        }
        return reply;
    case RESPONSE_STREAM:
        response->sink->on_ready = on_sink_ready;
        response->sink->net = connection;
        reply = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, on_read, connection, NULL);
        /* 0.9.75 sends the last chunk even to HEAD (MHD_connection_handle_idle, BODY_SENT), where it would be taken for
         * the next answer: so no chunks there, which closes the connection. */
        if (reply && connection->head)
            MHD_set_response_options(reply, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
        return reply;
    case RESPONSE_BYTES:
        break;
    }
    return MHD_create_response_from_buffer(response->bytes.len, response->bytes.len ? response->bytes.data : "",
                                           MHD_RESPMEM_PERSISTENT);
}

/* Headers that only the library may set; it refuses them, and a handler that does so should not lose its answer. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {"Content-Length", "Transfer-Encoding", "Connection"};
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strlen(ours[i]) == len && strcasecmp(name, ours[i]) == 0)
            return true;
    }
    return false;
}

enum MHD_Result http_reply_queue(struct http_connection *connection, bool close)
{
    struct response *response = &connection->response;
    struct MHD_Response *reply = make(connection);
    enum MHD_Result queued = MHD_NO;
    bool complete = reply != NULL;

    for (size_t i = 0; complete && i < response->header_count; i++) {
        const struct header_pair *header = &response->headers[i];

        if (!is_ours(header->name))
            complete = MHD_add_response_header(reply, header->name, header->value) == MHD_YES;
    }
    if (complete && close)
        complete = MHD_add_response_header(reply, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
    if (complete)
        queued = MHD_queue_response(connection->mhd, (unsigned)response->status, reply);
    if (reply)
        MHD_destroy_response(reply);
    connection->queued = queued == MHD_YES;
    return queued;
}
