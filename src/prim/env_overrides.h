/* The environment that later processes get: the server's own, and what clients set and unset of it since (POST /env).
 * Held by the process table, so that it outlives every reload of the tables. Main thread only, never waits. */
#ifndef ABX_PRIM_ENV_OVERRIDES_H
#define ABX_PRIM_ENV_OVERRIDES_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/env_block.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    /* Of NAME=VALUE: with its NUL it is the longest string that execve takes. */
    ENV_VARIABLE_MAX_BYTES = 128 * 1024 - 1,
    ENV_TOTAL_MAX_BYTES = 1024 * 1024, /* of all NAME=VALUE, each with its NUL */
};

struct env_overrides {
    struct env_block own;       /* as the server was started, less what no child gets */
    struct env_block effective; /* with all that was set and unset */
    struct env_block names;     /* what was set, and what was unset of own; values are empty */
};

/* Names and values as a client sent them, any bytes; borrowed. */
struct env_change {
    struct env_var {
        const char *name, *value; /* value: NULL among those to unset */
        size_t name_len, value_len;
    } * set, *unset; /* of the caller's order, which errors name: "set.NAME", "unset[0]" */
    size_t set_count, unset_count;
};

void env_overrides_init(struct env_overrides *env);
void env_overrides_deinit(struct env_overrides *env);
/* Copies every variable of envp but ABX_SERVER_* and ABX_PROCESS_ID as the server's own. -1 out of memory. */
int env_overrides_inherit(struct env_overrides *env, char *const *envp) ABX_MUST_USE;

/* All of the change, or -1 and nothing. To unset what is not set is no failure. Errors, with the field:
 * ERR_INVALID_REQUEST (no name; NUL in a value; a name twice; a value as it is shown where a secret of it is hidden),
 * ERR_PROTECTED_VARIABLE (PATH HOME USER SHELL ABX_SERVER_* ABX_PROCESS_ID), ERR_PAYLOAD_TOO_LARGE. */
int env_overrides_update(struct env_overrides *env, const struct env_change *change, struct err *err) ABX_MUST_USE;

/* Appends {"env":{…},"overrides":[…],"masked":[…]}, sorted by name, with secrets hidden (prim/mask). -1: out is full.
 */
int env_overrides_write(struct buf *out, const struct env_overrides *env) ABX_MUST_USE;

#endif
