/* Shell sessions: a name whose working directory and exported variables go from one run to the next. Main thread only.
 */
#ifndef ABX_PRIM_SESSION_H
#define ABX_PRIM_SESSION_H

#include "base/err.h"
#include "base/loop.h"
#include "prim/confine.h"
#include "prim/env_block.h"
#include "prim/process.h"

enum { SESSIONS_MAX = 64, SESSION_NAME_MAX = 128 };

struct session_table;
struct session_turn; /* the right to run in a session; one at a time, in order of asking */

/* Makes a private directory (0700) outside the base for the state files. NULL with *err. free removes it. */
struct session_table *session_table_new(struct loop *loop, const struct confine *confine, struct err *err);
void session_table_free(struct session_table *table);

/* Asks for a turn: fn(ctx) is called from the loop when it has come. NULL with *err: a bad name, or all SESSIONS_MAX
 * sessions are busy (ERR_BUSY); the longest unused one goes to make room. */
struct session_turn *session_enter(struct session_table *table, const char *name, size_t name_len, loop_fn fn,
                                   void *ctx, struct err *err);
/* Gives it back (or leaves the queue). Where a process was bound to it, it is given back at that process's end instead,
 * and this only drops the caller's handle. */
void session_leave(struct session_turn *turn);

/* Whether a run can begin with this turn: it has come, and no run was bound to it before. */
bool session_usable(const struct session_turn *turn);
/* With a usable turn: an open directory to start in (the session's, or the base's where it has none or it is gone or
 * left the base), the caller closes it; changes the variables of env to the session's; and the shell text that makes
 * the run write its state at its end (borrowed until session_leave). */
int session_cwd(struct session_turn *turn, struct err *err) ABX_MUST_USE;
int session_apply_env(struct session_turn *turn, struct env_block *env) ABX_MUST_USE;
const char *session_prologue(struct session_turn *turn);
/* Ties the turn to the process that runs in it: at its end the state is read from the file and the turn passes on. What
 * differs from the environment that session_apply_env was given is kept. */
int session_bind(struct session_turn *turn, struct process *process, struct err *err) ABX_MUST_USE;

#endif
