/* From path, query and JSON body to the one checked object that a handler sees as req.params. */
#ifndef ABX_REQUEST_VALIDATE_H
#define ABX_REQUEST_VALIDATE_H

#include "model/route.h"
#include "request/router.h"

/* All answer 0 with *out set, or -1 with *err, and with at least one fault in *errors where fields are to blame
 * (its count must come as 0). What they make lives in the arena. */

/* For routes whose parameters come from path and query (which may be NULL). */
int validate_query(const struct route *route, const struct router_match *match, const char *query, struct arena *arena,
                   struct value *out, struct field_errors *errors, struct err *err) ABX_MUST_USE;

/* For routes with a JSON body; no text counts as {}. Reads nothing but its arguments: may run on the pool. */
int validate_json(const struct route *route, const struct router_match *match, const char *text, size_t len,
                  struct arena *arena, struct value *out, struct field_errors *errors, struct err *err) ABX_MUST_USE;

/* Routes with a JSON body take no query: refuses every name in it. */
int validate_no_query(const char *query, struct arena *arena, struct field_errors *errors,
                      struct err *err) ABX_MUST_USE;

/* Copies the values of the match into another arena, so that it outlives the request. */
int validate_keep_match(struct router_match *match, struct arena *arena) ABX_MUST_USE;

#endif
