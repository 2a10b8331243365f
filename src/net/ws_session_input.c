/* What a client sends: keystrokes, in binary or as raw text, and JSON messages; called by ws_session, and by wslay as
 * it takes frames apart. */
#include "net/ws_message.h"
#include "net/ws_session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum {
    READS_A_TURN = 16, /* each of 4 KiB at most, wslay's buffer */
    /* A client that is closed while it sends sees the close, and no reset, if this is all that it still has. */
    DISCARD_MAX_BYTES = 32 * 1024 * 1024,
};

/* --- bytes */

static size_t take_rest(struct ws_session *session, uint8_t *out, size_t len)
{
    size_t taken = session->rest_len < len ? session->rest_len : len;

    memcpy(out, session->rest, taken);
    session->rest += taken;
    session->rest_len -= taken;
    return taken;
}

/* -1: nothing for now; or the connection has ended, and the session is broken. */
static ssize_t read_socket(struct ws_session *session, uint8_t *out, size_t len)
{
    ssize_t n = recv(session->fd, out, len, 0);

    if (n <= 0) {
        session->reads_left = 0;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            ws_session_break(session);
        return -1;
    }
    /* A short read has emptied the socket: another one would only tell that. */
    session->reads_left = (size_t)n < len ? 0 : session->reads_left - 1;
    if (session->closing && (session->discarded += (size_t)n) > DISCARD_MAX_BYTES)
        ws_session_break(session);
    return n;
}

ssize_t ws_session_recv(wslay_event_context_ptr wslay, uint8_t *out, size_t len, int flags, void *ctx)
{
    struct ws_session *session = ctx;
    bool waits = session->full || wslay_event_get_queued_msg_count(wslay) > WS_CONTROLS_MAX;
    ssize_t n = -1;

    (void)flags;
    if (session->rest_len > 0)
        n = (ssize_t)take_rest(session, out, len);
    else if (session->reads_left > 0 && (session->closing || !waits))
        n = read_socket(session, out, len);
    if (n < 0)
        wslay_event_set_error(wslay, session->broken ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
    else
        session->unparsed += (size_t)n;
    return n;
}

/* wslay reads no more: the client has broken the protocol, or has closed. */
static void discard(struct ws_session *session)
{
    session->reads_left = READS_A_TURN;
    while (session->reads_left > 0 && !session->broken)
        if (read_socket(session, (uint8_t *)session->listener->frame, WS_FRAME_MAX_BYTES) < 0)
            return;
}

void ws_session_receive(struct ws_session *session)
{
    int status;

    if (ws_session_wake(session) < 0)
        return;
    if (!wslay_event_get_read_enabled(session->wslay)) {
        discard(session);
        return;
    }
    session->reads_left = READS_A_TURN;
    do
        status = wslay_event_recv(session->wslay);
    while (status == 0 && session->rest_len > 0 && wslay_event_get_read_enabled(session->wslay));
    if (session->broken)
        return;
    if (status == WSLAY_ERR_NOMEM)
        ws_session_break(session);
    else if (!session->closing && !wslay_event_get_read_enabled(session->wslay))
        ws_session_is_closed(session, status != 0);
}

/* --- messages */

static void give(struct ws_session *session, const char *bytes, size_t len)
{
    struct err err;

    if (len == 0 || session->dropping)
        return;
    if (terminal_input(&session->client, bytes, len, &err) < 0) {
        session->dropping = true; /* once for a message is enough */
        ws_session_tell_error(session, &err);
    }
    session->full = terminal_input_is_full(&session->client);
}

static void handle(struct ws_session *session, const struct ws_message *message)
{
    struct err err;

    switch (message->type) {
    case WS_MESSAGE_INPUT:
        give(session, message->data, message->len);
        break;
    case WS_MESSAGE_RESIZE:
        terminal_resize(&session->client, message->size);
        break;
    case WS_MESSAGE_SIGNAL:
        if (terminal_signal(&session->client, message->signal, &err) < 0)
            ws_session_tell_error(session, &err);
        break;
    case WS_MESSAGE_PING:
        ws_session_tell_pong(session);
        break;
    }
}

static void handle_text(struct ws_session *session)
{
    struct arena *arena = &session->listener->arena;
    struct ws_message message;
    struct err err;

    if (ws_message_parse(arena, session->text.data ? session->text.data : "", session->text.len, &message, &err) < 0)
        ws_session_tell_error(session, &err);
    else
        handle(session, &message);
    arena_reset(arena);
    buf_deinit(&session->text); /* sessions are many, and rarely busy */
}

/* A client's frame, whole: its head, of the one length that RFC 6455 (5.2) allows and wslay takes, and the mask. */
static uint64_t frame_len(uint64_t payload_len)
{
    return payload_len + 2 + (payload_len < 126 ? 0 : payload_len < 65536 ? 2 : 8) + 4;
}

/* Before any of it has come: what it announces counts. wslay has checked that a continuation has a beginning. */
void ws_session_frame_begins(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_start_arg *frame,
                             void *ctx)
{
    struct ws_session *session = ctx;

    session->unparsed -= frame_len(frame->payload_length);
    session->control = wslay_is_ctrl_frame(frame->opcode);
    if (session->closing || session->control)
        return;
    if (frame->opcode != WSLAY_CONTINUATION_FRAME) {
        session->binary = frame->opcode == WSLAY_BINARY_FRAME;
        session->message_len = 0;
        session->dropping = false;
    }
    session->in_parts = !frame->fin;
    session->message_len += frame->payload_length; /* less than 2^63, and 1 MiB before */
    if (session->message_len <= WS_MESSAGE_MAX_BYTES)
        return;
    ws_session_close(session, WS_CLOSE_TOO_BIG, "a message may have 1 MiB");
    wslay_event_shutdown_read(wslay);
}

void ws_session_frame_goes_on(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_chunk_arg *chunk,
                              void *ctx)
{
    struct ws_session *session = ctx;
    const char *bytes = (const char *)chunk->data;

    (void)wslay;
    if (session->closing || session->broken || session->control)
        return;
    if (session->binary || session->raw)
        give(session, bytes, chunk->data_length);
    else if (buf_append(&session->text, bytes, chunk->data_length) < 0)
        ws_session_close(session, WS_CLOSE_TOO_BIG, "out of memory for this message");
}

void ws_session_frame_ends(wslay_event_context_ptr wslay, void *ctx)
{
    struct ws_session *session = ctx;

    (void)wslay;
    if (session->closing || session->broken || session->control || session->in_parts)
        return;
    if (!session->binary && !session->raw)
        handle_text(session);
}
