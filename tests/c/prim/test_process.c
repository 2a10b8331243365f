/* prim/process: exits, forms of commands, standard input, and completion. */
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

static uint64_t now_ms(void)
{
    return loop_clock_ns() / 1000000;
}

static struct process_exit exit_of(const char *command)
{
    struct process_spec spec = spec_of(&fixture, command);
    struct process *process = start(&fixture, &spec);
    struct process_exit exit = run_to_end(&fixture, process);
    process_unref(process);
    return exit;
}

static void tells_exit_codes_and_signals(void **state)
{
    (void)state;
    assert_int_equal(exit_of("exit 0").exit_code, 0);
    assert_int_equal(exit_of("exit 259").exit_code, 3);
    assert_int_equal(exit_of("nosuchcmd_x").exit_code, 127);
    assert_int_equal(exit_of("/etc/passwd").exit_code, 126);
    struct process_exit killed = exit_of("kill -9 $$");
    assert_int_equal(killed.exit_code, 137);
    assert_int_equal(killed.signal, SIGKILL);
    assert_int_equal(exit_of("kill -SEGV $$").exit_code, 139);
    assert_false(killed.timed_out);
}

static void shows_itself(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "echo $ABX_PROCESS_ID; pwd; sleep 0.05");
    spec.tag = "mine";
    struct process *process = start(&fixture, &spec);
    char expected[64], at[32], pid[16];
    struct process_exit exit;
    assert_int_equal(process_exit(process, &exit), -1);
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    assert_int_equal(process_table_living(fixture.table), 1);
    assert_ptr_equal(process_find(fixture.table, process_id(process)), process);
    snprintf(pid, sizeof(pid), "%d", (int)process_pid(process));
    assert_ptr_equal(process_find(fixture.table, pid), process);
    assert_null(process_find(fixture.table, "1"));
    assert_null(process_find(fixture.table, "p-"));
    assert_string_equal(process_tag(process), "mine");
    assert_int_equal(process_kind(process), PROCESS_SHELL);
    process_started_at(process, at);
    assert_int_equal(strlen(at), 24);
    assert_int_equal(at[23], 'Z');
    exit = run_to_end(&fixture, process);
    assert_true(exit.duration_ms >= 50 && exit.duration_ms < 2000);
    snprintf(expected, sizeof(expected), "%s\n/tmp\n", process_id(process));
    expect_output(process, PROCESS_STDOUT, expected);
    assert_int_equal(process_table_living(fixture.table), 0);
    assert_ptr_equal(process_find(fixture.table, process_id(process)), process);
    assert_null(process_find(fixture.table, pid));
    process_unref(process);
}

static void command_forms(void **state)
{
    (void)state;
    expect_run(&fixture, "-x", 127, "");
    expect_run(&fixture, "", 0, "");
    expect_run(&fixture, "yes | head -n1; echo ${PIPESTATUS[0]}", 0, "y\n141\n");
    expect_run(&fixture, "read x </dev/tty; echo rc=$?", 0, "rc=1\n");
    struct process_spec spec = spec_of(&fixture, "echo $X-$LINENO");
    spec.command_prefix = "X=prefix; ";
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "prefix-1\n");
    process_unref(process);
    char *argv[] = {"printf", "%s|", "a b", "$HOME", "", NULL};
    spec = spec_of(&fixture, NULL);
    spec.argv = argv;
    process = start(&fixture, &spec);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    expect_output(process, PROCESS_STDOUT, "a b|$HOME||");
    process_unref(process);
}

static void expect_refused(const struct process_spec *spec, enum err_code code, const char *field)
{
    struct err err = {0};
    assert_null(process_start(fixture.table, spec, &err));
    assert_string_equal(err_code_name(err.code), err_code_name(code));
    assert_string_equal(err.field, field);
    assert_int_equal(process_table_living(fixture.table), 0);
}

