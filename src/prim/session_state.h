/* What one run of a shell session hands to the next: working directory and exported variables. */
#ifndef ABX_PRIM_SESSION_STATE_H
#define ABX_PRIM_SESSION_STATE_H

#include "prim/env_block.h"

struct session_state {
    char *cwd;              /* NULL: the base's */
    struct env_block set;   /* variables that differ from what a run is given */
    struct env_block unset; /* and those taken away, with an empty value */
};

void session_state_deinit(struct session_state *state);
int session_state_apply(const struct session_state *state, struct env_block *env) ABX_MUST_USE;
/* Shell text that makes the shell write its state to dir/file when it ends; the caller frees it. NULL out of memory. */
char *session_state_prologue(const char *dir, const char *file);
/* Reads what it wrote, as the difference to `base`, the environment the run was given. -1, and *state as it was, where
 * the shell did not get so far. */
int session_state_read(struct session_state *state, int dir_fd, const char *file,
                       const struct env_block *base) ABX_MUST_USE;

#endif
