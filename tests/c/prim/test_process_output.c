/* prim/process_output: readers, their pace, and output that nobody reads. */
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

struct test_reader {
    struct process_reader reader;
    bool takes;
    uint64_t gap_bytes, seen_bytes;
    int calls;
};

static void on_more(void *ctx)
{
    struct test_reader *test = ctx;
    const struct ring *ring = process_ring(test->reader.process, PROCESS_STDOUT);
    test->calls++;
    if (!test->takes)
        return;
    uint64_t *offset = &test->reader.offset[PROCESS_STDOUT];
    if (*offset < ring->start) {
        test->gap_bytes += ring->start - *offset;
        *offset = ring->start;
    }
    test->seen_bytes += ring->end - *offset;
    *offset = ring->end;
    process_reader_took(&test->reader);
}

static void the_fastest_reader_paces_and_meets_no_gap(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "head -c 40000000 /dev/zero");
    spec.capture_bytes = 0;
    spec.pace = true;
    struct process *process = start(&fixture, &spec);
    turn_for_ms(&fixture, 300); /* held: nobody reads yet */
    const struct ring *ring = process_ring(process, PROCESS_STDOUT);
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    assert_in_range(ring->end, 1 << 20, 2 << 20);
    assert_int_equal(ring->start, 0);

    struct test_reader slow = {.takes = false}, fast = {.takes = false};
    process_reader_attach(process, &slow.reader, on_more, &slow);
    process_reader_attach(process, &fast.reader, on_more, &fast);
    turn_for_ms(&fixture, 200);
    assert_in_range(ring->end, 1 << 20, 2 << 20);
    fast.takes = true;
    on_more(&fast);
    run_to_end(&fixture, process);
    turn_for_ms(&fixture, 10);
    on_more(&fast);
    assert_int_equal(fast.seen_bytes, 40000000);
    assert_int_equal(fast.gap_bytes, 0);
    assert_true(fast.calls > 10);
    slow.takes = true;
    on_more(&slow);
    assert_int_equal(slow.gap_bytes, 40000000 - RING_MAX_BYTES);
    assert_int_equal(slow.seen_bytes, RING_MAX_BYTES);
    process_reader_detach(&slow.reader);
    process_reader_detach(&fast.reader);
    process_reader_detach(&fast.reader);
    process_unref(process);
}

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

/* Neither one who polls nor a reader of the other stream sets the pace of this one, nor do they end the wait for the
 * first reader; all are told of what comes. */
static void who_does_not_read_it_paces_nothing(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "echo >&2; head -c 40000000 /dev/zero");
    spec.capture_bytes = 0;
    spec.pace = true;
    struct process *process = start(&fixture, &spec);
    const struct ring *ring = process_ring(process, PROCESS_STDOUT);
    int polls = 0;
    struct process_reader poll = {.offset = {PROCESS_NOT_READ, PROCESS_NOT_READ}};
    struct process_reader other = {.offset = {PROCESS_NOT_READ, 0}};
    struct test_reader slow = {.takes = false};
    process_reader_attach(process, &poll, count_call, &polls);
    while (ring->end < 1 << 20)
        loop_turn(fixture.loop, true);
    turn_for_ms(&fixture, 100);
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    assert_in_range(ring->end, 1 << 20, 2 << 20);
    assert_true(polls > 0);
    process_reader_attach(process, &slow.reader, on_more, &slow);
    process_reader_attach(process, &other, count_call, &polls);
    turn_for_ms(&fixture, 100);
    assert_in_range(ring->end, 1 << 20, 2 << 20);
    assert_int_equal(ring->start, 0);
    process_reader_detach(&slow.reader);
    run_to_end(&fixture, process); /* nobody reads it now: it drains freely */
    process_reader_detach(&poll);
    process_reader_detach(&other);
    process_unref(process);
}

/* More than are told in one turn of the loop. */
static void all_of_many_readers_are_told(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    struct process_spec spec = spec_of(&fixture, "sleep 0.1; echo; sleep 1000");
    struct process *process = start(&fixture, &spec);
    struct process_reader readers[COUNT] = {0};
    int calls[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        process_reader_attach(process, &readers[i], count_call, &calls[i]);
    turn_for_ms(&fixture, 20);
    for (int i = 0; i < COUNT; i++) {
        assert_true(calls[i] > 0);
        calls[i] = 0;
    }
    while (process_ring(process, PROCESS_STDOUT)->end == 0)
        loop_turn(fixture.loop, true);
    turn_for_ms(&fixture, 20);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(calls[i], 1);
        process_reader_detach(&readers[i]);
    }
    process_stop(process);
    run_to_end(&fixture, process);
    process_unref(process);
}