static void refuses(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, NULL);
    char *missing[] = {"nosuchcmd_x", NULL}, *folder[] = {"/tmp", NULL};
    spec.argv = missing;
    expect_refused(&spec, ERR_EXECUTABLE_NOT_FOUND, "argv[0]");
    spec.argv = folder;
    expect_refused(&spec, ERR_NOT_EXECUTABLE, "argv[0]");
    spec = spec_of(&fixture, "echo a");
    spec.command = "echo\0x";
    expect_refused(&spec, ERR_INVALID_REQUEST, "command");
    char *big = malloc(300000);
    memset(big, ' ', 300000);
    spec.command = big;
    spec.command_len = 300000;
    expect_refused(&spec, ERR_PAYLOAD_TOO_LARGE, "command");
    big[200000] = '\0';
    struct env_block env;
    env_block_init(&env);
    assert_int_equal(env_block_set(&env, "BIG", big), 0);
    spec = spec_of(&fixture, "true");
    spec.env = &env;
    expect_refused(&spec, ERR_PAYLOAD_TOO_LARGE, "env");
    env_block_deinit(&env);
    free(big);
    expect_run(&fixture, "echo ok", 0, "ok\n");
}

static void stdin_is_what_was_given(void **state)
{
    (void)state;
    expect_run(&fixture, "cat", 0, "");
    struct process_spec spec = spec_of(&fixture, "wc -c");
    spec.stdin_bytes = "abc";
    spec.stdin_len = 3;
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "3\n");
    process_unref(process);

    enum { LEN = 5 << 20 };
    char *big = malloc(LEN);
    memset(big, 'x', LEN);
    spec = spec_of(&fixture, "sleep 0.05; wc -c");
    spec.stdin_bytes = big;
    spec.stdin_len = LEN;
    process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "5242880\n");
    process_unref(process);
    spec.command = "head -c 1; exec <&-; sleep 0.1"; /* leaves the rest unread: no harm */
    spec.command_len = strlen(spec.command);
    process = start(&fixture, &spec);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    expect_output(process, PROCESS_STDOUT, "x");
    process_unref(process);
    free(big);

    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "by fd", 5), 5);
    close(fds[1]);
    spec = spec_of(&fixture, "cat");
    spec.stdin_fd = fds[0];
    process = start(&fixture, &spec);
    close(fds[0]);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "by fd");
    process_unref(process);
}

/* A grandchild keeps the pipes open: everything up to the exit is there, and nothing waits for it. */
static void completion_is_exit_plus_what_is_in_the_pipes(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "seq 1 200000; echo err >&2; { sleep 0.5; echo late; sleep 30; } &");
    spec.capture_bytes = 8 << 20;
    uint64_t before_ms = now_ms();
    struct process *process = start(&fixture, &spec);
    struct process_exit exit = run_to_end(&fixture, process);
    assert_true(now_ms() - before_ms < 3000);
    assert_int_equal(exit.exit_code, 0);
    char *text = captured(process, PROCESS_STDOUT);
    assert_int_equal(strlen(text), 1288895);
    assert_string_equal(text + 1288895 - 7, "200000\n");
    free(text);
    expect_output(process, PROCESS_STDERR, "err\n");
    assert_int_equal(process_exit_end(process, PROCESS_STDOUT), 1288895);
    assert_int_equal(process_ring(process, PROCESS_STDOUT)->end, 1288895);
    assert_false(process_stream_closed(process, PROCESS_STDOUT));
    turn_for_ms(&fixture, 700); /* what comes later is thrown away */
    assert_int_equal(process_ring(process, PROCESS_STDOUT)->end, 1288895);
    assert_int_equal(process_exit_end(process, PROCESS_STDOUT), 1288895);
    struct capture_view view;
    process_captured(process, PROCESS_STDOUT, &view);
    assert_int_equal(view.total_bytes, 1288895);
    struct err err;
    assert_int_equal(process_signal(process, SIGKILL, false, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
    assert_int_equal(process_signal(process, SIGKILL, true, &err), 0);
    for (int i = 0; i < 100 && !process_stream_closed(process, PROCESS_STDOUT); i++)
        turn_for_ms(&fixture, 10);
    assert_true(process_stream_closed(process, PROCESS_STDOUT));
    assert_int_equal(process_signal(process, SIGKILL, true, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
    process_unref(process);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(tells_exit_codes_and_signals),
        PROCESS_TEST(shows_itself),
        PROCESS_TEST(command_forms),
        PROCESS_TEST(refuses),
        PROCESS_TEST(stdin_is_what_was_given),
        PROCESS_TEST(completion_is_exit_plus_what_is_in_the_pipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
