/* prim/worker_pool: who of several workers gets a call. */
#include "prim/worker_pool.h"

#include "worker_fixture.h"

static struct worker_pool *make_pool(size_t size_max)
{
    struct worker *model = make_worker(&fixture, 1, NULL);
    struct worker_pool *pool = worker_pool_new(fixture.workers, worker_spec(model), size_max);
    assert_non_null(pool);
    worker_retire(model);
    turn_for_ms(&fixture.base, 5); /* the spec was copied */
    return pool;
}

static void prefers_the_idle_then_grows_then_shares(void **state)
{
    (void)state;
    struct worker_pool *pool = make_pool(2);
    struct worker *first = worker_pool_pick(pool);
    free_call(run_call(&fixture, first, "echo", "{}", WORKER_ANSWERED));
    assert_ptr_equal(worker_pool_pick(pool), first);
    struct test_call *calls[3];
    calls[0] = ask(first, "echo", "{\"ms\":100}");
    struct worker *second = worker_pool_pick(pool);
    assert_ptr_not_equal(second, first);
    calls[1] = ask(second, "echo", "{\"ms\":100}");
    calls[2] = ask(first, "echo", "{}");
    assert_ptr_equal(worker_pool_pick(pool), second);
    for (size_t i = 0; i < 3; i++) {
        finish_call(&fixture, calls[i]);
        free_call(calls[i]);
    }
    struct process *process = process_ref(worker_process(first));
    worker_kill(first);
    run_to_end(&fixture.base, process);
    process_unref(process);
    turn_for_ms(&fixture.base, 5);
    assert_null(worker_process(first));
    assert_ptr_equal(worker_pool_pick(pool), second); /* it is warm */
    worker_pool_free(pool);
    worker_pool_free(NULL);
}

static void makes_single_ones(void **state)
{
    (void)state;
    struct worker_pool *pool = make_pool(1);
    struct worker *single = worker_pool_single(pool);
    assert_ptr_not_equal(single, worker_pool_pick(pool));
    free_call(run_call(&fixture, single, "echo", "{}", WORKER_ANSWERED));
    worker_retire(single);
    worker_pool_free(pool);
}

static void count(const struct worker *worker, void *ctx)
{
    (void)worker;
    ++*(size_t *)ctx;
}

static void retired_ones_are_not_shown(void **state)
{
    (void)state;
    struct worker_pool *pool = make_pool(3);
    size_t shown = 0;
    worker_retire(worker_pool_single(pool));
    workers_each(fixture.workers, count, &shown);
    assert_int_equal(shown, 1);
    worker_pool_free(pool);
    shown = 0;
    workers_each(fixture.workers, count, &shown);
    assert_int_equal(shown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKER_TEST(prefers_the_idle_then_grows_then_shares),
        WORKER_TEST(makes_single_ones),
        WORKER_TEST(retired_ones_are_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
