/* The life of one open WebSocket; made by ws_opening when a handshake is approved. */
#include "net/ws_session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KEPT_MAX_BYTES = 512 * 1024,
    TAKE_MS = 30 * 1000,  /* for the last of the output, and the close behind it */
    LINGER_MS = 5 * 1000, /* from then on, for the client's own close */
};

static void on_output(void *ctx)
{
    ws_session_pump(ctx);
}

static void on_resized(void *ctx)
{
    struct ws_session *session = ctx;

    session->size_is_due = true;
    ws_session_pump(session);
}

static void on_input(void *ctx)
{
    struct ws_session *session = ctx;

    session->full = false;
    ws_session_settle(session);
}

int ws_session_wake(struct ws_session *session)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = ws_session_recv,
        .send_callback = ws_session_gather,
        .on_frame_recv_start_callback = ws_session_frame_begins,
        .on_frame_recv_chunk_callback = ws_session_frame_goes_on,
        .on_frame_recv_end_callback = ws_session_frame_ends,
    };

    if (session->wslay)
        return 0;
    if (wslay_event_context_server_init(&session->wslay, &callbacks, session) != 0) {
        session->wslay = NULL;
        ws_session_break(session);
        return -1;
    }
    wslay_event_config_set_no_buffering(session->wslay, 1);
    /* It would look at each frame by itself only, and close without a reason: ws_session_frame_begins looks. */
    wslay_event_config_set_max_recv_msg_length(session->wslay, UINT64_MAX);
    session->unparsed = 0;
    return 0;
}

/* Between two messages, with nothing on its way. */
static bool is_idle(const struct ws_session *session)
{
    return session->wslay && session->unparsed == 0 && !session->in_parts && !session->closing && !session->broken &&
           !wslay_event_want_write(session->wslay);
}

struct ws_session *ws_session_new(struct ws_listener *listener, const struct ws_admission *admission, struct err *err)
{
    static const struct terminal_client_events events = {on_output, on_resized, on_input};
    const struct ws_query *query = &admission->query;
    struct ws_session *session = calloc(1, sizeof(*session));

    if (!session) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    session->listener = listener;
    session->fd = -1;
    list_init(&session->node);
    memcpy(session->id, admission->id, sizeof(session->id));
    session->raw = query->raw;
    session->client = (struct terminal_client){.read_only = query->read_only, .events = &events, .ctx = session};
    buf_init(&session->text, WS_MESSAGE_MAX_BYTES);
    buf_init(&session->kept, KEPT_MAX_BYTES);
    if (!admission->terminal)
        return session;
    if (terminal_attach(admission->terminal, &session->client, query->since, err) < 0) {
        ws_session_free(session);
        return NULL;
    }
    session->resizes = query->has_cols || query->has_rows;
    session->size = terminal_size(admission->terminal);
    if (query->has_cols)
        session->size.cols = query->size.cols;
    if (query->has_rows)
        session->size.rows = query->size.rows;
    return session;
}

void ws_session_free(struct ws_session *session)
{
    struct ws_listener *listener = session->listener;

    terminal_detach(&session->client);
    list_remove(&session->node);
    loop_defer_stop(&session->later);
    loop_timer_stop(&session->patience);
    loop_fd_free(session->watch);
    if (session->wslay)
        wslay_event_context_free(session->wslay);
    buf_deinit(&session->text);
    buf_deinit(&session->kept);
    if (session->fd >= 0) {
        close(session->fd);
        ws_listener_one_less(listener);
    }
    free(session);
}

/* --- while it is open */

static void on_end(void *ctx)
{
    ws_session_free(ctx);
}

void ws_session_break(struct ws_session *session)
{
    session->broken = true;
    loop_defer_stop(&session->later);
    loop_defer_start(session->listener->own, &session->later, on_end, session);
}

