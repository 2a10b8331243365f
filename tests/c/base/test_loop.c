/* The loop: timers, deferred calls, watches and jobs, and that dropping any of them at any time is safe. */
#include "base/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *loop, *second_loop;
static char order[64];

static int set_up(void **state)
{
    (void)state;
    loop = loop_new();
    order[0] = '\0';
    return loop ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    size_t left = loop_handles_open(loop) + loop_jobs_running(loop);
    loop_free(loop);
    return left == 0 ? 0 : -1;
}

static void on_note(void *ctx)
{
    strncat(order, ctx, sizeof order - strlen(order) - 1);
}

static void on_stop(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

static void test_timers_run_in_order(void **state)
{
    (void)state;
    struct loop_timer timers[6] = {0}, stop = {0};
    loop_timer_start(loop, &timers[0], 20, on_note, "d");
    loop_timer_start(loop, &timers[1], 5, on_note, "b");
    loop_timer_start(loop, &timers[2], 5, on_note, "c");
    loop_timer_start(loop, &timers[3], 0, on_note, "a");
    loop_timer_start(loop, &timers[4], 1, on_note, "x");
    loop_timer_start(loop, &timers[5], 1, on_note, "e");
    loop_timer_start(loop, &timers[5], 25, on_note, "e"); /* moved */
    loop_timer_stop(&timers[4]);
    loop_timer_stop(&timers[4]);
    loop_timer_start(loop, &stop, 30, on_stop, NULL);
    assert_int_equal(loop_handles_open(loop), 6);
    uint64_t before_ns = loop_clock_ns();
    loop_run(loop);
    assert_string_equal(order, "abcde");
    assert_in_range((loop_clock_ns() - before_ns) / 1000000, 28, 2000);
}

static void test_many_timers_keep_the_heap(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct loop_timer *timers = calloc(COUNT, sizeof *timers), stop = {0};
    unsigned seed = 1;
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < COUNT; i++) {
            loop_timer_start(loop, &timers[i], (uint64_t)rand_r(&seed) % 20, on_note, "");
            if (rand_r(&seed) % 3 == 0)
                loop_timer_stop(&timers[rand_r(&seed) % COUNT]);
        }
    loop_timer_start(loop, &stop, 21, on_stop, NULL);
    loop_run(loop);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(timers[i].heap_slot, 0);
    free(timers);
}

static void on_free_timer(void *ctx)
{
    free(ctx);
    on_note("f");
}

static struct loop_timer again;
static int again_count;

static void on_again(void *ctx)
{
    (void)ctx;
    if (++again_count < 50)
        loop_timer_start(loop, &again, 0, on_again, NULL);
    else
        loop_stop(loop);
}

static void test_timer_may_free_itself_and_start_itself(void **state)
{
    (void)state;
    struct loop_timer *timer = calloc(1, sizeof *timer), later = {0};
    loop_timer_start(loop, timer, 0, on_free_timer, timer);
    loop_timer_start(loop, &again, 0, on_again, NULL);
    loop_turn(loop, false);
    loop_turn(loop, false);
    assert_in_range(again_count, 1, 4); /* a turn each, not all at once */
    loop_timer_start(loop, &later, 100000, on_note, "z");
    loop_run(loop);
    assert_int_equal(again_count, 50);
    assert_string_equal(order, "f");
    loop_timer_stop(&later);
}

static struct loop_defer first, second;

static void on_stop_second(void *ctx)
{
    (void)ctx;
    loop_defer_stop(&second);
    loop_defer_start(loop, &first, on_note, "2");
    on_note("1");
}

static void test_defers(void **state)
{
    (void)state;
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    loop_defer_stop(&second);
    loop_defer_start(loop, &first, on_stop_second, NULL);
    loop_defer_start(loop, &first, on_note, "ignored");
    loop_defer_start(loop, &second, on_note, "x");
    assert_string_equal(order, "");
    loop_turn(loop, true);
    assert_string_equal(order, "1");
    assert_false(second.pending);
    loop_turn(loop, true); /* must not wait: the one started meanwhile is pending */
    assert_string_equal(order, "12");
}

