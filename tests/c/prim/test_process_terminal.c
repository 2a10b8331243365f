/* What the process table does with programs on a terminal: limits, what is kept of their output, hanging up, the end.
 */
#include "pty_fixture.h"

static void living_ones_are_limited_apart(void **state)
{
    (void)state;
    struct fixture small;
    struct screen *two[2], *none;
    struct err err = {0};
    fixture_open(&small, 2);
    struct process_spec spec = terminal_spec(&small, "sleep 83"), piped = spec_of(&small, "sleep 84");
    for (int i = 0; i < 2; i++)
        two[i] = open_on(&small, &spec);
    none = screen_new(&small);
    assert_null(try_on(&small, none, &spec, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_TERMINALS);
    assert_int_equal(none->dropped, 0);
    for (int i = 0; i < 2; i++)
        process_unref(start(&small, &piped));
    assert_null(process_start(small.table, &piped, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_PROCESSES);
    assert_int_equal(process_table_living(small.table), 2);
    assert_int_equal(process_table_living_terminals(small.table), 2);
    process_hang_up(two[0]->process);
    run_to_end(&small, two[0]->process);
    assert_int_equal(process_table_living_terminals(small.table), 1);
    close_screen(two[0]);
    two[0] = open_on(&small, &spec);
    for (int i = 0; i < 2; i++) { /* the table goes with both alive: it kills them */
        loop_fd_free(two[i]->watch);
        two[i]->watch = NULL;
        process_unref(two[i]->process);
        two[i]->process = NULL;
        close(two[i]->master);
    }
    fixture_close(&small);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(two[i]->dropped, 1);
        assert_int_equal(two[i]->reaped, 0);
    }
}

/* --- what is kept of ended ones */

static void ended_output_is_counted_and_given_up(void **state)
{
    (void)state;
    struct process_limits limits = {.living_max = 8,
                                    .terminals_max = 8,
                                    .ended_processes_max = 3,
                                    .ended_shells_max = 8,
                                    .ended_output_max_bytes = 1000};
    struct err err;
    struct screen *five[5];
    struct process_exit exit;
    process_table_free(fixture.table); /* of two, each would reap the other's */
    fixture.table = process_table_new(fixture.loop, &limits, environ, &err);
    assert_non_null(fixture.table);
    const unsigned released[5][5] = {{0}, {1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1}};
    const unsigned dropped[5][5] = {{0}, {0}, {0}, {1}, {1, 1}};
    for (int i = 0; i < 5; i++) {
        five[i] = run_screen("printf '%600s' x", &exit);
        assert_int_equal(five[i]->len, 600);
        for (int j = 0; j <= i; j++) {
            assert_int_equal(five[j]->released, released[i][j]);
            assert_int_equal(five[j]->dropped, dropped[i][j]);
            assert_int_equal(process_find(fixture.table, process_id(five[j]->process)) == NULL, dropped[i][j]);
        }
    }
    process_table_free(fixture.table);
    fixture.table = NULL;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(five[i]->reaped, 1);
        assert_int_equal(five[i]->released, i < 4);
        assert_int_equal(five[i]->dropped, 1);
        close_screen(five[i]);
    }
}

static void nothing_of_it_is_in_the_tables_rings(void **state)
{
    (void)state;
    struct process_reader reader = {0};
    bool told = false;
    struct screen *screen = open_screen("echo it; read line");
    wait_for(screen, "it\r\n");
    process_reader_attach(screen->process, &reader, set_true, &told);
    type(screen, "\n");
    run_to_end(&fixture, screen->process);
    turn_for_ms(&fixture, 1);
    assert_true(told);
    assert_true(process_stream_closed(screen->process, PROCESS_STDOUT));
    assert_int_equal(process_ring(screen->process, PROCESS_STDOUT)->end, 0);
    assert_int_equal(process_exit_end(screen->process, PROCESS_STDOUT), 0);
    assert_int_equal(process_stdin(screen->process), PROCESS_STDIN_NOT_KEPT);
    expect_output(screen->process, PROCESS_STDOUT, "");
    process_reader_detach(&reader);
    close_screen(screen);
}

/* --- hanging up */

