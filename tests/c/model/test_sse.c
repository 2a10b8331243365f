/* Server-sent events: the exact bytes, and that no field can be forged. */
#include "model/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_events(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(sse_append(&out, "stdout", "5.0", "{\"data\":\"x\"}", 12), 0);
    assert_int_equal(sse_append(&out, "ping", NULL, NULL, 0), 0);
    assert_int_equal(sse_append_comment(&out), 0);
    const char *expected =
        "id: 5.0\nevent: stdout\ndata: {\"data\":\"x\"}\n\nevent: ping\ndata: {}\n\n: still here\n\n";
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.data, expected, out.len);
    buf_deinit(&out);
}

static void test_refused(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 30);
    assert_int_equal(buf_append_text(&out, "kept"), 0);
    assert_int_equal(sse_append(&out, "a\nevent: b", NULL, "{}", 2), -1);
    assert_int_equal(sse_append(&out, "a", "1\r", "{}", 2), -1);
    assert_int_equal(sse_append(&out, "a", NULL, "{\n}", 3), -1);
    assert_int_equal(sse_append(&out, "exit", NULL, "{\"too\":\"long\"}", 14), -1);
    assert_int_equal(out.len, 4);
    assert_int_equal(sse_append(&out, "exit", NULL, "{}", 2), 0);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_events), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
