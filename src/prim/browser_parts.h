/* What the browser's worker is put together from, and what of it is missing: the one truth for calls and for
 * /capabilities. Only looks (stat), each time anew, so that what is installed later works without a restart. */
#ifndef ABX_PRIM_BROWSER_PARTS_H
#define ABX_PRIM_BROWSER_PARTS_H

#include "base/err.h"

#include <limits.h>

struct browser_places {
    const char *root;        /* "": the machine's own. What stands before every absolute path that is fixed below */
    const char *workers_dir; /* absolute; NULL: there is none */
    const char *path;        /* PATH of the worker; NULL: not set */
    const char *node_path;   /* NODE_PATH of the worker; NULL: not set */
};

struct browser_parts {
    char node[PATH_MAX];
    char library[PATH_MAX];    /* the directory of playwright-core */
    char turndown[PATH_MAX];   /* "": it is missing, and only Markdown needs it */
    char executable[PATH_MAX]; /* the browser */
};

/* -1 with ERR_UNAVAILABLE: the first that is missing, and the command that brings it. */
int browser_parts_find(const struct browser_places *places, struct browser_parts *out_parts,
                       struct err *err) ABX_MUST_USE;

#endif
