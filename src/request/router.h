/* From method and segments to a route: a trie built once for each generation of the tables. */
#ifndef ABX_REQUEST_ROUTER_H
#define ABX_REQUEST_ROUTER_H

#include "model/route.h"
#include "request/target.h"

#include <stddef.h>

enum { ROUTER_PARAMS_MAX = 8 };

struct router;

struct router_match {
    const struct route *route; /* NULL: none for this method */
    unsigned methods;          /* bit 1 << enum method for each that this path has; 0: no such path */
    struct router_param {
        struct slice name, value; /* the name is not NUL-terminated; the value is the target's segment */
    } params[ROUTER_PARAMS_MAX];
    size_t param_count;
};

/* The routes are borrowed. NULL out of memory. */
struct router *router_new(const struct route *const *routes, size_t count);
void router_free(struct router *router);

/* A literal segment beats a parameter, and a parameter never matches an empty segment; where the literal leads to no
 * route of this method, the parameter is tried. method may be METHOD_COUNT (none of ours): then only `methods` is
 * found. Time is linear in the number of segments times the few branches that fit. */
void router_find(const struct router *router, enum method method, const struct target *target,
                 struct router_match *out);

#endif
