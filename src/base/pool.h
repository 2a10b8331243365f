/* Threads for long work (walks, searches, copies of trees), apart from the few of loop_job, so that it delays no short
 * work. Made by server; bindings hand jobs to it. All functions are for the loop's thread. */
#ifndef ABX_BASE_POOL_H
#define ABX_BASE_POOL_H

#include "base/err.h"
#include "base/loop.h"

#include <stddef.h>

struct pool;

/* Threads start as jobs need them, at most that many, and stay. They run at a lower priority (nice), as nothing that
 * they do is as urgent as what the loop does. NULL with *err. */
struct pool *pool_new(struct loop *loop, unsigned threads_max, struct err *err);
/* Waits for the running jobs, calls `done` for every job that is left, also for those that never ran. */
void pool_free(struct pool *pool);

/* Runs work(ctx) on one of the threads, in the order of the calls as threads are free, then done(ctx) on the loop,
 * exactly once each. work gets plain data: no Lua, no request, no handle; ctx must live until done. -1 out of memory or
 * threads: nothing is called then. */
int pool_run(struct pool *pool, loop_fn work, loop_fn done, void *ctx) ABX_MUST_USE;
/* Jobs between pool_run and done. */
size_t pool_jobs_running(const struct pool *pool);

#endif
