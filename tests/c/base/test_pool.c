/* The pool for long work: order, how many run at once, and what becomes of jobs when it goes. */
#include "base/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop *loop;
static struct pool *pool;

static int set_up(void **state)
{
    (void)state;
    struct err err;
    loop = loop_new();
    pool = loop ? pool_new(loop, 2, &err) : NULL;
    return pool ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pool_free(pool);
    loop_free(loop);
    return 0;
}

struct job {
    atomic_int *running, *most;
    atomic_bool *gate; /* waits until it is true; NULL: does not wait */
    pthread_t thread;
    int nice;
    bool signals_blocked, worked;
    int done;
};

static void work(void *ctx)
{
    struct job *job = ctx;
    sigset_t mask;
    int running = atomic_fetch_add(job->running, 1) + 1, most = atomic_load(job->most);
    while (running > most && !atomic_compare_exchange_weak(job->most, &most, running))
        continue;
    job->thread = pthread_self();
    job->nice = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    job->signals_blocked = sigismember(&mask, SIGTERM) == 1;
    while (job->gate && !atomic_load(job->gate))
        usleep(1000);
    job->worked = true;
    atomic_fetch_sub(job->running, 1);
}

static void on_done(void *ctx)
{
    ((struct job *)ctx)->done++;
}

static void run_all(void)
{
    while (pool_jobs_running(pool) > 0)
        loop_turn(loop, true);
}

static void test_jobs_run_beside_the_loop(void **state)
{
    (void)state;
    atomic_int running = 0, most = 0;
    atomic_bool gate = false;
    struct job jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = (struct job){.running = &running, .most = &most, .gate = &gate};
        assert_int_equal(pool_run(pool, work, on_done, &jobs[i]), 0);
    }
    while (atomic_load(&running) < 2)
        usleep(1000);
    usleep(20000); /* a third would come by now */
    assert_int_equal(atomic_load(&most), 2);
    assert_int_equal(pool_jobs_running(pool), 5);
    atomic_store(&gate, true);
    run_all();
    int nice_here = getpriority(PRIO_PROCESS, 0);
    for (int i = 0; i < 5; i++) {
        assert_true(jobs[i].worked);
        assert_int_equal(jobs[i].done, 1);
        assert_false(pthread_equal(jobs[i].thread, pthread_self()));
        assert_true(jobs[i].signals_blocked);
        assert_true(jobs[i].nice > nice_here || nice_here >= 15);
    }
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice_here);
}

static void test_a_thread_is_used_again(void **state)
{
    (void)state;
    atomic_int running = 0, most = 0;
    struct job first = {.running = &running, .most = &most}, second = first;
    assert_int_equal(pool_run(pool, work, on_done, &first), 0);
    run_all();
    usleep(20000); /* it goes back to waiting */
    assert_int_equal(pool_run(pool, work, on_done, &second), 0);
    run_all();
    assert_true(pthread_equal(first.thread, second.thread));
}

static void test_what_never_ran_is_told_too(void **state)
{
    (void)state;
    atomic_int running = 0, most = 0;
    atomic_bool gate = false;
    struct job jobs[6];
    for (int i = 0; i < 6; i++) {
        jobs[i] = (struct job){.running = &running, .most = &most, .gate = &gate};
        assert_int_equal(pool_run(pool, work, on_done, &jobs[i]), 0);
    }
    while (atomic_load(&running) < 2)
        usleep(1000);
    atomic_store(&gate, true);
    pool_free(pool);
    int worked = 0;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(jobs[i].done, 1);
        worked += jobs[i].worked;
    }
    assert_in_range(worked, 2, 6);
    pool = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_jobs_run_beside_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_thread_is_used_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_never_ran_is_told_too, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
