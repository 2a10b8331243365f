/* A body between net and its reader: nothing is lost, nothing is called from inside body_read, dropping is silent. */
#include "model/body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct loop *loop;
static struct body body;
static char got[64];
static size_t room;
static int ends, wakes;
static bool last_complete;

static void on_wake(void *net)
{
    assert_ptr_equal(net, &body);
    wakes++;
}

static size_t on_data(void *ctx, const char *bytes, size_t len)
{
    assert_ptr_equal(ctx, got);
    size_t take = len < room ? len : room;
    strncat(got, bytes, take);
    room -= take;
    return take;
}

static void on_end(void *ctx, bool complete)
{
    assert_ptr_equal(ctx, got);
    ends++;
    last_complete = complete;
}

static int set_up(void **state)
{
    (void)state;
    loop = loop_new();
    body = (struct body){.loop = loop, .wake = on_wake, .net = &body};
    got[0] = '\0';
    room = 100;
    ends = wakes = 0;
    return loop ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    body_drop(&body);
    loop_free(loop);
    return 0;
}

static void test_flow(void **state)
{
    (void)state;
    assert_int_equal(body_push(&body, "abc", 3), 0); /* nobody reads yet */
    body_read(&body, on_data, on_end, got);
    assert_int_equal(wakes, 0);
    loop_turn(loop, true);
    assert_int_equal(wakes, 1);
    room = 2;
    assert_int_equal(body_push(&body, "abc", 3), 2);
    assert_int_equal(body_push(&body, "c", 1), 0);
    room = 100;
    body_resume(&body);
    assert_int_equal(wakes, 2);
    assert_int_equal(body_push(&body, "c", 1), 1);
    assert_int_equal(body_push(&body, "", 0), 0);
    assert_string_equal(got, "abc");
    body_end(&body, true);
    body_end(&body, false);
    assert_int_equal(ends, 1);
    assert_true(last_complete);
    body_resume(&body);
    assert_int_equal(wakes, 2);
}

static void test_ended_before_the_reader_came(void **state)
{
    (void)state;
    body_end(&body, true);
    body_read(&body, on_data, on_end, got);
    assert_int_equal(ends, 0);
    loop_turn(loop, true);
    assert_int_equal(ends, 1);
    assert_true(last_complete);
    loop_turn(loop, false);
    assert_int_equal(ends, 1);
}

static void test_client_left(void **state)
{
    (void)state;
    body_read(&body, on_data, on_end, got);
    body_end(&body, false);
    assert_int_equal(ends, 1);
    assert_false(last_complete);
    loop_turn(loop, false);
    assert_int_equal(ends, 1);
    assert_int_equal(wakes, 0);
}

static void test_drop(void **state)
{
    (void)state;
    body_read(&body, on_data, on_end, got);
    body_drop(&body);
    body_drop(&body);
    assert_int_equal(wakes, 1);
    assert_int_equal(body_push(&body, "abc", 3), 3); /* thrown away */
    body_end(&body, true);
    body_read(&body, on_data, on_end, got);
    loop_turn(loop, false);
    assert_int_equal(ends, 0);
    assert_string_equal(got, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ended_before_the_reader_came, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_client_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_drop, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
