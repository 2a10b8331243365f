/* The JSON writer: escapes, bytes that are no text, numbers that read back equal. */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(struct buf *out, const char *expected)
{
    assert_int_equal(out->len, strlen(expected));
    if (out->len > 0)
        assert_memory_equal(out->data, expected, out->len);
    buf_reset(out);
}

static void test_strings(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(json_write_string(&out, "a\"b\\c/\b\f\n\r\t\x01\x1F\x7F", 14), 0);
    expect(&out, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7F\"");
    assert_int_equal(json_write_string(&out, "nul\0in", 6), 0);
    expect(&out, "\"nul\\u0000in\"");
    assert_int_equal(json_write_string(&out, "\xE2\x82\xAC and \xFF\xE2\x82.\xF0\x9F", 13), 0);
    expect(&out, "\"\xE2\x82\xAC and \xEF\xBF\xBD\xEF\xBF\xBD.\xEF\xBF\xBD\"");
    assert_int_equal(json_write_string(&out, NULL, 0), 0);
    expect(&out, "\"\"");
    assert_int_equal(json_write_text(&out, ",\"a\":", "b\n"), 0);
    expect(&out, ",\"a\":\"b\\n\"");
    assert_int_equal(json_write_text(&out, "{\"a\":", NULL), 0);
    expect(&out, "{\"a\":null");
    /* A special byte at each place of a word. */
    for (size_t at = 0; at < 20; at++) {
        char text[20], expected[64];
        memset(text, 'x', sizeof text);
        text[at] = '\n';
        assert_int_equal(json_write_escaped(&out, text, sizeof text), 0);
        snprintf(expected, sizeof expected, "%.*s\\n%.*s", (int)at, "xxxxxxxxxxxxxxxxxxxx", (int)(19 - at),
                 "xxxxxxxxxxxxxxxxxxxx");
        expect(&out, expected);
    }
    buf_deinit(&out);
}

static void test_full_buffer_is_left_alone(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 6);
    assert_int_equal(buf_append_text(&out, "ab"), 0);
    assert_int_equal(json_write_string(&out, "xyz", 3), -1);
    assert_int_equal(out.len, 2);
    assert_int_equal(json_write_escaped(&out, "xy\n\n", 4), -1);
    assert_int_equal(out.len, 2);
    assert_int_equal(json_write_string(&out, "\n", 1), 0);
    expect(&out, "ab\"\\n\"");
    buf_deinit(&out);
}

static void test_numbers(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(json_write_int(&out, INT64_MIN), 0);
    expect(&out, "-9223372036854775808");
    assert_int_equal(json_write_int(&out, INT64_MAX), 0);
    expect(&out, "9223372036854775807");
    assert_int_equal(json_write_int(&out, 0), 0);
    expect(&out, "0");
    assert_int_equal(json_write_double(&out, 0.1), 0);
    expect(&out, "0.1");
    assert_int_equal(json_write_double(&out, 1000), 0);
    expect(&out, "1000");
    assert_int_equal(json_write_double(&out, 1e300), 0);
    expect(&out, "1e+300");
    assert_int_equal(json_write_double(&out, (double)NAN), 0);
    expect(&out, "null");
    assert_int_equal(json_write_double(&out, -(double)INFINITY), 0);
    expect(&out, "null");
    const double exact[] = {1.0 / 3, 0.1 + 0.2, DBL_MAX, DBL_MIN, 5e-324, 123456789.123456789, -2.5};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        assert_int_equal(json_write_double(&out, exact[i]), 0);
        assert_int_equal(buf_append(&out, "", 1), 0);
        assert_true(strtod(out.data, NULL) == exact[i]);
        buf_reset(&out);
    }
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_full_buffer_is_left_alone),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
