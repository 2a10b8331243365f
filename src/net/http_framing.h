/* What libmicrohttpd lets through in a request's head although two parties could read it in two ways. */
#ifndef ABX_NET_HTTP_FRAMING_H
#define ABX_NET_HTTP_FRAMING_H

#include "base/err.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* For the URI callback, once the target was copied: keeps 0.9.75 from parsing the query, which we do ourselves. It
 * would need 64 bytes of the connection's memory for each argument, and when that is used up the connection hangs, as
 * the refusal's state is overwritten (MHD_connection_handle_idle, REQ_LINE_RECEIVING). The place of the '?' was found
 * before the callback, and an empty query has no arguments. */
void http_framing_hide_query(const char *target);

struct http_framing {
    bool has_body;
    int64_t body_length; /* -1: chunked */
    bool expects_continue;
};

/* For the first call of the access handler only, while the head still lies in the connection's buffer. method and
 * version are the handler's arguments, target what the URI callback got and its length then. -1 with
 * ERR_INVALID_REQUEST: the connection has to be closed after the answer. */
int http_framing_check(struct MHD_Connection *connection, const char *method, const char *target, size_t target_len,
                       const char *version, struct http_framing *out, struct err *err) ABX_MUST_USE;

#endif