/* A few bytes at a time: the program is never let run away from its only reader. */
static void on_little(void *ctx)
{
    struct test_reader *test = ctx;
    const struct ring *ring = process_ring(test->reader.process, PROCESS_STDOUT);
    uint64_t *offset = &test->reader.offset[PROCESS_STDOUT];
    test->calls++;
    assert_int_equal(ring->start, 0);
    if (*offset < ring->end) {
        *offset += 1;
        process_reader_took(&test->reader);
    }
}

static void a_reader_that_takes_little_is_waited_for(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "head -c 40000000 /dev/zero");
    spec.capture_bytes = 0;
    struct process *process = start(&fixture, &spec);
    struct test_reader reader = {.takes = false}, other = {.takes = false};
    process_reader_attach(process, &reader.reader, on_little, &reader);
    for (int i = 0; i < 100; i++) {
        process_reader_attach(process, &other.reader, on_more, &other); /* makes it tell both */
        turn_for_ms(&fixture, 2);
        process_reader_detach(&other.reader);
    }
    assert_true(reader.calls >= 100);
    assert_in_range(process_ring(process, PROCESS_STDOUT)->end, 1 << 20, 2 << 20);
    process_reader_detach(&reader.reader);
    process_stop(process);
    run_to_end(&fixture, process);
    process_unref(process);
}

static void without_readers_it_drains_freely(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "head -c 40000000 /dev/zero; head -c 100 /dev/zero >&2");
    spec.capture_bytes = 1000;
    struct process *process = start(&fixture, &spec);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    const struct ring *ring = process_ring(process, PROCESS_STDOUT);
    assert_int_equal(ring->end, 40000000);
    assert_int_equal(ring->end - ring->start, RING_MAX_BYTES);
    struct capture_view view;
    process_captured(process, PROCESS_STDOUT, &view);
    assert_int_equal(view.total_bytes, 40000000);
    assert_int_equal(view.head_len + view.tail_len, 1000);
    process_capture_free(process);
    process_captured(process, PROCESS_STDERR, &view);
    assert_int_equal(view.total_bytes, 0);
    process_unref(process);
}

static void a_reader_that_leaves_lets_go_on(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "head -c 10000000 /dev/zero");
    spec.capture_bytes = 0;
    struct process *process = start(&fixture, &spec);
    struct test_reader reader = {.takes = false};
    process_reader_attach(process, &reader.reader, on_more, &reader);
    turn_for_ms(&fixture, 200);
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    process_reader_detach(&reader.reader);
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    process_unref(process);
}

/* Thirty seconds are not waited for: the reader's clock is set back. */
static void a_reader_that_takes_nothing_does_not_count_for_ever(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "head -c 10000000 /dev/zero");
    spec.capture_bytes = 0;
    struct process *process = start(&fixture, &spec);
    struct test_reader stalled = {.takes = false}, other = {.takes = false};
    process_reader_attach(process, &stalled.reader, on_more, &stalled);
    turn_for_ms(&fixture, 200);
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    stalled.reader.took_at_ms -= 30000;
    process_reader_attach(process, &other.reader, on_more, &other);
    process_reader_detach(&other.reader); /* makes it look again */
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    process_reader_detach(&stalled.reader);
    process_unref(process);
}

/* An entry that went from the table while a grandchild still writes: the writer must not die of it. */
static void a_dropped_entry_reads_on(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "(for i in 1 2 3 4 5 6; do sleep 0.1; echo x || exit; done; "
                                                 "touch /tmp/test-process-wrote) &");
    unlink("/tmp/test-process-wrote");
    spec.kind = PROCESS_HELPER;
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    process_unref(process);
    for (int i = 0; i < 300 && access("/tmp/test-process-wrote", F_OK) != 0; i++)
        turn_for_ms(&fixture, 100);
    assert_int_equal(unlink("/tmp/test-process-wrote"), 0);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Commands say `touch $MARK` when they have come so far. */
static const char *set_mark(void)
{
    static char path[64];
    snprintf(path, sizeof(path), "/tmp/abx-output-mark-%d", (int)getpid());
    assert_int_equal(env_block_set(&fixture.env, "MARK", path), 0);
    return path;
}

