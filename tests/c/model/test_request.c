/* Headers of a request: lookup without case, and what Accept names. */
#include "model/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_header(void **state)
{
    (void)state;
    struct header headers[] = {{"Host", "a"}, {"X-Thing", "first"}, {"x-thing", "second"}};
    struct request request = {.headers = headers, .header_count = 3};
    assert_string_equal(request_header(&request, "host"), "a");
    assert_string_equal(request_header(&request, "X-THING"), "first");
    assert_null(request_header(&request, "Hos"));
}

static bool accepts(const char *value)
{
    struct header headers[] = {{"accept", value}};
    struct request request = {.headers = headers, .header_count = 1};
    return request_accepts(&request, "text/event-stream");
}

static void test_accepts(void **state)
{
    (void)state;
    assert_true(accepts("text/event-stream"));
    assert_true(accepts("application/json, Text/Event-Stream"));
    assert_true(accepts("application/json;q=0.1,text/event-stream ; charset=utf-8; q=0.001"));
    assert_true(accepts(",, text/event-stream;q=1,"));
    assert_true(accepts("text/event-stream;q"));
    assert_false(accepts("text/event-stream;q=0"));
    assert_false(accepts("text/event-stream; q=0.000, */*"));
    assert_false(accepts("text/event-stream;x=1; Q = 0"));
    assert_true(accepts("text/event-stream;q=0, text/event-stream"));
    assert_false(accepts("*/*"));
    assert_false(accepts("text/*"));
    assert_false(accepts("text/event-streams"));
    assert_false(accepts(""));
    struct request none = {0};
    assert_false(request_accepts(&none, "text/event-stream"));
    struct header twice[] = {{"Accept", "text/html"}, {"Accept", "text/event-stream"}};
    struct request request = {.headers = twice, .header_count = 2};
    assert_true(request_accepts(&request, "text/event-stream"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_header), cmocka_unit_test(test_accepts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
