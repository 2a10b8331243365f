/* The head of a request on the terminals' port, read strictly. Pure; called by ws_opening. */
#ifndef ABX_NET_WS_HEAD_H
#define ABX_NET_WS_HEAD_H

#include "base/err.h"
#include "model/request.h"

#include <stdbool.h>
#include <stddef.h>

enum { WS_HEAD_MAX_BYTES = 16 * 1024, WS_HEAD_FIELDS_MAX = 100 };

struct ws_head {
    const char *method, *target; /* as they came */
    bool http_1_1;               /* HTTP/1.1 or a later 1.x; else 1.0 */
    struct header fields[WS_HEAD_FIELDS_MAX];
    size_t field_count;
};

/* Bytes of the head at the start, the empty line included; 0: its end is not there yet. */
size_t ws_head_len(const char *bytes, size_t len);
/* Takes the head apart in place (len as ws_head_len says); *out points into bytes. ERR_INVALID_REQUEST for whatever two
 * parties could read in two ways: bare line feeds, folded lines, blanks before a colon, controls, names that are no
 * token. ERR_HEADERS_TOO_LARGE for too many fields. */
int ws_head_parse(struct ws_head *out, char *bytes, size_t len, struct err *err) ABX_MUST_USE;
/* The value of the only field of that name (no case); NULL where there is none or more than one. */
const char *ws_head_field(const struct ws_head *head, const char *name);
/* Whether one of the comma-separated members of the fields of that name is this word (no case). */
bool ws_head_lists(const struct ws_head *head, const char *name, const char *word);

#endif
