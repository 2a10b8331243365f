/* The event loop of the main thread, over libuv: server runs it, everything that waits registers here. */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

enum { TURN_MAX_MS = 100 };

struct loop {
    uv_loop_t uv;
    uv_async_t keepalive;     /* never sent: an active handle, so that uv_run waits although nothing else is open */
    uv_idle_t idle;           /* runs only while defers are pending: it makes libuv poll without waiting */
    uv_timer_t timer;         /* for the first of the heap */
    struct loop_timer **heap; /* slots 1..heap_len, by due_ms and then by order */
    size_t heap_len, heap_cap;
    uint64_t timer_order;
    uint64_t armed_ms; /* when `timer` fires; 0 while it does not run */
    bool in_timers;    /* run_timers arms it at its end */
    struct loop_defer overdue;
    struct list defers;
    struct list watches;
    size_t watch_count, job_count;
};

struct loop_fd {
    uv_poll_t poll;
    struct loop *loop;
    struct list node;
    int events;
    bool stopped; /* by libuv, on an error condition */
    loop_fd_fn fn;
    void *ctx;
};

struct job {
    uv_work_t work;
    struct loop *loop;
    loop_fn fn, done;
    void *ctx;
};

/* --- timers */

static void run_timers(void *ctx);

static bool timer_before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void heap_put(struct loop *loop, size_t slot, struct loop_timer *timer)
{
    loop->heap[slot] = timer;
    timer->heap_slot = slot;
}

