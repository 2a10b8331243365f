/* Threads for long work; see pool.h. Jobs go over by a list under a lock, and come back by another and uv_async. */
#include "base/pool.h"

#include "base/list.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

enum { THREADS_MAX = 64, NICE = 5 };

struct pool_job {
    struct list node;
    loop_fn work, done;
    void *ctx;
};

struct pool {
    uv_async_t async;
    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t wanted;
    struct list waiting, ended;
    unsigned idle, count, max;
    bool closing;
    size_t running; /* the loop's alone */
    pthread_t threads[THREADS_MAX];
};

static struct pool_job *next_job(struct pool *pool)
{
    pool->idle++;
    while (list_empty(&pool->waiting) && !pool->closing)
        pthread_cond_wait(&pool->wanted, &pool->lock);
    pool->idle--;
    if (list_empty(&pool->waiting) || pool->closing)
        return NULL;
    struct pool_job *job = LIST_ENTRY(pool->waiting.next, struct pool_job, node);
    list_remove(&job->node);
    return job;
}

static void *run_thread(void *ctx)
{
    struct pool *pool = ctx;
    id_t tid = (id_t)syscall(SYS_gettid); /* on Linux a thread has a priority of its own: setpriority(2), notes */
    setpriority(PRIO_PROCESS, tid, getpriority(PRIO_PROCESS, tid) + NICE);
    pthread_mutex_lock(&pool->lock);
    for (struct pool_job *job; (job = next_job(pool)) != NULL;) {
        pthread_mutex_unlock(&pool->lock);
        job->work(job->ctx);
        pthread_mutex_lock(&pool->lock);
        list_append(&pool->ended, &job->node);
        uv_async_send(&pool->async);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void end_jobs(struct pool *pool, struct list *jobs)
{
    while (!list_empty(jobs)) {
        struct pool_job *job = LIST_ENTRY(jobs->next, struct pool_job, node);
        loop_fn done = job->done;
        void *ctx = job->ctx;
        list_remove(&job->node);
        free(job);
        pool->running--;
        done(ctx);
    }
}

/* Moves the ended jobs out, so that done runs without the lock. */
static void on_ended(uv_async_t *async)
{
    struct pool *pool = async->data;
    struct list ended;
    list_init(&ended);
    pthread_mutex_lock(&pool->lock);
    while (!list_empty(&pool->ended)) {
        struct list *node = pool->ended.next;
        list_remove(node);
        list_append(&ended, node);
    }
    pthread_mutex_unlock(&pool->lock);
    end_jobs(pool, &ended);
}

struct pool *pool_new(struct loop *loop, unsigned threads_max, struct err *err)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool || uv_async_init(loop_uv(loop), &pool->async, on_ended) != 0) {
        free(pool);
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot make a pool of threads");
        return NULL;
    }
    uv_unref((uv_handle_t *)&pool->async);
    pool->async.data = pool;
    pool->max = threads_max < THREADS_MAX ? threads_max : THREADS_MAX;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wanted, NULL);
    list_init(&pool->waiting);
    list_init(&pool->ended);
    return pool;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wanted);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    end_jobs(pool, &pool->ended);
    end_jobs(pool, &pool->waiting);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wanted);
    uv_close((uv_handle_t *)&pool->async, on_closed);
}

/* Signals are for the main thread. */
static int start_thread(struct pool *pool)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&pool->threads[pool->count], NULL, run_thread, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        pool->count++;
    return failed;
}

int pool_run(struct pool *pool, loop_fn work, loop_fn done, void *ctx)
{
    struct pool_job *job = malloc(sizeof *job);
    if (!job)
        return -1;
    *job = (struct pool_job){.work = work, .done = done, .ctx = ctx};
    pthread_mutex_lock(&pool->lock);
    if (pool->idle == 0 && pool->count < pool->max && start_thread(pool) != 0 && pool->count == 0) {
        pthread_mutex_unlock(&pool->lock);
        free(job);
        return -1;
    }
    list_append(&pool->waiting, &job->node);
    pool->running++;
    pthread_cond_signal(&pool->wanted);
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

size_t pool_jobs_running(const struct pool *pool)
{
    return pool->running;
}
