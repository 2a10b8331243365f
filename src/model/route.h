/* Groups, routes and commands as plain data: what the loader makes of the Lua tables. Immutable once loaded. */
#ifndef ABX_MODEL_ROUTE_H
#define ABX_MODEL_ROUTE_H

#include "model/schema.h"

#include <stdbool.h>
#include <stddef.h>

enum method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE, METHOD_COUNT };

/* "GET"; -1 from method_parse where it is none of ours (HEAD and OPTIONS are the pipeline's business). */
const char *method_name(enum method method);
int method_parse(const char *text, enum method *out) ABX_MUST_USE;

struct group {
    char *name;
    char *description;
    bool always_on;
    bool default_on;
    bool public_routes; /* whether its routes may say auth_required = false */
    bool enabled;       /* by the configuration in force */
};

enum route_body {
    ROUTE_BODY_NONE,   /* parameters come from the query; a body is read and thrown away */
    ROUTE_BODY_JSON,   /* parameters come from the JSON object */
    ROUTE_BODY_STREAM, /* parameters come from the query; the handler reads the body */
};

struct route {
    enum method method;
    char *path; /* "/commands/{name}" */
    char *name; /* "commands.run" */
    const struct group *group;
    struct schema params; /* SCHEMA_OBJECT: path, query or body parameters by name */
    char *rest;           /* gather undeclared members under this name; NULL: refuse them */
    enum route_body body;
    size_t body_limit_bytes;
    int status;
    bool auth_required;
    bool streaming;
    unsigned deadline_ms;
    char *pack;          /* the pack that brought it: not one of the 42; NULL: lua/routes */
    int handler_ref;     /* of the generation's Lua state */
    int declaration_ref; /* the Lua table as written */
    char *file;          /* where it was written */
    int line;
};

#endif
