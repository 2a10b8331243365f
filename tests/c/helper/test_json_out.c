/* JSON written member by member: commas, names that are no UTF-8, times. */
#include "helper/json_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct buf buf;
static struct json_out out;

static int set_up(void **state)
{
    (void)state;
    buf_init(&buf, 512);
    out = (struct json_out){.buf = &buf};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&buf);
    return 0;
}

static void assert_written(const char *expected)
{
    assert_false(out.failed);
    assert_int_equal(buf_append(&buf, "", 1), 0);
    assert_string_equal(buf.data, expected);
    buf_reset(&buf);
    out.comma = false;
}

static void test_members(void **state)
{
    (void)state;
    json_out_open(&out, NULL, '{');
    json_out_text(&out, "a", "x\"\n");
    json_out_text(&out, "b", NULL);
    json_out_open(&out, "c", '[');
    json_out_int(&out, NULL, -1);
    json_out_bool(&out, NULL, true);
    json_out_close(&out, ']');
    json_out_open(&out, "d", '{');
    json_out_close(&out, '}');
    json_out_bytes(&out, "e", "\xff", 1);
    json_out_close(&out, '}');
    assert_written("{\"a\":\"x\\\"\\n\",\"b\":null,\"c\":[-1,true],\"d\":{},\"e\":\"\xef\xbf\xbd\"}");
}

static void test_names(void **state)
{
    (void)state;
    struct buf names;
    buf_init(&names, 64);
    assert_int_equal(buf_append(&names, "a\0b\244", 5), 0);
    json_out_path(&out, "p", "plain");
    json_out_path(&out, "q", "b\244");
    json_out_names(&out, "n", &names);
    buf_deinit(&names);
    assert_written("\"p\":\"plain\",\"q\":\"b\xef\xbf\xbd\",\"q_base64\":\"YqQ=\","
                   "\"n\":[\"a\",\"b\xef\xbf\xbd\"],\"n_base64\":[\"YQ==\",\"YqQ=\"]");
}

static void test_times(void **state)
{
    (void)state;
    json_out_time(&out, "t", 0);
    assert_written("\"t\":\"1970-01-01T00:00:00.000Z\"");
    json_out_time(&out, "t", INT64_C(253402300799));
    assert_written("\"t\":\"9999-12-31T23:59:59.000Z\"");
    json_out_time(&out, "t", INT64_C(253402300800));
    assert_written("\"t\":null");
    json_out_time(&out, "t", INT64_C(-30610224000));
    assert_written("\"t\":\"1000-01-01T00:00:00.000Z\"");
    json_out_time(&out, "t", INT64_C(-30610224001));
    assert_written("\"t\":null");
    json_out_time(&out, "t", INT64_MIN);
    assert_written("\"t\":null");
}

static void test_too_much(void **state)
{
    (void)state;
    json_out_open(&out, NULL, '[');
    for (int i = 0; i < 200; i++)
        json_out_int(&out, NULL, 1000);
    assert_true(out.failed);
    json_out_close(&out, ']');
    assert_true(out.failed);
    assert_true(buf.len <= 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_members, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_much, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
