/* A request as everybody but net sees it: plain data in the request's arena. */
#ifndef ABX_MODEL_REQUEST_H
#define ABX_MODEL_REQUEST_H

#include "base/arena.h"
#include "model/body.h"
#include "model/route.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

enum { REQUEST_ID_MAX = 64 };

struct header {
    const char *name; /* as it came; compare without case */
    const char *value;
};

struct request {
    struct arena arena;
    char id[REQUEST_ID_MAX + 1];
    const char *method; /* as it came */
    const char *target; /* as it came: path?query, not decoded */
    struct header *headers;
    size_t header_count;

    const struct route *route; /* NULL until the router found one */
    bool head;                 /* HEAD: the GET route runs, the body is not sent */
    struct value params;       /* checked; an object. Set before the handler runs */
    struct body *body;         /* ROUTE_BODY_STREAM only, else NULL */
};

/* Whether two header names are the same, which they are in any case. Mostly the first letter tells. */
static inline bool header_is(const char *name, const char *wanted)
{
    return ((name[0] ^ wanted[0]) & ~0x20) == 0 && strcasecmp(name, wanted) == 0;
}
/* Whether a client's X-Request-Id is taken over: 1 to REQUEST_ID_MAX of A-Z, a-z, 0-9, '.', '_' and '-'. */
bool request_id_is_valid(const char *text);
/* The value of the first header of that name (no case), or NULL. */
const char *request_header(const struct request *request, const char *name);
/* Whether the media type (or a q > 0 range that names it exactly) stands in Accept. */
bool request_accepts(const struct request *request, const char *media_type);

#endif
