/* prim/process_part: parts by offset, of a program's output: gaps, limits, and characters that must not be cut. */
#include "prim/process_part.h"

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

static struct process *run(const char *command)
{
    struct process_spec spec = spec_of(&fixture, command);
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    return process;
}

/* One that prints and then waits; gone through until all of it is there. */
static struct process *begin(const char *command, uint64_t bytes)
{
    struct process_spec spec = spec_of(&fixture, command);
    struct process *process = start(&fixture, &spec);
    while (process_ring(process, PROCESS_STDOUT)->end < bytes)
        loop_turn(fixture.loop, true);
    return process;
}

static void end(struct process *process)
{
    process_stop(process);
    run_to_end(&fixture, process);
    process_unref(process);
}

static void expect_part(const struct process *process, uint64_t offset, size_t bytes_max, bool text,
                        struct process_part expected)
{
    struct process_part part = process_part_find(process, PROCESS_STDOUT, offset, bytes_max, text);
    assert_int_equal(part.gap_from, expected.gap_from);
    assert_int_equal(part.gap_to, expected.gap_to);
    assert_int_equal(part.from, expected.from);
    assert_int_equal(part.to, expected.to);
    assert_int_equal(part.last, expected.last);
}

/* Without a gap. */
static void expect(const struct process *process, uint64_t offset, size_t bytes_max, bool text, uint64_t to, bool last)
{
    expect_part(process, offset, bytes_max, text, (struct process_part){offset, offset, offset, to, last});
}

static void parts_end_at_the_limit_and_the_end(void **state)
{
    (void)state;
    struct process *process = run("printf 0123456789");
    expect(process, 0, 4, true, 4, false);
    expect(process, 4, 4, true, 8, false);
    expect(process, 8, 4, true, 10, true);
    expect(process, 6, 4, false, 10, true);
    expect(process, 10, 4, true, 10, true);
    expect(process, 11, 4, true, 11, true);
    assert_int_equal(process_part_end(process, PROCESS_STDOUT), 10);
    assert_int_equal(process_part_end(process, PROCESS_STDERR), 0);
    process_unref(process);
    process = begin("printf 0123456789; sleep 1000", 10);
    expect(process, 8, 4, true, 10, false);
    expect(process, 10, 4, true, 10, false);
    end(process);
}

/* a, then two characters of three and four bytes: 0, 1, 4, 8 are borders. */
static void characters_are_not_cut(void **state)
{
    (void)state;
    struct process *process = run("printf 'a\\344\\275\\240\\360\\237\\230\\200'");
    expect(process, 0, 3, true, 1, false);
    expect(process, 0, 3, false, 3, false);
    expect(process, 1, 1, true, 4, false); /* longer than the limit: whole all the same */
    expect(process, 4, 2, true, 8, true);
    expect(process, 0, 7, true, 4, false);
    expect(process, 2, 1, true, 3, false); /* asked for in its middle: bytes, each for itself */
    process_unref(process);
    process = run("printf 'a\\344\\275'"); /* cut by the program: nothing else can follow */
    expect(process, 0, 100, true, 3, true);
    expect(process, 1, 100, true, 3, true);
    expect(process, 0, 2, true, 1, false);
    process_unref(process);
    process = begin("printf 'a\\344\\275'; sleep 1000", 3); /* the rest may come */
    expect(process, 0, 100, true, 1, false);
    expect(process, 1, 100, true, 1, false);
    expect(process, 1, 100, false, 3, false);
    end(process);
    process = begin("printf 'a\\344\\275'; exec >&-; sleep 1000", 3); /* it cannot */
    while (!process_stream_closed(process, PROCESS_STDOUT))
        loop_turn(fixture.loop, true);
    expect(process, 1, 100, true, 3, true);
    end(process);
}

static void tails_begin_with_a_whole_character(void **state)
{
    (void)state;
    struct process *process = run("printf 'a\\344\\275\\240b'");
    const uint64_t text[] = {5, 4, 4, 4, 1, 0, 0}, bytes[] = {5, 4, 3, 2, 1, 0, 0};
    for (uint64_t tail = 0; tail < 7; tail++) {
        assert_int_equal(process_part_tail(process, PROCESS_STDOUT, tail, true), text[tail]);
        assert_int_equal(process_part_tail(process, PROCESS_STDOUT, tail, false), bytes[tail]);
    }
    assert_int_equal(process_part_tail(process, PROCESS_STDERR, 5, true), 0);
    process_unref(process);
    process = begin("printf 'a\\344\\275'; sleep 1000", 3); /* what is coming will be whole */
    assert_int_equal(process_part_tail(process, PROCESS_STDOUT, 0, true), 1);
    assert_int_equal(process_part_tail(process, PROCESS_STDOUT, 0, false), 3);
    end(process);
}

static void what_is_no_longer_kept_is_a_gap(void **state)
{
    (void)state;
    enum { COUNT = 2000000, LOST = COUNT * 3 - RING_MAX_BYTES }; /* LOST is in the middle of a character: + 1 */
    struct process *process = run("yes '\344\275\240' | head -n 2000000 | tr -d '\\n'");
    assert_int_equal(process_ring(process, PROCESS_STDOUT)->start, LOST);
    assert_int_equal(LOST % 3, 2);
    expect_part(process, 0, 6, true, (struct process_part){0, LOST + 1, LOST + 1, LOST + 7, false});
    expect_part(process, 5, 6, false, (struct process_part){5, LOST, LOST, LOST + 6, false});
    expect(process, LOST + 1, 6, true, LOST + 7, false);
    assert_int_equal(process_part_tail(process, PROCESS_STDOUT, 5000000, true), 1000000);
    process_unref(process);
}

static void output_that_was_given_up_is_a_gap(void **state)
{
    (void)state;
    struct process_limits limits = {
        .living_max = 8, .ended_processes_max = 8, .ended_shells_max = 8, .ended_output_max_bytes = 100};
    struct err err;
    process_table_free(fixture.table);
    fixture.table = process_table_new(fixture.loop, &limits, environ, &err);
    struct process *process = run("printf 0123456789");
    expect_part(process, 2, 100, true, (struct process_part){2, 10, 10, 10, true});
    expect(process, 10, 100, true, 10, true);
    assert_int_equal(process_part_tail(process, PROCESS_STDOUT, 3, true), 7);
    process_unref(process);
}

/* What a grandchild prints later is none of the program's, and takes no place from what it printed itself. */
static void a_grandchild_changes_nothing(void **state)
{
    (void)state;
    struct process *process =
        run("printf mine; (sleep 0.1; head -c 5000000 /dev/zero; exec >&-; touch /tmp/test-part-wrote) &");
    unlink("/tmp/test-part-wrote");
    expect(process, 0, 100, true, 4, true);
    while (access("/tmp/test-part-wrote", F_OK) != 0 || !process_stream_closed(process, PROCESS_STDOUT))
        loop_turn(fixture.loop, true);
    expect(process, 0, 100, true, 4, true);
    assert_int_equal(process_ring(process, PROCESS_STDOUT)->end, 4);
    unlink("/tmp/test-part-wrote");
    process_unref(process);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(parts_end_at_the_limit_and_the_end), PROCESS_TEST(characters_are_not_cut),
        PROCESS_TEST(tails_begin_with_a_whole_character), PROCESS_TEST(what_is_no_longer_kept_is_a_gap),
        PROCESS_TEST(output_that_was_given_up_is_a_gap),  PROCESS_TEST(a_grandchild_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
