/* One open WebSocket: a client of a terminal, or of none. Terminal thread only; used by the files of net/ws_*.
 *
 * wslay does the framing. What it has to send is gathered in the listener's `out` for the length of one call, and goes
 * to the socket in one piece; each session keeps only what the socket did not take. */
#ifndef ABX_NET_WS_SESSION_H
#define ABX_NET_WS_SESSION_H

#include "base/buf.h"
#include "base/list.h"
#include "net/ws_listener_parts.h"
#include "prim/terminal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wslay/wslay.h>

/* Close codes (contract, section 7); wslay itself closes with 1002 and 1007. */
enum {
    WS_CLOSE_ENDED = 1000,
    WS_CLOSE_SHUTDOWN = 1001,
    WS_CLOSE_TOO_BIG = 1009,
    WS_CLOSE_NO_TERMINAL = 4004,
};

/* Control frames (answers to a client's pings) that may wait; past it the client is read no more until they are out. */
enum { WS_CONTROLS_MAX = 64 };

struct ws_session {
    struct ws_listener *listener;
    struct list node; /* of the listener's sessions, once it is open */
    int fd;           /* -1 before */
    struct loop_fd *watch;
    struct wslay_event_context *wslay; /* NULL while nothing is going on: it is larger than all the rest */
    struct terminal_client client;
    char id[WS_PATH_ID_MAX + 1];
    bool raw, resizes; /* as the query had it */
    struct terminal_size size;
    struct loop_defer later; /* more output, or the end of a broken one */

    /* --- the end */
    bool broken;                /* nothing more goes in or out: it is freed at the next turn */
    bool closing;               /* a close goes out, and nothing after it */
    bool began;                 /* closing: not because the client closes, nor for a fault of its */
    bool close_is_out;          /* the socket has it */
    bool half_closed;           /* and an end behind it */
    struct loop_timer patience; /* while closing */
    size_t discarded;           /* bytes that came since */

    /* --- from the client: the message that is coming in */
    const char *rest; /* what came behind the head of the handshake, while it is read */
    size_t rest_len;
    int reads_left;        /* of this turn */
    bool full;             /* terminal_input_is_full: read no more until on_input */
    bool control;          /* this frame is a control frame */
    bool binary, in_parts; /* of the message; more frames of it are to come */
    uint64_t unparsed;     /* bytes that wslay has got, less those of all frames that have begun (it wraps round) */
    bool dropping;         /* the program does not take it, and the client was told */
    uint64_t message_len;  /* as announced so far */
    struct buf text;       /* JSON, until it is complete */

    /* --- to the client */
    struct buf kept;  /* what the socket has not taken: one frame, and messages between the output */
    bool greeted;     /* `ready` is out */
    bool size_is_due; /* another client has resized */
};

static inline struct ws_session *ws_session_of_node(struct list *node)
{
    return LIST_ENTRY(node, struct ws_session, node);
}

/* --- ws_session.c */

/* Attaches to admission->terminal, if there is one. NULL with *err: ERR_INVALID_REQUEST for a `since` beyond what has
 * come. */
struct ws_session *ws_session_new(struct ws_listener *listener, const struct ws_admission *admission, struct err *err);
/* Closes the connection. Not from inside a callback of wslay or of the terminal: ws_session_break. */
void ws_session_free(struct ws_session *session);
/* It is open: takes the descriptor. The listener's `out` holds the answer to the handshake; rest: what came behind its
 * head. The session belongs to itself from here on. */
void ws_session_begin(struct ws_session *session, int fd, const char *rest, size_t rest_len);
/* The connection is of no use any more: frees the session at the next turn. */
void ws_session_break(struct ws_session *session);
/* Makes session->wslay where it is NULL. -1: out of memory, and it is broken. */
int ws_session_wake(struct ws_session *session) ABX_MUST_USE;
/* To be called at the end of whatever was done to it: sends what was put, and watches for what is wanted now. */
void ws_session_settle(struct ws_session *session);
/* Closes it, 1001. */
void ws_session_shut_down(struct ws_session *session);
/* Puts a close behind what was put before, and detaches. reason: at most 123 bytes. */
void ws_session_close(struct ws_session *session, uint16_t code, const char *reason);
/* wslay has queued a close, or (fault) has lost its place and cannot say why: 1002. */
void ws_session_is_closed(struct ws_session *session, bool fault);

/* --- ws_session_input.c */

/* wslay's callbacks. */
ssize_t ws_session_recv(wslay_event_context_ptr wslay, uint8_t *out, size_t len, int flags, void *ctx);
void ws_session_frame_begins(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_start_arg *frame,
                             void *ctx);
void ws_session_frame_goes_on(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_chunk_arg *chunk,
                              void *ctx);
void ws_session_frame_ends(wslay_event_context_ptr wslay, void *ctx);
/* Reads what there is, of one turn. */
void ws_session_receive(struct ws_session *session);

/* --- ws_session_output.c */

ssize_t ws_session_gather(wslay_event_context_ptr wslay, const uint8_t *bytes, size_t len, int flags, void *ctx);
/* Gathers all that wslay has queued. */
void ws_session_gather_queued(struct ws_session *session);
/* Sends what was gathered; where something is kept, that goes first, once the socket has room. */
void ws_session_flush(struct ws_session *session);
/* The socket has room. */
void ws_session_send_kept(struct ws_session *session);
/* Sends of the terminal's output what there is, of one turn. */
void ws_session_pump(struct ws_session *session);
/* Sends a ping, unless something is on its way anyhow. */
void ws_session_ping(struct ws_session *session);
/* Messages that come between the output. Where too much waits already, the client does not read, and they are dropped.
 */
void ws_session_tell_error(struct ws_session *session, const struct err *error);
void ws_session_tell_pong(struct ws_session *session);

#endif
