/* Whether a client may open the WebSocket that it asks for. Decides only; called by ws_opening with a whole head. */
#ifndef ABX_NET_WS_HANDSHAKE_H
#define ABX_NET_WS_HANDSHAKE_H

#include "base/err.h"
#include "net/ws_head.h"
#include "net/ws_query.h"
#include "prim/terminals.h"
#include "request/auth.h"

#include <stdbool.h>

struct ws_gate {
    const struct auth_policy *policy;
    struct terminals *terminals;
    bool draining;
};

/* What was asked for and may be had. */
struct ws_admission {
    char id[WS_PATH_ID_MAX + 1];
    struct terminal *terminal; /* borrowed, until the loop turns; NULL: there is none of that id */
    struct ws_query query;
    bool by_ticket;  /* nothing else opened it */
    bool named;      /* the answer names the sub-protocol */
    const char *key; /* Sec-WebSocket-Key, of 24 characters of base64; borrowed from the head */
};

/* Why not: a problem, with a header where the status asks for one. */
struct ws_refusal {
    struct err err;
    int status;               /* 0: that of the code */
    const char *name, *value; /* NULL: none */
};

/* In this order, so that nobody learns anything without credentials: target and Host (400, 403), Origin (403),
 * credentials (401), not an upgrade or another path (404), version (426), key and sub-protocols (400), query (400),
 * draining (503). The ticket is not used up: that is for ws_handshake_done. -1 with *out_refusal. */
int ws_handshake_check(const struct ws_gate *gate, const struct ws_head *head, struct ws_admission *out,
                       struct ws_refusal *out_refusal) ABX_MUST_USE;
/* The WebSocket is as good as open: uses up the ticket. */
void ws_handshake_done(const struct ws_gate *gate, const struct ws_admission *admission);
/* Appends what Sec-WebSocket-Accept is for that key (RFC 6455, 4.2.2). -1: the buffer is full. */
int ws_handshake_accept(struct buf *out, const char *key) ABX_MUST_USE;

#endif
