/* The sink: order of bytes, the two marks, and that neither end is called back from inside its own call. */
#include "model/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sink *sink;
static int readies, drains, gones;
static enum { LEAVE, TAKE_ALL, CLOSE } net_does;

static void on_ready(void *net)
{
    assert_ptr_equal(net, &readies);
    readies++;
    size_t len;
    if (net_does == TAKE_ALL && sink_peek(sink, &len))
        sink_take(sink, len);
    if (net_does == CLOSE)
        sink_close(sink);
}

static void on_drain(void *ctx)
{
    assert_ptr_equal(ctx, &drains);
    drains++;
}

static void on_gone(void *ctx)
{
    assert_ptr_equal(ctx, &drains);
    gones++;
}

static int set_up(void **state)
{
    (void)state;
    sink = sink_new();
    sink->on_ready = on_ready;
    sink->net = &readies;
    sink->on_drain = on_drain;
    sink->on_gone = on_gone;
    sink->producer = &drains;
    readies = drains = gones = 0;
    net_does = LEAVE;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sink_unref(sink);
    sink_unref(sink);
    return 0;
}

static char block[SINK_HIGH_WATER_BYTES];

static void test_bytes_in_order(void **state)
{
    (void)state;
    size_t len;
    assert_null(sink_peek(sink, &len));
    assert_int_equal(len, 0);
    assert_int_equal(sink_write(sink, "abc", 3), SINK_OK);
    assert_int_equal(sink_write(sink, "", 0), SINK_OK);
    sink_take(sink, 2);
    assert_int_equal(sink_write(sink, "def", 3), SINK_OK);
    const char *bytes = sink_peek(sink, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "cdef", 4);
    sink_take(sink, 100);
    assert_null(sink_peek(sink, &len));
    assert_int_equal(drains, 0); /* nobody was told to wait */
    assert_int_equal(sink_room(sink), SINK_HIGH_WATER_BYTES);
    sink_end(sink, true);
    sink_end(sink, false);
    assert_int_equal(sink->state, SINK_DONE);
    assert_int_equal(sink_write(sink, "x", 1), SINK_GONE);
    sink_close(sink);
    assert_int_equal(gones, 0); /* the producer was done */
}

static void test_full_and_drained(void **state)
{
    (void)state;
    assert_int_equal(sink_write(sink, block, sizeof block - 1), SINK_OK);
    assert_int_equal(sink_room(sink), 1);
    assert_int_equal(sink_write(sink, block, 10), SINK_FULL);
    assert_int_equal(sink_room(sink), 0);
    sink_take(sink, sizeof block / 2);
    assert_int_equal(drains, 0);
    sink_take(sink, 10);
    assert_int_equal(drains, 1);
    sink_take(sink, 10);
    assert_int_equal(drains, 1);
}

static void test_flat_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) {
        enum sink_write wrote = sink_write(sink, block, 10000);
        assert_true(wrote != SINK_GONE);
        if (wrote == SINK_FULL)
            sink_take(sink, 200001);
    }
    assert_true(sink->buf.cap <= 4 * SINK_HIGH_WATER_BYTES);
}

static void test_net_acts_inside_a_write(void **state)
{
    (void)state;
    net_does = TAKE_ALL;
    assert_int_equal(sink_write(sink, block, sizeof block), SINK_OK);
    assert_int_equal(drains, 0);
    net_does = CLOSE;
    assert_int_equal(sink_write(sink, "x", 1), SINK_GONE);
    assert_int_equal(gones, 0);
    assert_int_equal(readies, 2);
    assert_int_equal(sink_write(sink, "x", 1), SINK_GONE);
    sink_end(sink, true);
    assert_int_equal(readies, 2);
}

static void test_a_small_write_keeps_the_wait(void **state)
{
    (void)state;
    assert_int_equal(sink_write(sink, block, sizeof block), SINK_FULL);
    sink_take(sink, sizeof block / 2);
    assert_int_equal(drains, 0);
    assert_int_equal(sink_write(sink, ":", 1), SINK_OK); /* a heartbeat, while the writer of the block waits */
    sink_take(sink, 2);
    assert_int_equal(drains, 1);
}

static void test_client_leaves(void **state)
{
    (void)state;
    assert_int_equal(sink_write(sink, "abc", 3), SINK_OK);
    sink_close(sink);
    sink_close(sink);
    assert_int_equal(gones, 1);
    assert_int_equal(sink_write(sink, "x", 1), SINK_GONE);
    size_t len;
    assert_null(sink_peek(sink, &len));
}

static void test_too_much_aborts(void **state)
{
    (void)state;
    enum sink_write wrote;
    size_t written = 0;
    while ((wrote = sink_write(sink, block, sizeof block)) != SINK_GONE)
        written += sizeof block;
    assert_int_equal(written, SINK_MAX_BYTES);
    assert_int_equal(sink->state, SINK_ABORTED);
    sink_take(sink, SINK_MAX_BYTES);
    assert_int_equal(drains, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_and_drained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_flat_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_net_acts_inside_a_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_small_write_keeps_the_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_client_leaves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_much_aborts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
