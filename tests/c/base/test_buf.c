/* The byte buffer: its maximum, and that a refusal changes nothing. */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_maximum_is_exact(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    assert_null(buf.data);
    for (int i = 0; i < 10; i++)
        assert_int_equal(buf_append(&buf, "0123456789", 10), 0);
    assert_int_equal(buf.len, 100);
    assert_int_equal(buf_append(&buf, "x", 1), -1);
    assert_int_equal(buf_reserve(&buf, SIZE_MAX), -1);
    assert_int_equal(buf_append(&buf, NULL, 0), 0);
    assert_int_equal(buf.len, 100);
    assert_true(buf.cap <= 100);
    assert_memory_equal(buf.data + 90, "0123456789", 10);
    buf_reset(&buf);
    assert_int_equal(buf.len, 0);
    assert_true(buf.cap >= 100);
    buf_deinit(&buf);
    assert_int_equal(buf_append_text(&buf, "again"), 0);
    assert_int_equal(buf.max, 100);
    buf_deinit(&buf);
}

static void test_nothing_fits_into_nothing(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 0);
    assert_int_equal(buf_append(&buf, "x", 1), -1);
    assert_int_equal(buf_append(&buf, "x", 0), 0);
    assert_null(buf.data);
}

static void test_printf_short_long_and_too_long(void **state)
{
    (void)state;
    struct buf buf;
    char longer[1001];
    memset(longer, 'y', 1000);
    longer[1000] = '\0';
    buf_init(&buf, 1005);
    assert_int_equal(buf_printf(&buf, "%d-%s", 12, "ab"), 0);
    assert_memory_equal(buf.data, "12-ab", 5);
    assert_int_equal(buf_printf(&buf, "%s!", longer), -1);
    assert_int_equal(buf.len, 5);
    assert_int_equal(buf_printf(&buf, "%s", longer), 0);
    assert_int_equal(buf.len, 1005);
    assert_int_equal(buf.data[1004], 'y');
    buf_deinit(&buf);
}

static void test_consume_and_steal(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    assert_int_equal(buf_append_text(&buf, "hello world"), 0);
    buf_consume(&buf, 0);
    buf_consume(&buf, 6);
    assert_int_equal(buf.len, 5);
    assert_memory_equal(buf.data, "world", 5);
    size_t len;
    char *data = buf_steal(&buf, &len);
    assert_int_equal(len, 5);
    assert_memory_equal(data, "world", 5);
    free(data);
    assert_null(buf.data);
    assert_null(buf_steal(&buf, &len));
    assert_int_equal(len, 0);
    assert_int_equal(buf_append_text(&buf, "x"), 0);
    buf_consume(&buf, 99);
    assert_int_equal(buf.len, 0);
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maximum_is_exact),
        cmocka_unit_test(test_nothing_fits_into_nothing),
        cmocka_unit_test(test_printf_short_long_and_too_long),
        cmocka_unit_test(test_consume_and_steal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