static void on_socket(void *ctx, int events)
{
    struct ws_session *session = ctx;

    if (!session->broken && (events & LOOP_WRITABLE))
        ws_session_send_kept(session);
    if (!session->broken && (events & LOOP_READABLE))
        ws_session_receive(session);
    if (events & LOOP_WRITABLE)
        ws_session_pump(session);
    else
        ws_session_settle(session);
}

void ws_session_begin(struct ws_session *session, int fd, const char *rest, size_t rest_len)
{
    struct ws_listener *listener = session->listener;

    session->fd = fd;
    list_append(&listener->sessions, &session->node);
    session->watch = loop_fd_new(listener->own, fd, LOOP_READABLE, on_socket, session);
    if (!session->watch) {
        ws_session_break(session);
        buf_reset(&listener->out);
        return;
    }
    if (!session->client.terminal)
        ws_session_close(session, WS_CLOSE_NO_TERMINAL, "no such terminal");
    else if (session->resizes)
        terminal_resize(&session->client, session->size);
    ws_session_pump(session);
    if (rest_len == 0 || session->broken)
        return;
    session->rest = rest;
    session->rest_len = rest_len;
    ws_session_receive(session);
    session->rest = NULL;
    session->rest_len = 0;
    ws_session_settle(session);
}

/* The close is out. Where wslay reads on, it is the client's own close that is waited for. Where it does not, the
 * client is shown an end, and what it still sends is thrown away until it has seen that. */
static void linger(struct ws_session *session)
{
    if (session->began && wslay_event_get_close_received(session->wslay)) {
        ws_session_break(session);
        return;
    }
    if (!session->close_is_out)
        loop_timer_start(session->listener->own, &session->patience, LINGER_MS, on_end, session);
    session->close_is_out = true;
    if (!session->half_closed && !wslay_event_get_read_enabled(session->wslay)) {
        shutdown(session->fd, SHUT_WR);
        session->half_closed = true;
    }
}

static bool may_read(const struct ws_session *session)
{
    return session->closing ||
           (!session->full && (!session->wslay || wslay_event_get_queued_msg_count(session->wslay) <= WS_CONTROLS_MAX));
}

void ws_session_settle(struct ws_session *session)
{
    bool waits;

    ws_session_flush(session);
    waits = session->kept.len > 0;
    if (session->closing && !waits && !session->broken)
        linger(session);
    if (session->watch)
        loop_fd_set(session->watch,
                    session->broken ? 0 : (may_read(session) ? LOOP_READABLE : 0) | (waits ? LOOP_WRITABLE : 0));
    if (is_idle(session)) {
        wslay_event_context_free(session->wslay);
        session->wslay = NULL;
    }
}

/* --- closing */

static void be_closing(struct ws_session *session)
{
    session->closing = true;
    terminal_detach(&session->client);
    buf_deinit(&session->text);
    loop_timer_start(session->listener->own, &session->patience, TAKE_MS, on_end, session);
}

void ws_session_close(struct ws_session *session, uint16_t code, const char *reason)
{
    if (session->closing || session->broken || ws_session_wake(session) < 0)
        return;
    session->began = true;
    be_closing(session);
    if (wslay_event_queue_close(session->wslay, code, (const uint8_t *)reason, strlen(reason)) != 0)
        ws_session_break(session);
    else
        ws_session_gather_queued(session);
}

void ws_session_is_closed(struct ws_session *session, bool fault)
{
    static const char close_1002[] = {'\x88', 2, 1002 >> 8, (char)(1002 & 0xff)};

    be_closing(session);
    if (!fault) {
        ws_session_gather_queued(session);
        return;
    }
    /* wslay 1.1 has queued a close without a code. */
    wslay_event_shutdown_write(session->wslay);
    if (buf_append(&session->listener->out, close_1002, sizeof(close_1002)) < 0)
        ws_session_break(session);
}

void ws_session_shut_down(struct ws_session *session)
{
    /* One whose program has ended is told that, and closed behind it. */
    if (!session->client.terminal || !terminal_exit(session->client.terminal))
        ws_session_close(session, WS_CLOSE_SHUTDOWN, "the server is shutting down");
    ws_session_pump(session);
}
