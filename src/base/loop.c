/* The event loop of the main thread, over libuv: server runs it, everything that waits registers here. */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { TURN_MAX_MS = 100, READY_MAX = 256 };

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
    int epoll; /* of the watches */
    uv_poll_t poll;
    struct epoll_event ready[READY_MAX]; /* those that are being told; without data where it was freed meanwhile */
    size_t ready_count;
    struct list watches;
    size_t watch_count, job_count;
    uv_work_t first_work;
};

struct loop_fd {
    struct loop *loop;
    struct list node;
    int fd, events;
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

/* All in one epoll set of our own, which libuv watches: uv_poll would cost each of them six system calls more. */
static int control(struct loop_fd *watch, int operation, int events)
{
    struct epoll_event event = {.data.ptr = watch};
    event.events |= events & LOOP_READABLE ? EPOLLIN : 0;
    event.events |= events & LOOP_WRITABLE ? EPOLLOUT : 0;
    event.events |= events & LOOP_HANGUP ? EPOLLRDHUP : 0;
    return epoll_ctl(watch->loop->epoll, operation, watch->fd, &event);
}

static int happened(const struct loop_fd *watch, uint32_t events)
{
    /* Everything that was asked for is "ready" then: read or write tells what it is. */
    if (events & (EPOLLERR | EPOLLHUP))
        return watch->events;
    return (events & EPOLLIN ? LOOP_READABLE : 0) | (events & EPOLLOUT ? LOOP_WRITABLE : 0) |
           (events & EPOLLRDHUP ? LOOP_HANGUP : 0);
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct loop *loop = handle->data;
    struct epoll_event *ready = loop->ready;
    (void)status, (void)events;
    int count = epoll_wait(loop->epoll, ready, READY_MAX, 0);
    loop->ready_count = count > 0 ? (size_t)count : 0;
    for (size_t i = 0; i < loop->ready_count; i++) {
        struct loop_fd *watch = ready[i].data.ptr;
        /* A callback may have freed it, paused it, or asked for something else. */
        int wanted = watch != NULL ? happened(watch, ready[i].events) & watch->events : 0;
        if (wanted != 0)
            watch->fn(watch->ctx, wanted);
    }
    loop->ready_count = 0;
}

static int watch_epoll(struct loop *loop)
{
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0 || uv_poll_init(&loop->uv, &loop->poll, loop->epoll) < 0)
        return -1;
    loop->poll.data = loop;
    return uv_poll_start(&loop->poll, UV_READABLE, on_ready);
}

struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn fn, void *ctx)
{
    struct loop_fd *watch = malloc(sizeof *watch);
    if (!watch)
        return NULL;
    *watch = (struct loop_fd){.loop = loop, .fd = fd, .events = events, .fn = fn, .ctx = ctx};
    int flags = fcntl(fd, F_GETFL);
    if ((!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) ||
        control(watch, EPOLL_CTL_ADD, events) != 0) {
        int error = errno;
        free(watch);
        errno = error;
        return NULL;
    }
    if (events == 0) /* added all the same: that tells what cannot be watched; an end would be reported, though */
        control(watch, EPOLL_CTL_DEL, 0);
    list_append(&loop->watches, &watch->node);
    loop->watch_count++;
    return watch;
}

void loop_fd_set(struct loop_fd *watch, int events)
{
    if (events == watch->events)
        return;
    int failed = control(watch,
                         events == 0          ? EPOLL_CTL_DEL
                         : watch->events == 0 ? EPOLL_CTL_ADD
                                              : EPOLL_CTL_MOD,
                         events);
    assert(failed == 0 && "two watches on one descriptor");
    (void)failed;
    watch->events = events;
}

void loop_fd_free(struct loop_fd *watch)
{
    if (!watch)
        return;
    struct loop *loop = watch->loop;
    if (watch->events != 0)
        control(watch, EPOLL_CTL_DEL, 0);
    for (size_t i = 0; i < loop->ready_count; i++)
        if (loop->ready[i].data.ptr == watch)
            loop->ready[i].data.ptr = NULL;
    list_remove(&watch->node);
    loop->watch_count--;
    free(watch);
}

/* --- jobs */

/* What libuv's pool orders by its own locks, told to the thread sanitizer, which does not see those of a library that
 * is built without it. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define HANDED_OVER(at) __tsan_release(at)
#define TAKEN_OVER(at) __tsan_acquire(at)
#else
#define HANDED_OVER(at) ((void)(at))
#define TAKEN_OVER(at) ((void)(at))
#endif

static void on_job_work(uv_work_t *work)
{
    struct job *job;

    TAKEN_OVER(work);
    job = work->data;
    job->fn(job->ctx);
    HANDED_OVER(work);
}

static void on_job_done(uv_work_t *work, int status)
{
    (void)status; /* jobs are never cancelled */
    TAKEN_OVER(work);
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
    HANDED_OVER(&job->work);
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

static void on_first_work(uv_work_t *work)
{
    (void)work;
}

/* All threads of libuv start with its first job, and where one cannot it aborts: better at the start than in the middle
 * of work, with a limit of processes reached. Signals are the loop's: a thread that does not block SIGCHLD would take
 * it and throw it away. */
static int start_threads(struct loop *loop)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = uv_queue_work(&loop->uv, &loop->first_work, on_first_work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

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
    if (watch_epoll(loop) != 0 || uv_async_init(&loop->uv, &loop->keepalive, NULL) < 0 || start_threads(loop) != 0) {
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
    if (loop->epoll >= 0)
        close(loop->epoll);
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