static double cpu_seconds(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

static void test_idle_loop_sleeps(void **state)
{
    (void)state;
    struct loop_timer stop = {0};
    struct loop_defer defer = {0};
    loop_defer_start(loop, &defer, on_note, "d");
    loop_timer_start(loop, &stop, 150, on_stop, NULL);
    double before = cpu_seconds();
    loop_run(loop);
    assert_true(cpu_seconds() - before < 0.1);
    assert_string_equal(order, "d");
}

static struct loop_fd *watch_a, *watch_b;
static int events_seen;

static void on_events(void *ctx, int events)
{
    (void)ctx;
    events_seen |= events;
}

static void test_watch_tells_reading_writing_and_hangup(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct loop_fd *watch = loop_fd_new(loop, pair[0], LOOP_READABLE, on_events, NULL);
    assert_non_null(watch);
    assert_int_equal(loop_handles_open(loop), 1);
    loop_turn(loop, false);
    assert_int_equal(events_seen, 0);
    assert_int_equal(write(pair[1], "x", 1), 1);
    loop_turn(loop, true);
    assert_int_equal(events_seen, LOOP_READABLE);
    events_seen = 0;
    loop_fd_set(watch, 0);
    loop_turn(loop, false);
    assert_int_equal(events_seen, 0);
    loop_fd_set(watch, LOOP_WRITABLE);
    loop_turn(loop, true);
    assert_int_equal(events_seen, LOOP_WRITABLE);
    events_seen = 0;
    loop_fd_set(watch, LOOP_HANGUP);
    loop_turn(loop, false);
    assert_int_equal(events_seen, 0);
    close(pair[1]);
    loop_turn(loop, true);
    assert_int_equal(events_seen, LOOP_HANGUP);
    loop_fd_free(watch);
    loop_fd_free(NULL);
    close(pair[0]);
    events_seen = 0;
}

static int errors_seen;

static void on_error_event(void *ctx, int events)
{
    (void)ctx;
    assert_int_equal(events, LOOP_WRITABLE);
    if (++errors_seen == 2)
        loop_fd_set(watch_a, 0);
    if (errors_seen == 3)
        loop_fd_free(watch_a);
}

static void test_error_condition_counts_as_what_was_asked_for(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]); /* EPOLLERR on the writing end */
    watch_a = loop_fd_new(loop, ends[1], LOOP_WRITABLE, on_error_event, NULL);
    errors_seen = 0;
    for (int i = 0; i < 5; i++)
        loop_turn(loop, false);
    assert_int_equal(errors_seen, 2); /* paused by its own callback */
    loop_fd_set(watch_a, LOOP_WRITABLE);
    for (int i = 0; i < 5; i++)
        loop_turn(loop, false);
    assert_int_equal(errors_seen, 3);
    close(ends[1]);
}

static int pipe_a[2], pipe_b[2], stale_calls;

static void on_stale(void *ctx, int events)
{
    (void)ctx;
    (void)events;
    stale_calls++;
}

/* Both are ready in one batch: whoever comes first drops the other, closes it, and a new file takes its number. */
static void on_drop_other(void *ctx, int events)
{
    (void)events;
    bool is_a = ctx == &watch_a;
    struct loop_fd **other = is_a ? &watch_b : &watch_a;
    int *ends = is_a ? pipe_b : pipe_a, number = ends[0];
    if (!*other)
        return;
    loop_fd_free(*other);
    *other = NULL;
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(ends[0] == number || ends[1] == number);
    struct loop_fd *fresh = loop_fd_new(loop, ends[0], LOOP_READABLE, on_stale, NULL);
    assert_non_null(fresh);
    *other = fresh;
    char byte;
    assert_int_equal(read(is_a ? pipe_a[0] : pipe_b[0], &byte, 1), 1);
}

static void test_dropped_watch_is_silent_at_once(void **state)
{
    (void)state;
    assert_int_equal(pipe2(pipe_a, O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipe_b, O_CLOEXEC), 0);
    watch_a = loop_fd_new(loop, pipe_a[0], LOOP_READABLE, on_drop_other, &watch_a);
    watch_b = loop_fd_new(loop, pipe_b[0], LOOP_READABLE, on_drop_other, &watch_b);
    assert_int_equal(write(pipe_a[1], "x", 1), 1);
    assert_int_equal(write(pipe_b[1], "x", 1), 1);
    stale_calls = 0;
    loop_turn(loop, true);
    loop_turn(loop, false);
    assert_int_equal(stale_calls, 0);
    loop_fd_free(watch_a);
    loop_fd_free(watch_b);
    for (int i = 0; i < 2; i++) {
        close(pipe_a[i]);
        close(pipe_b[i]);
    }
}

static void on_pause_other(void *ctx, int events)
{
    struct loop_fd **other = ctx;
    (void)events;
    events_seen++;
    loop_fd_set(*other, 0);
}

/* Both are ready in one batch: whoever comes first pauses the other. */
static void test_paused_watch_is_silent_at_once(void **state)
{
    (void)state;
    int a = eventfd(1, EFD_CLOEXEC), b = eventfd(1, EFD_CLOEXEC);
    watch_a = loop_fd_new(loop, a, LOOP_READABLE, on_pause_other, &watch_b);
    watch_b = loop_fd_new(loop, b, LOOP_READABLE, on_pause_other, &watch_a);
    events_seen = 0;
    loop_turn(loop, true);
    assert_int_equal(events_seen, 1);
    loop_fd_free(watch_a);
    loop_fd_free(watch_b);
    close(a);
    close(b);
    events_seen = 0;
}

