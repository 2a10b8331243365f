/* prim/process_input: standard input that is kept open, and those who write to it in turn. */
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

struct test_write {
    struct process_write write;
    bool over;
};

static struct process *start_kept(const char *command, const char *stdin_bytes)
{
    struct process_spec spec = spec_of(&fixture, command);
    spec.keep_stdin = true;
    spec.stdin_bytes = stdin_bytes;
    spec.stdin_len = stdin_bytes != NULL ? strlen(stdin_bytes) : 0;
    return start(&fixture, &spec);
}

static void write_bytes(struct process *process, struct test_write *test, const char *bytes, size_t len, bool eof)
{
    *test = (struct test_write){.write = {.bytes = bytes, .len = len, .eof = eof, .ctx = &test->over}};
    process_write_start(process, &test->write, set_true);
}

static void finish(struct test_write *test)
{
    while (test->write.state == PROCESS_WRITE_WAITING || !test->over)
        loop_turn(fixture.loop, true);
}

static char *zeros(size_t len)
{
    char *bytes = calloc(1, len);
    assert_non_null(bytes);
    return bytes;
}

static void writes_follow_what_was_given_at_the_start(void **state)
{
    (void)state;
    struct process *process = start_kept("cat", "a");
    struct test_write test;
    assert_int_equal(process_stdin(process), PROCESS_STDIN_OPEN);
    write_bytes(process, &test, "b", 1, false);
    assert_int_equal(test.write.state, PROCESS_WRITE_DONE);
    assert_int_equal(test.write.written, 1);
    turn_for_ms(&fixture, 50);
    assert_false(test.over); /* done at once: nobody is called */
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    write_bytes(process, &test, "", 0, false);
    assert_int_equal(test.write.state, PROCESS_WRITE_DONE);
    write_bytes(process, &test, "c", 1, true);
    assert_int_equal(test.write.state, PROCESS_WRITE_DONE);
    assert_int_equal(process_stdin(process), PROCESS_STDIN_ENDED);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    expect_output(process, PROCESS_STDOUT, "abc");
    write_bytes(process, &test, "d", 1, false);
    assert_int_equal(test.write.state, PROCESS_WRITE_FAILED);
    process_unref(process);
}

static void what_is_not_kept_takes_nothing(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "cat");
    spec.stdin_bytes = "abc";
    spec.stdin_len = 3;
    struct process *process = start(&fixture, &spec);
    struct test_write test;
    assert_int_equal(process_stdin(process), PROCESS_STDIN_NOT_KEPT);
    write_bytes(process, &test, "b", 1, false);
    assert_int_equal(test.write.state, PROCESS_WRITE_FAILED);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "abc");
    assert_int_equal(process_stdin(process), PROCESS_STDIN_NOT_KEPT);
    process_unref(process);
}

/* Three at once, each more than a pipe holds: they come one after another. */
static void writers_take_turns(void **state)
{
    (void)state;
    enum { LEN = 300000 };
    struct process *process = start_kept("sleep 0.2; fold -w1 | uniq -c | tr -s ' \\n' ' '", NULL);
    char *bytes[3];
    struct test_write tests[3];
    for (int i = 0; i < 3; i++) {
        bytes[i] = malloc(LEN);
        memset(bytes[i], 'a' + i, LEN);
        write_bytes(process, &tests[i], bytes[i], LEN, i == 2);
        assert_int_equal(tests[i].write.state, PROCESS_WRITE_WAITING);
    }
    assert_in_range(tests[0].write.written, 1, LEN - 1);
    assert_int_equal(tests[1].write.written, 0);
    for (int i = 0; i < 3; i++) {
        finish(&tests[i]);
        assert_int_equal(tests[i].write.state, PROCESS_WRITE_DONE);
        assert_int_equal(tests[i].write.written, LEN);
        free(bytes[i]);
    }
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    expect_output(process, PROCESS_STDOUT, " 300000 a 300000 b 300000 c ");
    process_unref(process);
}

static void one_that_leaves_lets_the_next_go_on(void **state)
{
    (void)state;
    enum { LEN = 200000 };
    struct process *process = start_kept("sleep 0.2; wc -c", NULL);
    char *bytes = zeros(LEN);
    struct test_write first, second, third;
    write_bytes(process, &first, bytes, LEN, true);
    write_bytes(process, &second, bytes, LEN, false);
    write_bytes(process, &third, "x", 1, true);
    size_t written = first.write.written;
    process_write_stop(&second.write); /* before its turn */
    process_write_stop(&first.write);  /* in the middle; its eof goes with it */
    process_write_stop(&first.write);
    finish(&third);
    assert_int_equal(third.write.state, PROCESS_WRITE_DONE);
    assert_false(first.over);
    assert_false(second.over);
    run_to_end(&fixture, process);
    char expected[32];
    snprintf(expected, sizeof(expected), "%zu\n", written + 1);
    expect_output(process, PROCESS_STDOUT, expected);
    free(bytes);
    process_unref(process);
}

