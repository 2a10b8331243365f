/* Workers of one kind, and who gets the next call; see the header. Called by bind_worker. */
#include "prim/worker_pool.h"

#include <stdlib.h>

struct worker_pool {
    struct workers *workers;
    size_t size, size_max;
    struct worker *members[]; /* the first is there from the beginning, and keeps the spec */
};

struct worker_pool *worker_pool_new(struct workers *workers, const struct worker_spec *spec, size_t size_max)
{
    struct worker_pool *pool = calloc(1, sizeof(*pool) + size_max * sizeof(pool->members[0]));
    if (pool == NULL)
        return NULL;
    pool->workers = workers;
    pool->size_max = size_max;
    pool->members[0] = worker_new(workers, spec);
    if (pool->members[0] == NULL) {
        free(pool);
        return NULL;
    }
    pool->size = 1;
    return pool;
}

void worker_pool_free(struct worker_pool *pool)
{
    if (pool == NULL)
        return;
    for (size_t i = 0; i < pool->size; i++)
        worker_retire(pool->members[i]);
    free(pool);
}

/* Of idle ones that whose process lives: it answers at once. */
static bool is_better(const struct worker *worker, const struct worker *best)
{
    size_t load = worker_load(worker), best_load = worker_load(best);
    return load < best_load || (load == best_load && worker_process(best) == NULL && worker_process(worker) != NULL);
}

struct worker *worker_pool_pick(struct worker_pool *pool)
{
    struct worker *best = pool->members[0];
    for (size_t i = 1; i < pool->size; i++)
        if (is_better(pool->members[i], best))
            best = pool->members[i];
    if (worker_load(best) == 0 || pool->size == pool->size_max)
        return best;
    struct worker *another = worker_new(pool->workers, worker_spec(best));
    if (another != NULL)
        pool->members[pool->size++] = another;
    return another != NULL ? another : best;
}

struct worker *worker_pool_single(struct worker_pool *pool)
{
    return worker_new(pool->workers, worker_spec(pool->members[0]));
}
