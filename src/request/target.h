/* The request target, decoded in one place: the router, the authorisation and the log see the same segments. */
#ifndef ABX_REQUEST_TARGET_H
#define ABX_REQUEST_TARGET_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct slice {
    const char *text; /* NUL-terminated in the arena; a query value may hold NUL itself */
    size_t len;
};

struct target {
    const char *authority;  /* of an absolute-form target; NULL else */
    const char *path;       /* as it came, without the query: for the log */
    const char *query;      /* as it came; NULL where there is no '?' */
    bool asterisk;          /* "OPTIONS *" */
    struct slice *segments; /* "/a/b%2Fc" is "a", "b/c"; "/" is one empty segment */
    size_t segment_count;
};

enum { TARGET_QUERY_FIELDS_MAX = 256 };

struct query_field {
    struct slice name, value;
};

/* Splits at the raw '/' and decodes each segment once. Nothing is normalised: "//", ".", ".." and ";x" are segments
 * like any other and match no route. -1 with ERR_INVALID_REQUEST for bytes that no target may hold, a bad %-escape or a
 * NUL; path and query are set even then, as far as they were found. Everything lives in the arena. */
int target_parse(struct target *target, const char *raw, struct arena *arena, struct err *err) ABX_MUST_USE;

/* Decodes a query as forms do ('+' is a space; bad escapes and names that are not UTF-8 are refused). The same name
 * twice is refused, with that field. query may be NULL. */
int target_query(const char *query, struct arena *arena, struct query_field **out_fields, size_t *out_count,
                 struct err *err) ABX_MUST_USE;

#endif
