/* The JSON messages of a terminal's WebSocket: what clients say, and what they are told. Pure; called by ws_session. */
#ifndef ABX_NET_WS_MESSAGE_H
#define ABX_NET_WS_MESSAGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "prim/terminal.h"

#include <stddef.h>
#include <stdint.h>

enum ws_message_type { WS_MESSAGE_INPUT, WS_MESSAGE_RESIZE, WS_MESSAGE_SIGNAL, WS_MESSAGE_PING };

struct ws_message {
    enum ws_message_type type;
    const char *data; /* input; in the arena */
    size_t len;
    struct terminal_size size; /* resize */
    int signal;
};

/* ERR_INVALID_JSON, ERR_INVALID_REQUEST (no object, no or unknown type, a member missing, unknown or out of range: the
 * text names the first), ERR_SIGNAL_NOT_ALLOWED, ERR_PAYLOAD_TOO_LARGE (the arena is full: input takes its length and
 * less than 4 KiB). *out is written on success only. */
int ws_message_parse(struct arena *arena, const char *text, size_t len, struct ws_message *out,
                     struct err *err) ABX_MUST_USE;

/* Append one message each, on one line. -1: the buffer is full, and is as it was. */
int ws_message_ready(struct buf *out, const char *id, struct terminal_size size, uint64_t offset) ABX_MUST_USE;
int ws_message_resized(struct buf *out, struct terminal_size size) ABX_MUST_USE;
int ws_message_gap(struct buf *out, const struct terminal_gap *gap) ABX_MUST_USE;
int ws_message_error(struct buf *out, const struct err *error) ABX_MUST_USE;
int ws_message_exit(struct buf *out, const struct terminal_exit *exit) ABX_MUST_USE;
int ws_message_pong(struct buf *out) ABX_MUST_USE;

#endif
