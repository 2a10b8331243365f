/* The main thread's event loop: libuv with handles that can be dropped at once.
 *
 * libuv wants every handle kept until its close callback ran. Timers here are plain structs on one uv_timer, and
 * descriptors and jobs are small heap objects that free themselves, so nobody else has to think of that. All functions
 * are for the loop's thread only; callbacks run on the loop's thread, never from inside the call that registers them.
 */
#ifndef ABX_BASE_LOOP_H
#define ABX_BASE_LOOP_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uv_loop_s;
struct loop;

typedef void (*loop_fn)(void *ctx);

/* Wraps a uv loop of its own; NULL out of memory. loop_free closes what is left open and frees; jobs must have ended.
 */
struct loop *loop_new(void);
void loop_free(struct loop *loop);
struct uv_loop_s *loop_uv(struct loop *loop);
/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* One turn; with wait it blocks until something happens, or some 100 ms. For tests and for draining. */
void loop_turn(struct loop *loop, bool wait);

/* Milliseconds of the monotonic clock, cached for the current turn of the loop and
 * brought up to date by loop_timer_start. */
uint64_t loop_now_ms(const struct loop *loop);
/* The monotonic clock now, in nanoseconds (a system call by vdso). */
uint64_t loop_clock_ns(void);

/* A one-shot timer, embedded by its user; zero it before first use. Starting one that runs moves it. fn runs once
 * and may free the struct; with a delay of 0 it runs at the next turn. */
struct loop_timer {
    struct loop *loop;
    uint64_t due_ms;
    uint64_t order;   /* timers due at the same time run in the order of their starts */
    size_t heap_slot; /* 1-based; 0 while not running */
    loop_fn fn;
    void *ctx;
};
void loop_timer_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ms, loop_fn fn, void *ctx);
void loop_timer_stop(struct loop_timer *timer); /* harmless on one that does not run */

/* A call at the next turn of the loop, embedded by its user; zero it before first use (node initialised on first
 * start). Starting one that is pending does nothing. */
struct loop_defer {
    struct list node;
    bool pending;
    loop_fn fn;
    void *ctx;
};
void loop_defer_start(struct loop *loop, struct loop_defer *defer, loop_fn fn, void *ctx);
void loop_defer_stop(struct loop_defer *defer);

/* Watches a descriptor (level-triggered). The descriptor stays the caller's: loop_fd_free first, then close. It
 * becomes non-blocking; regular files are refused (EPERM), and so is a second running watch on one descriptor. */
enum { LOOP_READABLE = 1, LOOP_WRITABLE = 2, LOOP_HANGUP = 4 };
struct loop_fd;
typedef void (*loop_fd_fn)(void *ctx, int events); /* also on error conditions: then read or write tells which */
struct loop_fd *loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn fn, void *ctx); /* NULL: errno tells */
void loop_fd_set(struct loop_fd *watch, int events);                                          /* 0 pauses */
void loop_fd_free(struct loop_fd *watch); /* NULL is allowed; fn is not called any more */

/* Runs work(ctx) on a thread of the pool, then done(ctx) on the loop, exactly once each. work gets plain data: no Lua,
 * no request, no handle. ctx must live until done. -1 out of memory (nothing is called then). */
int loop_job(struct loop *loop, loop_fn work, loop_fn done, void *ctx) ABX_MUST_USE;
/* Jobs between loop_job and done. */
size_t loop_jobs_running(const struct loop *loop);
/* Open watches and running timers: tests assert that none are left over. */
size_t loop_handles_open(const struct loop *loop);

#endif