static void an_eof_fails_those_behind_it(void **state)
{
    (void)state;
    enum { LEN = 200000 };
    struct process *process = start_kept("sleep 0.1; wc -c", NULL);
    char *bytes = zeros(LEN);
    struct test_write first, second;
    write_bytes(process, &first, bytes, LEN, true);
    write_bytes(process, &second, bytes, LEN, false);
    finish(&first);
    finish(&second);
    assert_int_equal(first.write.state, PROCESS_WRITE_DONE);
    assert_int_equal(second.write.state, PROCESS_WRITE_FAILED);
    assert_int_equal(second.write.written, 0);
    assert_int_equal(process_stdin(process), PROCESS_STDIN_ENDED);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "200000\n");
    free(bytes);
    process_unref(process);
}

/* The program closes its end while it runs, or ends: in mid-write, and before. */
static void a_broken_pipe_is_told(void **state)
{
    (void)state;
    enum { LEN = 1 << 20 };
    char *bytes = zeros(LEN);
    const char *const commands[] = {"head -c 100000 >/dev/null; exec <&-; sleep 1000", "head -c 100000 >/dev/null",
                                    "sleep 0.1; kill -9 $$"};
    for (int i = 0; i < 3; i++) {
        struct process *process = start_kept(commands[i], NULL);
        struct test_write first, second;
        write_bytes(process, &first, bytes, LEN, false);
        write_bytes(process, &second, bytes, LEN, false);
        finish(&first);
        finish(&second);
        assert_int_equal(first.write.state, PROCESS_WRITE_FAILED);
        assert_int_equal(second.write.state, PROCESS_WRITE_FAILED);
        assert_in_range(first.write.written, i < 2 ? 100000 : 4096, LEN - 1);
        assert_int_equal(second.write.written, 0);
        assert_int_equal(process_stdin(process), PROCESS_STDIN_UNREAD);
        if (i == 0) {
            assert_int_equal(process_state(process), PROCESS_RUNNING);
            process_stop(process);
        }
        run_to_end(&fixture, process);
        process_unref(process);
    }
    free(bytes);
}

/* What was given at the start is more than the pipe holds, and nobody reads it. */
static void the_rest_of_the_start_goes_first(void **state)
{
    (void)state;
    enum { LEN = 200000 };
    char *bytes = zeros(LEN + 1);
    memset(bytes, 'a', LEN);
    struct process *process = start_kept("sleep 0.1; fold -w1 | uniq -c | tr -s ' \\n' ' '", bytes);
    struct test_write test;
    write_bytes(process, &test, "bb", 2, true);
    assert_int_equal(test.write.state, PROCESS_WRITE_WAITING);
    finish(&test);
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, " 200000 a 2 b ");
    process_unref(process);
    process = start_kept("sleep 1000", bytes); /* freed with the entry */
    process_stop(process);
    run_to_end(&fixture, process);
    process_unref(process);
    free(bytes);
}

/* A writer that is told holds the entry until then, even where nobody else does. */
static void the_table_may_go_while_somebody_writes(void **state)
{
    (void)state;
    enum { LEN = 200000 };
    struct process_spec spec = spec_of(&fixture, "sleep 0.1");
    spec.keep_stdin = true;
    spec.kind = PROCESS_HELPER; /* dropped at its end */
    struct process *process = start(&fixture, &spec);
    char *bytes = zeros(LEN);
    struct test_write test;
    write_bytes(process, &test, bytes, LEN, false);
    process_unref(process);
    finish(&test);
    assert_int_equal(test.write.state, PROCESS_WRITE_FAILED);
    assert_null(test.write.process);
    process_write_stop(&test.write);
    free(bytes);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(writes_follow_what_was_given_at_the_start),
        PROCESS_TEST(what_is_not_kept_takes_nothing),
        PROCESS_TEST(writers_take_turns),
        PROCESS_TEST(one_that_leaves_lets_the_next_go_on),
        PROCESS_TEST(an_eof_fails_those_behind_it),
        PROCESS_TEST(a_broken_pipe_is_told),
        PROCESS_TEST(the_rest_of_the_start_goes_first),
        PROCESS_TEST(the_table_may_go_while_somebody_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