static void on_count(void *ctx, int events)
{
    uint64_t value;
    (void)events;
    if (read(*(int *)ctx, &value, sizeof(value)) == sizeof(value))
        events_seen++;
}

static void test_many_ready_at_once_are_all_told(void **state)
{
    (void)state;
    enum { MANY = 600 };
    static int fds[MANY];
    static struct loop_fd *watches[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = eventfd(1, EFD_CLOEXEC);
        watches[i] = loop_fd_new(loop, fds[i], LOOP_READABLE, on_count, &fds[i]);
        assert_non_null(watches[i]);
    }
    events_seen = 0;
    for (int turns = 0; turns < 3; turns++)
        loop_turn(loop, false);
    assert_int_equal(events_seen, MANY);
    for (int i = 0; i < MANY; i++) {
        loop_fd_free(watches[i]);
        close(fds[i]);
    }
    events_seen = 0;
}

static void test_paused_from_the_start_tells_no_end(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct loop_fd *watch = loop_fd_new(loop, ends[0], 0, on_events, NULL);
    assert_non_null(watch);
    assert_int_equal(fcntl(ends[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    close(ends[1]);
    events_seen = 0;
    loop_turn(loop, false);
    assert_int_equal(events_seen, 0);
    loop_fd_set(watch, LOOP_READABLE);
    loop_turn(loop, false);
    assert_int_equal(events_seen, LOOP_READABLE);
    loop_fd_free(watch);
    close(ends[0]);
    events_seen = 0;
}

static void test_refused_watches(void **state)
{
    (void)state;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    errno = 0;
    assert_null(loop_fd_new(loop, file, LOOP_READABLE, on_events, NULL));
    assert_int_equal(errno, EPERM);
    close(file);
    assert_null(loop_fd_new(loop, file, LOOP_READABLE, on_events, NULL));
    assert_int_equal(errno, EBADF);
}

static bool work_done;

static void on_work(void *ctx)
{
    *(int *)ctx = 41;
}

static void on_done(void *ctx)
{
    ++*(int *)ctx;
    work_done = true;
}

static void test_jobs(void **state)
{
    (void)state;
    int value = 0;
    work_done = false;
    assert_int_equal(loop_job(loop, on_work, on_done, &value), 0);
    assert_int_equal(loop_jobs_running(loop), 1);
    while (!work_done)
        loop_turn(loop, true);
    assert_int_equal(value, 42);
    assert_int_equal(loop_jobs_running(loop), 0);
}

static sigset_t blocked_in_job;

static void look_at_signals(void *ctx)
{
    (void)ctx;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked_in_job);
}

/* A thread that did not block them would take those that the process waits for. */
static void test_jobs_run_with_signals_blocked(void **state)
{
    (void)state;
    int value = 0;
    work_done = false;
    assert_int_equal(loop_job(loop, look_at_signals, on_done, &value), 0);
    while (!work_done)
        loop_turn(loop, true);
    assert_int_equal(sigismember(&blocked_in_job, SIGCHLD), 1);
    assert_int_equal(sigismember(&blocked_in_job, SIGTERM), 1);
}

static void test_free_with_open_watches(void **state)
{
    (void)state;
    struct loop *other = loop_new();
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_non_null(loop_fd_new(other, ends[0], LOOP_READABLE, on_events, NULL));
    loop_free(other);
    loop_free(NULL);
    close(ends[0]);
    close(ends[1]);
}

static void on_stop_asked(void *ctx, int events)
{
    (void)events;
    eventfd_t count;
    (void)!eventfd_read(*(int *)ctx, &count);
    loop_stop(second_loop);
}

static void *run_second(void *ctx)
{
    (void)ctx;
    loop_run(second_loop);
    return NULL;
}

/* As the terminal thread does it. */
static void test_second_loop_on_a_thread(void **state)
{
    (void)state;
    int asked = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    second_loop = loop_new();
    struct loop_fd *watch = loop_fd_new(second_loop, asked, LOOP_READABLE, on_stop_asked, &asked);
    assert_non_null(watch);
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        struct loop_timer timer = {0};
        loop_timer_start(second_loop, &timer, 1, on_note, "t");
        assert_int_equal(pthread_create(&thread, NULL, run_second, NULL), 0);
        assert_int_equal(eventfd_write(asked, 1), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        loop_timer_stop(&timer);
    }
    /* One that was stopped before it runs comes back at once. */
    loop_stop(second_loop);
    loop_run(second_loop);
    loop_fd_free(watch);
    loop_free(second_loop);
    close(asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_timers_run_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_timers_keep_the_heap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_timer_may_free_itself_and_start_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_defers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_idle_loop_sleeps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_watch_tells_reading_writing_and_hangup, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_error_condition_counts_as_what_was_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dropped_watch_is_silent_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_paused_watch_is_silent_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_ready_at_once_are_all_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_paused_from_the_start_tells_no_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_watches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_jobs_run_with_signals_blocked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_loop_on_a_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_free_with_open_watches, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
