/* prim/process_stop: time-outs, stopping, signals, and the end of all. */
#include "process_fixture.h"
#include "without_cgroups.h"

static struct fixture fixture;

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture, 512);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static uint64_t now_ms(void)
{
    return loop_clock_ns() / 1000000;
}

static void a_time_out_ends_the_tree_and_keeps_the_output(void **state)
{
    (void)state;
    struct process_spec spec =
        spec_of(&fixture, "echo before; setsid sleep 71 & sh -c 'sleep 5; touch /tmp/test-process-late' | cat");
    spec.timeout_ms = 300;
    uint64_t before_ms = now_ms();
    struct process *process = start(&fixture, &spec);
    struct process_exit exit = run_to_end(&fixture, process);
    assert_in_range(now_ms() - before_ms, 290, 1500);
    assert_true(exit.timed_out);
    assert_int_equal(exit.signal, SIGTERM);
    assert_int_equal(exit.exit_code, 143);
    expect_output(process, PROCESS_STDOUT, "before\n");
    struct err err;
    turn_for_ms(&fixture, 200);
    assert_int_equal(process_signal(process, SIGCONT, true, &err), -1); /* nothing of it lives */
    process_unref(process);
}

static void who_ignores_the_time_out_is_killed(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "trap '' TERM; echo x; while :; do sleep 1; done");
    spec.timeout_ms = 100;
    uint64_t before_ms = now_ms();
    struct process *process = start(&fixture, &spec);
    struct process_exit exit = run_to_end(&fixture, process);
    assert_in_range(now_ms() - before_ms, 2050, 5000);
    assert_true(exit.timed_out);
    assert_int_equal(exit.signal, SIGKILL);
    process_unref(process);
}

/* The shell goes on SIGTERM, what it left behind ignores it: SIGKILL comes all the same. */
static void grandchildren_that_ignore_the_time_out_are_killed(void **state)
{
    (void)state;
    struct process_spec spec =
        spec_of(&fixture, "(trap '' TERM; setsid sh -c 'while :; do sleep 0.2; done') & sleep 72");
    spec.timeout_ms = 200;
    uint64_t before_ms = now_ms();
    struct process *process = start(&fixture, &spec);
    struct process_exit exit = run_to_end(&fixture, process);
    assert_true(now_ms() - before_ms < 1500);
    assert_int_equal(exit.signal, SIGTERM);
    struct err err;
    assert_int_equal(process_signal(process, SIGCONT, true, &err), 0);
    turn_for_ms(&fixture, 2400);
    assert_int_equal(process_signal(process, SIGCONT, true, &err), -1);
    process_unref(process);
}

static void stop_reaches_stopped_ones(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "kill -STOP $$; sleep 73");
    struct process *process = start(&fixture, &spec);
    turn_for_ms(&fixture, 100);
    uint64_t before_ms = now_ms();
    process_stop(process);
    process_stop(process);
    assert_int_equal(run_to_end(&fixture, process).signal, SIGTERM);
    assert_true(now_ms() - before_ms < 1000);
    process_unref(process);
}

static void signals_go_to_the_child_alone(void **state)
{
    (void)state;
    struct err err;
    struct process_spec spec =
        spec_of(&fixture, "trap 'echo got; kill $!; exit 5' USR1; sleep 20 & echo ready >&2; wait; echo no");
    struct process *process = start(&fixture, &spec);
    while (process_ring(process, PROCESS_STDERR)->end == 0)
        loop_turn(fixture.loop, true);
    assert_int_equal(process_signal(process, SIGUSR1, false, &err), 0);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 5);
    expect_output(process, PROCESS_STDOUT, "got\n");
    process_unref(process);
}

/* `yes` must leave the loop free for timers. */
static void endless_output_starves_nobody(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "yes");
    spec.timeout_ms = 2000;
    uint64_t before_ms = now_ms();
    struct process *process = start(&fixture, &spec);
    for (int i = 0; i < 10; i++)
        turn_for_ms(&fixture, 20);
    if (now_ms() - before_ms < 2000) /* else the machine stalled */
        assert_int_equal(process_state(process), PROCESS_RUNNING);
    assert_true(run_to_end(&fixture, process).timed_out);
    assert_true(now_ms() - before_ms + 10 >= 2000);
    process_unref(process);
}

static void the_end_reaches_all(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "setsid sleep 75 & exit 0");
    struct process *ended = start(&fixture, &spec);
    run_to_end(&fixture, ended);
    spec = spec_of(&fixture, "sleep 76");
    struct process *soft = start(&fixture, &spec);
    spec = spec_of(&fixture, "trap '' TERM; echo; while :; do sleep 0.1; done");
    struct process *hard = start(&fixture, &spec);
    while (process_output_ahead(hard, PROCESS_STDOUT) == 0) /* it hears SIGTERM still */
        turn_for_ms(&fixture, 20);
    bool done = false;
    struct err err = {0};
    uint64_t before_ms = now_ms();
    process_table_end_all(fixture.table, 500, set_true, &done);
    assert_null(process_start(fixture.table, &spec, &err));
    assert_int_equal(err.code, ERR_SHUTTING_DOWN);
    while (!done)
        loop_turn(fixture.loop, true);
    assert_in_range(now_ms() - before_ms, 480, 3000);
    assert_int_equal(run_to_end(&fixture, soft).signal, SIGTERM);
    assert_int_equal(run_to_end(&fixture, hard).signal, SIGKILL);
    assert_int_equal(process_signal(ended, SIGCONT, true, &err), -1);
    process_unref(ended);
    process_unref(soft);
    process_unref(hard);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(a_time_out_ends_the_tree_and_keeps_the_output),
        PROCESS_TEST(who_ignores_the_time_out_is_killed),
        PROCESS_TEST(grandchildren_that_ignore_the_time_out_are_killed),
        PROCESS_TEST(stop_reaches_stopped_ones),
        PROCESS_TEST(signals_go_to_the_child_alone),
        PROCESS_TEST(endless_output_starves_nobody),
        PROCESS_TEST(the_end_reaches_all),
    };
    return RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv);
}
