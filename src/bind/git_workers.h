/* The processes that do git's work, and what clones leave when they fail; state of the server behind abx.git. Main
 * thread only. */
#ifndef ABX_BIND_GIT_WORKERS_H
#define ABX_BIND_GIT_WORKERS_H

#include "prim/clone_target.h"
#include "prim/worker.h"

#include <stdbool.h>

struct host;
struct git_workers;

/* Nothing is started before it is needed. NULL out of memory. */
struct git_workers *git_workers_new(struct host *host);
/* No call may be left. What is to be removed is removed here. Before workers_free and process_table_free. */
void git_workers_free(struct git_workers *git);

/* One of the few that stay, or one that is to be retired after its call: for what may have to be ended with its
 * process. NULL out of memory. */
struct worker *git_workers_pick(struct git_workers *git, bool single);

/* A single one whose call was cancelled: it has its grace to stop (a process that is ended at once leaves the
 * repository's locks behind), and is retired then. */
void git_workers_let_go(struct git_workers *git, struct worker *worker);

/* A clone that did not come about: removes what there is of it, on a thread, once its process (NULL: none) has ended.
 * Takes the target over; the process is only borrowed. */
void git_workers_undo(struct git_workers *git, const struct clone_target *target, struct process *process);

#endif
