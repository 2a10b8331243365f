/* Several workers of one kind, for calls that do not care which of them answers (git). Main thread only. */
#ifndef ABX_PRIM_WORKER_POOL_H
#define ABX_PRIM_WORKER_POOL_H

#include "prim/worker.h"

struct worker_pool;

/* At most size_max of them, at least one, made as calls need them. The spec is copied. NULL out of memory. free retires
 * all; no call may be left. */
struct worker_pool *worker_pool_new(struct workers *workers, const struct worker_spec *spec, size_t size_max);
void worker_pool_free(struct worker_pool *pool);
/* An idle one, else a new one, else the one with the fewest calls. Borrowed. */
struct worker *worker_pool_pick(struct worker_pool *pool);
/* One that nobody else gets: worker_retire it after its call. NULL out of memory. */
struct worker *worker_pool_single(struct worker_pool *pool);

#endif