static void wait_for_mark(const char *path)
{
    while (access(path, F_OK) != 0)
        turn_for_ms(&fixture, 5);
    unlink(path);
}

static void catching_up_reads_what_is_there_now(void **state)
{
    (void)state;
    struct process_spec spec =
        spec_of(&fixture, "head -c 1500000 /dev/zero; printf err >&2; touch $MARK; exec sleep 1000");
    const char *mark = set_mark();
    spec.pace = true; /* and nobody attaches: what is over the bound stays in the pipe */
    struct process *process = start(&fixture, &spec);
    const struct ring *ring = process_ring(process, PROCESS_STDOUT);
    wait_for_mark(mark);
    while (ring->end < 1 << 20)
        turn_for_ms(&fixture, 5);
    assert_in_range(ring->end, 1 << 20, 1499999);
    assert_int_equal(process_output_ahead(process, PROCESS_STDOUT), 1500000);
    assert_int_equal(process_output_ahead(process, PROCESS_STDERR), 3);
    assert_in_range(ring->end, 1 << 20, 1499999);
    struct test_reader late = {.takes = false, .reader.offset = {PROCESS_NOT_READ, PROCESS_NOT_READ}};
    process_reader_attach(process, &late.reader, on_more, &late);
    turn_for_ms(&fixture, 10);
    int calls = late.calls;
    process_output_catch_up(process);
    assert_int_equal(ring->end, 1500000);
    assert_int_equal(late.calls, calls); /* not from inside */
    turn_for_ms(&fixture, 10);
    assert_in_range(late.calls, calls + 1, calls + 2);
    struct capture_view view;
    process_captured(process, PROCESS_STDOUT, &view);
    assert_int_equal(view.total_bytes, 1500000);
    process_output_catch_up(process);
    assert_int_equal(ring->end, 1500000);
    process_reader_detach(&late.reader);
    process_stop(process);
    run_to_end(&fixture, process);
    process_output_catch_up(process);
    assert_int_equal(ring->end, 1500000);
    assert_int_equal(process_output_ahead(process, PROCESS_STDOUT), 1500000);
    process_unref(process);
}

static void captures_begin_anew(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "printf one; read x; printf two; printf err >&2; touch $MARK; read x; "
                                                 "printf three; touch $MARK");
    const char *mark = set_mark();
    struct err err;
    spec.keep_stdin = true;
    spec.capture_bytes = 0;
    struct process *process = start(&fixture, &spec);
    while (process_ring(process, PROCESS_STDOUT)->end < 3)
        loop_turn(fixture.loop, true);
    expect_output(process, PROCESS_STDOUT, "");
    for (int i = 0; i < 2; i++) {
        struct process_write write = {.bytes = "\n", .len = 1};
        process_output_catch_up(process);
        assert_int_equal(process_capture_restart(process, 1024, &err), 0);
        process_write_start(process, &write, set_true);
        wait_for_mark(mark);
        process_output_catch_up(process);
        expect_output(process, PROCESS_STDOUT, i == 0 ? "two" : "three");
        expect_output(process, PROCESS_STDERR, i == 0 ? "err" : "");
    }
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "three");
    process_unref(process);
}

/* It has ended, and more than one turn reads was in its pipe. */
static void catching_up_ends_the_drain(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "head -c 1100000 /dev/zero");
    spec.pace = true;
    struct process *process = start(&fixture, &spec);
    while (process_state(process) == PROCESS_RUNNING) {
        process_output_catch_up(process);
        loop_turn(fixture.loop, false);
    }
    process_output_catch_up(process);
    assert_int_equal(process_state(process), PROCESS_DRAINED);
    assert_int_equal(process_ring(process, PROCESS_STDOUT)->end, 1100000);
    process_unref(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(the_fastest_reader_paces_and_meets_no_gap),
        PROCESS_TEST(who_does_not_read_it_paces_nothing),
        PROCESS_TEST(all_of_many_readers_are_told),
        PROCESS_TEST(a_reader_that_takes_little_is_waited_for),
        PROCESS_TEST(without_readers_it_drains_freely),
        PROCESS_TEST(a_reader_that_leaves_lets_go_on),
        PROCESS_TEST(a_reader_that_takes_nothing_does_not_count_for_ever),
        PROCESS_TEST(a_dropped_entry_reads_on),
        PROCESS_TEST(catching_up_reads_what_is_there_now),
        PROCESS_TEST(captures_begin_anew),
        PROCESS_TEST(catching_up_ends_the_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
