/* What a client is sent: the terminal's output as it comes, and messages in between; called by ws_session, and by wslay
 * as it makes frames. */
#include "net/ws_message.h"
#include "net/ws_session.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    /* One terminal that prints without end must not keep the others waiting. */
    FRAMES_A_TURN = 4,
    /* What may wait before errors and pongs are dropped; gathered, what is sent before there is more of it. */
    QUEUE_MAX_BYTES = 64 * 1024,
    REASON_MAX = 64,
};

enum step { STEP_SENT, STEP_NOTHING };

/* --- bytes */

ssize_t ws_session_gather(wslay_event_context_ptr wslay, const uint8_t *bytes, size_t len, int flags, void *ctx)
{
    struct ws_session *session = ctx;

    (void)flags;
    if (buf_append(&session->listener->out, bytes, len) == 0)
        return (ssize_t)len;
    wslay_event_set_error(wslay, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

void ws_session_gather_queued(struct ws_session *session)
{
    if (wslay_event_send(session->wslay) != 0)
        ws_session_break(session);
}

/* How much the socket took. */
static size_t send_bytes(struct ws_session *session, const char *bytes, size_t len)
{
    ssize_t sent = send(session->fd, bytes, len, MSG_NOSIGNAL);

    if (sent >= 0)
        return (size_t)sent;
    if (errno != EAGAIN && errno != EINTR)
        ws_session_break(session);
    return 0;
}

void ws_session_flush(struct ws_session *session)
{
    struct buf *out = &session->listener->out;
    size_t sent = 0;

    /* While something waits, answers to pings stay queued: they are counted there. */
    if (!session->broken && session->kept.len == 0 && session->wslay && wslay_event_want_write(session->wslay))
        ws_session_gather_queued(session);
    if (!session->broken && session->kept.len == 0 && out->len > 0)
        sent = send_bytes(session, out->data, out->len);
    if (!session->broken && sent < out->len && buf_append(&session->kept, out->data + sent, out->len - sent) < 0)
        ws_session_break(session);
    buf_reset(out);
}

void ws_session_send_kept(struct ws_session *session)
{
    struct buf *kept = &session->kept;

    buf_consume(kept, send_bytes(session, kept->data, kept->len));
    if (kept->len == 0)
        buf_deinit(kept); /* sessions are many, and few of them wait */
}

static void put(struct ws_session *session, enum wslay_opcode opcode, const void *bytes, size_t len)
{
    struct wslay_event_msg message = {.opcode = (uint8_t)opcode, .msg = bytes, .msg_length = len};

    if (session->broken || session->closing || ws_session_wake(session) < 0)
        return;
    if (wslay_event_queue_msg(session->wslay, &message) != 0)
        ws_session_break(session);
    else
        ws_session_gather_queued(session);
}

/* --- messages */

/* Puts the message, which was written to *text (status: whether it could), and frees that. */
static void put_message(struct ws_session *session, struct buf *text, int status)
{
    if (status == 0)
        put(session, WSLAY_TEXT_FRAME, text->data, text->len);
    else
        ws_session_break(session);
    buf_deinit(text);
}

static void put_ready(struct ws_session *session, uint64_t offset)
{
    struct buf text;

    session->greeted = true;
    session->size_is_due = false;
    if (session->raw)
        return;
    buf_init(&text, WS_TEXT_MAX_BYTES);
    put_message(session, &text, ws_message_ready(&text, session->id, terminal_size(session->client.terminal), offset));
}

static void put_resized(struct ws_session *session)
{
    struct buf text;

    session->size_is_due = false;
    if (session->raw)
        return;
    buf_init(&text, WS_TEXT_MAX_BYTES);
    put_message(session, &text, ws_message_resized(&text, terminal_size(session->client.terminal)));
}

static void put_gap(struct ws_session *session, const struct terminal_gap *gap)
{
    struct buf text;

    if (session->raw)
        return;
    buf_init(&text, WS_TEXT_MAX_BYTES);
    put_message(session, &text, ws_message_gap(&text, gap));
}

static void put_exit(struct ws_session *session, const struct terminal_exit *exit)
{
    int code = atomic_load(&session->listener->draining) ? WS_CLOSE_SHUTDOWN : WS_CLOSE_ENDED;
    char reason[REASON_MAX] = "";
    struct buf text;

    if (session->raw) {
        snprintf(reason, sizeof(reason), "{\"exit_code\":%d}", exit->exit.exit_code);
    } else {
        buf_init(&text, WS_TEXT_MAX_BYTES);
        put_message(session, &text, ws_message_exit(&text, exit));
    }
    ws_session_close(session, (uint16_t)code, reason);
}

static bool may_tell(struct ws_session *session)
{
    if (session->raw || session->broken || session->closing)
        return false;
    if (session->listener->out.len > QUEUE_MAX_BYTES)
        ws_session_flush(session);
    return session->kept.len <= QUEUE_MAX_BYTES;
}

void ws_session_tell_error(struct ws_session *session, const struct err *error)
{
    struct buf text;

    if (!may_tell(session))
        return;
    buf_init(&text, WS_TEXT_MAX_BYTES);
    put_message(session, &text, ws_message_error(&text, error));
}

void ws_session_tell_pong(struct ws_session *session)
{
    struct buf text;

    if (!may_tell(session))
        return;
    buf_init(&text, WS_TEXT_MAX_BYTES);
    put_message(session, &text, ws_message_pong(&text));
}

void ws_session_ping(struct ws_session *session)
{
    if (session->kept.len > 0)
        return;
    put(session, WSLAY_PING, NULL, 0);
    ws_session_settle(session);
}

/* --- output */

static enum step send_output(struct ws_session *session)
{
    struct terminal_client *client = &session->client;
    char *bytes = session->listener->frame;
    struct terminal_gap gap = {0};
    size_t len = terminal_read(client, bytes, WS_FRAME_MAX_BYTES, &gap);
    const struct terminal_exit *exit;

    if (!session->greeted)
        put_ready(session, client->offset - len);
    if (session->size_is_due)
        put_resized(session);
    if (gap.from != gap.to) {
        put_gap(session, &gap);
        return STEP_SENT;
    }
    if (len > 0) {
        put(session, WSLAY_BINARY_FRAME, bytes, len);
        ws_session_flush(session);
        return STEP_SENT;
    }
    exit = terminal_exit(client->terminal);
    if (exit && !terminal_has_more(client))
        put_exit(session, exit);
    return STEP_NOTHING;
}

static void on_later(void *ctx)
{
    ws_session_pump(ctx);
}

/* Nothing more while something waits, so each session holds one frame at most. */
static void send_some(struct ws_session *session)
{
    for (int frames = 0; frames < FRAMES_A_TURN; frames++)
        if (session->kept.len > 0 || session->broken || session->closing || send_output(session) == STEP_NOTHING)
            return;
    if (session->kept.len == 0 && !session->broken)
        loop_defer_start(session->listener->own, &session->later, on_later, session);
}

void ws_session_pump(struct ws_session *session)
{
    if (!session->later.pending)
        send_some(session);
    ws_session_settle(session);
}