static void expect_nothing_lives(struct process *process)
{
    struct err err;
    turn_for_ms(&fixture, 200);
    assert_int_equal(process_signal(process, SIGCONT, true, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
}

static void a_hang_up_ends_a_shell_and_its_jobs(void **state)
{
    (void)state;
    struct screen *screen = open_shell();
    type(screen, "sleep 85 &\n");
    wait_for_prompt(screen);
    type(screen, "sh -c 'echo ready; exec sleep 86'\n");
    wait_for(screen, "\r\nready");
    type(screen, "\x1a");
    wait_for(screen, "Stopped");
    wait_for_prompt(screen);
    process_hang_up(screen->process);
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGHUP);
    expect_nothing_lives(screen->process);
    close_screen(screen);
}

/* A time-out is SIGTERM, which an interactive shell ignores; a hang-up while it is being stopped still is one. */
static void a_hang_up_comes_on_top_of_a_stop(void **state)
{
    (void)state;
    struct screen *screen = open_shell();
    process_stop(screen->process);
    turn_for_ms(&fixture, 300);
    assert_int_equal(process_state(screen->process), PROCESS_RUNNING);
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGHUP);
    close_screen(screen);
}

static void a_hang_up_reaches_who_is_stopped(void **state)
{
    (void)state;
    struct screen *screen = open_screen("echo ready; kill -STOP $$; sleep 87");
    wait_for(screen, "ready\r\n");
    turn_for_ms(&fixture, 100);
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGHUP);
    close_screen(screen);
}

static void who_ignores_a_hang_up_is_killed(void **state)
{
    (void)state;
    struct screen *screen = open_screen("trap '' HUP; echo ready; while :; do sleep 1; done");
    wait_for(screen, "ready\r\n");
    uint64_t before_ns = loop_clock_ns();
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGKILL);
    assert_true(loop_clock_ns() - before_ns > 1900u * 1000 * 1000);
    close_screen(screen);
}

/* The interactive shell would overlook the hang-up if SIGTERM came with it: ten times, as it does so now and then. */
static void the_end_of_all_hangs_up_on_every_shell(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    struct screen *shells[COUNT];
    bool done = false;
    for (int i = 0; i < COUNT; i++)
        shells[i] = open_shell();
    process_table_end_all(fixture.table, 120 * 1000, set_true, &done);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(run_to_end(&fixture, shells[i]->process).signal, SIGHUP);
        close_screen(shells[i]);
    }
    while (!done)
        loop_turn(fixture.loop, true);
}

static void who_ignores_that_gets_the_other_signal(void **state)
{
    (void)state;
    bool done = false;
    struct screen *screen = open_screen("trap '' HUP; trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done");
    wait_for(screen, "ready\r\n");
    process_table_end_all(fixture.table, 2000, set_true, &done);
    assert_int_equal(run_to_end(&fixture, screen->process).exit_code, 9);
    while (!done)
        loop_turn(fixture.loop, true);
    close_screen(screen);
}

/* What the table waits for is the last byte, not only the program. */
static void the_end_of_all_waits_for_the_last_byte(void **state)
{
    (void)state;
    bool done = false;
    struct screen *screen = open_screen("sleep 88");
    loop_fd_free(screen->watch);
    screen->watch = NULL;
    screen->reaped = 10; /* so that nobody says yet that it was read */
    process_table_end_all(fixture.table, 60 * 1000, set_true, &done);
    while (process_state(screen->process) != PROCESS_EXITED)
        loop_turn(fixture.loop, true);
    turn_for_ms(&fixture, 300);
    assert_false(done);
    process_terminal_drained(screen->process);
    while (!done)
        loop_turn(fixture.loop, true);
    assert_int_equal(process_state(screen->process), PROCESS_DRAINED);
    close_screen(screen);
}

static void the_table_goes_while_the_last_byte_is_awaited(void **state)
{
    (void)state;
    struct screen *screen = open_screen("exit 3");
    loop_fd_free(screen->watch);
    screen->watch = NULL;
    screen->reaped = 10;
    while (process_state(screen->process) != PROCESS_EXITED)
        loop_turn(fixture.loop, true);
    process_table_free(fixture.table);
    fixture.table = NULL;
    assert_int_equal(screen->reaped, 11);
    assert_int_equal(screen->dropped, 1);
    close_screen(screen);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PTY_TEST(living_ones_are_limited_apart),          PTY_TEST(ended_output_is_counted_and_given_up),
        PTY_TEST(nothing_of_it_is_in_the_tables_rings),   PTY_TEST(a_hang_up_ends_a_shell_and_its_jobs),
        PTY_TEST(a_hang_up_comes_on_top_of_a_stop),       PTY_TEST(a_hang_up_reaches_who_is_stopped),
        PTY_TEST(who_ignores_a_hang_up_is_killed),        PTY_TEST(the_end_of_all_hangs_up_on_every_shell),
        PTY_TEST(who_ignores_that_gets_the_other_signal), PTY_TEST(the_table_goes_while_the_last_byte_is_awaited),
        PTY_TEST(the_end_of_all_waits_for_the_last_byte),
    };
    return RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv);
}