static void heap_sift(struct loop *loop, size_t slot, struct loop_timer *timer)
{
    for (; slot > 1 && timer_before(timer, loop->heap[slot / 2]); slot /= 2)
        heap_put(loop, slot, loop->heap[slot / 2]);
    for (size_t child; (child = slot * 2) <= loop->heap_len; slot = child) {
        if (child < loop->heap_len && timer_before(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (!timer_before(loop->heap[child], timer))
            break;
        heap_put(loop, slot, loop->heap[child]);
    }
    heap_put(loop, slot, timer);
}

static void on_timer(uv_timer_t *handle)
{
    struct loop *loop = handle->data;
    loop->armed_ms = 0;
    run_timers(loop);
}

/* Firing too early is harmless, so a stopped timer leaves the uv_timer as it is. */
static void arm(struct loop *loop)
{
    if (loop->heap_len == 0) {
        uv_timer_stop(&loop->timer);
        loop->armed_ms = 0;
        return;
    }
    uint64_t due_ms = loop->heap[1]->due_ms, now_ms = uv_now(&loop->uv);
    if (loop->armed_ms != 0 && loop->armed_ms <= due_ms)
        return;
    loop->armed_ms = due_ms;
    uv_timer_start(&loop->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void run_timers(void *ctx)
{
    struct loop *loop = ctx;
    uint64_t order_end = loop->timer_order;
    loop->in_timers = true;
    /* Those started from here on wait for the next turn, or a timer of 0 ms would keep everybody else waiting. */
    while (loop->heap_len > 0 && loop->heap[1]->due_ms <= uv_now(&loop->uv) && loop->heap[1]->order < order_end) {
        struct loop_timer *timer = loop->heap[1];
        loop_fn fn = timer->fn;
        void *fn_ctx = timer->ctx;
        loop_timer_stop(timer);
        fn(fn_ctx); /* may free the timer */
    }
    loop->in_timers = false;
    /* libuv 1.44 runs a timer of 0 ms that its own callback started in the same round, for ever: not by uv_timer. */
    if (loop->heap_len > 0 && loop->heap[1]->due_ms <= uv_now(&loop->uv))
        loop_defer_start(loop, &loop->overdue, run_timers, loop);
    else
        arm(loop);
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ms, loop_fn fn, void *ctx)
{
    uv_update_time(&loop->uv); /* a callback that computed for long before this would have its wait cut short */
    uint64_t now_ms = uv_now(&loop->uv);
    loop_timer_stop(timer);
    if (loop->heap_len + 1 >= loop->heap_cap) {
        size_t cap = loop->heap_cap ? loop->heap_cap * 2 : 64;
        struct loop_timer **heap = realloc(loop->heap, cap * sizeof *heap);
        if (!heap) {
            /* A deadline that silently never comes would be worse. */
            fputs("out of memory for a timer\n", stderr);
            abort();
        }
        loop->heap = heap;
        loop->heap_cap = cap;
    }
    timer->loop = loop;
    timer->due_ms = delay_ms < UINT64_MAX - now_ms ? now_ms + delay_ms : UINT64_MAX;
    timer->order = loop->timer_order++;
    timer->fn = fn;
    timer->ctx = ctx;
    heap_sift(loop, ++loop->heap_len, timer);
    if (timer->heap_slot == 1 && !loop->in_timers && !loop->overdue.pending)
        arm(loop);
}

void loop_timer_stop(struct loop_timer *timer)
{
    size_t slot = timer->heap_slot;
    if (slot == 0)
        return;
    struct loop *loop = timer->loop;
    struct loop_timer *last = loop->heap[loop->heap_len--];
    timer->heap_slot = 0;
    if (last != timer)
        heap_sift(loop, slot, last);
}

/* --- deferred calls */

static void on_idle(uv_idle_t *handle)
{
    struct loop *loop = handle->data;
    struct list batch;
    list_init(&batch);
    if (!list_empty(&loop->defers)) {
        /* Splice: what is started from here on belongs to the next turn; loop_defer_stop works on either list. */
        batch = loop->defers;
        batch.next->prev = batch.prev->next = &batch;
        list_init(&loop->defers);
    }
    while (!list_empty(&batch)) {
        struct loop_defer *defer = LIST_ENTRY(batch.next, struct loop_defer, node);
        loop_fn fn = defer->fn;
        void *ctx = defer->ctx;
        loop_defer_stop(defer);
        fn(ctx); /* may free the struct */
    }
    if (list_empty(&loop->defers))
        uv_idle_stop(&loop->idle);
}

void loop_defer_start(struct loop *loop, struct loop_defer *defer, loop_fn fn, void *ctx)
{
    if (defer->pending)
        return;
    defer->pending = true;
    defer->fn = fn;
    defer->ctx = ctx;
    list_append(&loop->defers, &defer->node);
    uv_idle_start(&loop->idle, on_idle);
}

void loop_defer_stop(struct loop_defer *defer)
{
    if (!defer->pending)
        return;
    defer->pending = false;
    list_remove(&defer->node);
}

/* --- descriptors */

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct loop_fd *watch = handle->data;
    int happened = 0;
    if (status < 0) {
        /* EPOLLERR. Everything that was asked for is "ready", read or write will fail; level-triggered like all else.
         */
        watch->stopped = true;
        watch->fn(watch->ctx, watch->events);
        if (!uv_is_closing((uv_handle_t *)handle) && watch->stopped)
            loop_fd_set(watch, watch->events);
        return;
    }
    happened |= events & UV_READABLE ? LOOP_READABLE : 0;
    happened |= events & UV_WRITABLE ? LOOP_WRITABLE : 0;
    happened |= events & UV_DISCONNECT ? LOOP_HANGUP : 0;
    watch->fn(watch->ctx, happened);
}

static void on_fd_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn fn, void *ctx)
{
    struct loop_fd *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    int rc = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (rc < 0) {
        free(watch); /* uv_poll_init has registered nothing when it fails */
        errno = -rc;
        return NULL;
    }
    watch->poll.data = watch;
    watch->loop = loop;
    watch->fn = fn;
    watch->ctx = ctx;
    list_append(&loop->watches, &watch->node);
    loop->watch_count++;
    loop_fd_set(watch, events);
    return watch;
}

void loop_fd_set(struct loop_fd *watch, int events)
{
    int wanted = 0;
    if (events == watch->events && !watch->stopped)
        return;
    wanted |= events & LOOP_READABLE ? UV_READABLE : 0;
    wanted |= events & LOOP_WRITABLE ? UV_WRITABLE : 0;
    wanted |= events & LOOP_HANGUP ? UV_DISCONNECT : 0;
    int rc = uv_poll_start(&watch->poll, wanted, on_poll); /* with 0 it stops */
    assert(rc == 0 && "two watches on one descriptor");
    (void)rc;
    watch->events = events;
    watch->stopped = false;
}

void loop_fd_free(struct loop_fd *watch)
{
    if (!watch)
        return;
    /* uv_close stops the handle, takes the descriptor out of epoll at once, and forgets events of the current batch. */
    uv_close((uv_handle_t *)&watch->poll, on_fd_closed);
    list_remove(&watch->node);
    watch->loop->watch_count--;
}

/* --- jobs */

static void on_job_work(uv_work_t *work)
{
    struct job *job = work->data;
    job->fn(job->ctx);
}

static void on_job_done(uv_work_t *work, int status)
{
    (void)status; /* jobs are never cancelled */
    struct job job = *(struct job *)work->data;
    free(work->data);
    job.loop->job_count--;
    job.done(job.ctx);
}

int loop_job(struct loop *loop, loop_fn work, loop_fn done, void *ctx)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return -1;
    *job = (struct job){.loop = loop, .fn = work, .done = done, .ctx = ctx};
    job->work.data = job;
    if (uv_queue_work(&loop->uv, &job->work, on_job_work, on_job_done) < 0) {
        free(job);
        return -1;
    }
    loop->job_count++;
    return 0;
}

size_t loop_jobs_running(const struct loop *loop)
{
    return loop->job_count;
}

/* --- the loop itself */

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    if (uv_loop_init(&loop->uv) < 0) {
        free(loop);
        return NULL;
    }
    list_init(&loop->defers);
    list_init(&loop->watches);
    uv_timer_init(&loop->uv, &loop->timer);
    uv_idle_init(&loop->uv, &loop->idle);
    loop->timer.data = loop->idle.data = loop;
    if (uv_async_init(&loop->uv, &loop->keepalive, NULL) < 0) {
        loop_free(loop);
        return NULL;
    }
    return loop;
}

static void on_walk_close(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    LIST_EACH (&loop->watches, node) {
        loop_fd_free(LIST_ENTRY(node, struct loop_fd, node));
    }
    uv_walk(&loop->uv, on_walk_close, NULL);
    while (uv_loop_close(&loop->uv) == UV_EBUSY)
        uv_run(&loop->uv, UV_RUN_ONCE);
    free(loop->heap);
    free(loop);
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

static void on_waited(void *ctx)
{
    (void)ctx;
}

void loop_turn(struct loop *loop, bool wait)
{
    if (!wait) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        return;
    }
    /* libuv 1.44 runs what timers are due and then polls all the same: with nothing else under way that would never
     * come back, although something has happened. */
    struct loop_timer limit = {0};
    loop_timer_start(loop, &limit, TURN_MAX_MS, on_waited, NULL);
    uv_run(&loop->uv, UV_RUN_ONCE);
    loop_timer_stop(&limit);
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return uv_now(&loop->uv);
}

uint64_t loop_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

size_t loop_handles_open(const struct loop *loop)
{
    return loop->watch_count + loop->heap_len;
}
