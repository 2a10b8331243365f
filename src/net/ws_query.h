/* What a client asks for as it connects to a terminal: the path, the query, and the credentials among its
 * sub-protocols. Pure; called by ws_handshake. */
#ifndef ABX_NET_WS_QUERY_H
#define ABX_NET_WS_QUERY_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/terminal_size.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WS_SUBPROTOCOL "abx.pty.v1"

enum { WS_QUERY_TICKET_MAX = 128, WS_PATH_ID_MAX = 64 };

struct ws_query {
    int64_t since; /* as terminal_attach takes it */
    bool has_cols, has_rows;
    struct terminal_size size;
    bool read_only, raw;
    char ticket[WS_QUERY_TICKET_MAX]; /* "": none */
};

/* Reads the text behind the "?", still encoded (NULL or "": none). ERR_INVALID_REQUEST, field set where the name can be
 * told, for an unknown, repeated, nameless, malformed or out-of-range one: the first. *out is written on success only.
 */
int ws_query_parse(const char *text, size_t len, struct ws_query *out, struct err *err) ABX_MUST_USE;
/* The ticket alone, whatever else the text is: authentication comes before all else. Empty where there is none that
 * could be good, or more than one. */
void ws_query_ticket(const char *text, size_t len, char out[WS_QUERY_TICKET_MAX]);

struct ws_offer {
    bool any;         /* sub-protocols were offered at all */
    bool known;       /* WS_SUBPROTOCOL among them */
    struct buf token; /* of bearer.TOKEN or bearer64.BASE64URL, decoded; empty: none */
};

/* Reads the header Sec-WebSocket-Protocol; several lines are joined by commas. More than one token, an empty one, or
 * one that is not base64url or holds what no token may hold, counts as a wrong one (any is true, and the token is a
 * text of one byte that equals no token). NULL or "": nothing was offered. */
void ws_offer_parse(const char *header, size_t len, struct ws_offer *out);
/* Wipes the token, and frees it. */
void ws_offer_deinit(struct ws_offer *offer);

/* The id of "/pty/{id}" (1 to WS_PATH_ID_MAX bytes without a slash), borrowed from path, which is taken as it stands:
 * no id of ours needs an escape. NULL where it is another path. */
const char *ws_path_id(const char *path, size_t len, size_t *out_len);

#endif
