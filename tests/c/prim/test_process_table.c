/* prim/process_table: limits, what is kept of ended ones, and orphans. */
#include "process_fixture.h"

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

static void the_living_are_limited(void **state)
{
    (void)state;
    struct fixture small;
    struct err err = {0};
    fixture_open(&small, 2);
    struct process_spec spec = spec_of(&small, "sleep 74");
    struct process *first = start(&small, &spec), *second = start(&small, &spec);
    assert_null(process_start(small.table, &spec, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_PROCESSES);
    process_stop(first);
    run_to_end(&small, first);
    process_unref(first);
    process_unref(start(&small, &spec));
    process_unref(second);
    fixture_close(&small); /* kills what still lives */
}

static void the_newest_ended_ones_are_kept(void **state)
{
    (void)state;
    char first_shell[32], first_process[32];
    for (int i = 0; i < 65; i++) {
        struct process_spec spec = spec_of(&fixture, "exit 0");
        struct process *process = start(&fixture, &spec);
        run_to_end(&fixture, process);
        if (i == 0)
            strcpy(first_shell, process_id(process));
        spec.kind = PROCESS_PROCESS;
        struct process *other = start(&fixture, &spec);
        run_to_end(&fixture, other);
        if (i == 0)
            strcpy(first_process, process_id(other));
        assert_non_null(process_find(fixture.table, process_id(process)));
        process_unref(process);
        process_unref(other);
    }
    assert_null(process_find(fixture.table, first_shell));
    assert_non_null(process_find(fixture.table, first_process));
    struct process_spec spec = spec_of(&fixture, "exit 0");
    spec.kind = PROCESS_HELPER;
    struct process *helper = start(&fixture, &spec);
    run_to_end(&fixture, helper);
    assert_null(process_find(fixture.table, process_id(helper)));
    process_unref(helper);
}

static void ended_output_is_limited(void **state)
{
    (void)state;
    struct process *processes[20];
    struct process_spec spec = spec_of(&fixture, "head -c 5000000 /dev/zero");
    spec.capture_bytes = 0;
    size_t kept = 0;
    for (int i = 0; i < 20; i++) {
        processes[i] = start(&fixture, &spec);
        run_to_end(&fixture, processes[i]);
    }
    for (int i = 0; i < 20; i++) {
        const struct ring *ring = process_ring(processes[i], PROCESS_STDOUT);
        assert_int_equal(ring->end, 5000000);
        assert_int_equal(ring->end - ring->start, i < 4 ? 0 : RING_MAX_BYTES);
        kept += ring->cap;
        process_unref(processes[i]);
    }
    assert_true(kept <= 64 << 20);
}

static void a_dropped_entry_is_whole_for_who_holds_it(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "echo kept; sleep 0.2 & exit 0");
    spec.kind = PROCESS_HELPER;
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    const char *bytes = NULL;
    assert_null(process_find(fixture.table, process_id(process)));
    assert_int_equal(ring_peek(process_ring(process, PROCESS_STDOUT), 0, &bytes), 5);
    assert_memory_equal(bytes, "kept\n", 5);
    process_unref(process);
    turn_for_ms(&fixture, 300);
}

/* The fixture asserts that no descriptor is left when the table is freed. */
static void a_dropped_entry_with_open_pipes_goes_with_the_table(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "sleep 20 &");
    spec.kind = PROCESS_HELPER;
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    assert_false(process_stream_closed(process, PROCESS_STDOUT));
    process_unref(process);
}

static void an_ignored_signal_loses_no_exit_code(void **state)
{
    (void)state;
    struct process_limits limits = {.living_max = 8, .ended_shells_max = 8};
    struct err err;
    process_table_free(fixture.table); /* of two, each would reap the other's */
    signal(SIGCHLD, SIG_IGN);          /* as whoever starts the server may */
    fixture.table = process_table_new(fixture.loop, &limits, environ, &err);
    assert_non_null(fixture.table);
    struct process_spec spec = spec_of(&fixture, "exit 7");
    struct process *process = start(&fixture, &spec);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 7);
    process_unref(process);
}

static void orphans_are_reaped_and_no_code_is_stolen(void **state)
{
    (void)state;
    enum { COUNT = 60 };
    struct process *processes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char command[96];
        snprintf(command, sizeof(command), "(setsid sleep 0.1 &) ; (sleep 0.05 &) ; exit %d", i);
        struct process_spec spec = spec_of(&fixture, command);
        processes[i] = start(&fixture, &spec);
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(run_to_end(&fixture, processes[i]).exit_code, i);
        process_unref(processes[i]);
    }
    turn_for_ms(&fixture, 600);
    assert_int_equal(count_zombies(), 0);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(the_living_are_limited),
        PROCESS_TEST(the_newest_ended_ones_are_kept),
        PROCESS_TEST(ended_output_is_limited),
        PROCESS_TEST(an_ignored_signal_loses_no_exit_code),
        PROCESS_TEST(a_dropped_entry_is_whole_for_who_holds_it),
        PROCESS_TEST(a_dropped_entry_with_open_pipes_goes_with_the_table),
        PROCESS_TEST(orphans_are_reaped_and_no_code_is_stolen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
