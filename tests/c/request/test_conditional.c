/* Ranges, entity tags and dates. */
#include "request/conditional.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char ETAG[] = "\"abc\"";
static const time_t MODIFIED = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */
static uint64_t first, length;

static enum conditional_result check(struct conditional_headers headers, uint64_t size)
{
    first = length = 99999;
    return conditional_check(&headers, ETAG, MODIFIED, size, &first, &length);
}

static enum conditional_result range(const char *value, uint64_t size)
{
    return check((struct conditional_headers){.range = value}, size);
}

static void assert_part(const char *value, uint64_t size, uint64_t want_first, uint64_t want_length)
{
    assert_int_equal(range(value, size), CONDITIONAL_PART);
    assert_int_equal(first, want_first);
    assert_int_equal(length, want_length);
}

static void single_ranges(void **state)
{
    (void)state;
    assert_part("bytes=0-0", 10, 0, 1);
    assert_part("bytes=2-5", 10, 2, 4);
    assert_part("bytes=5-", 10, 5, 5);
    assert_part("bytes=-3", 10, 7, 3);
    assert_part("bytes=-300", 10, 0, 10);
    assert_part("bytes=9-100", 10, 9, 1);
    assert_part("BYTES=0-18446744073709551615", 10, 0, 10);
    assert_part("bytes=0-99999999999999999999999999", 10, 0, 10);
    assert_part("bytes=-99999999999999999999999999", 10, 0, 10);
    assert_part("bytes= 1-2 ", 10, 1, 2);
}

static void unsatisfiable_ranges(void **state)
{
    (void)state;
    assert_int_equal(range("bytes=10-", 10), CONDITIONAL_UNSATISFIABLE);
    assert_int_equal(range("bytes=18446744073709551616-", 10), CONDITIONAL_UNSATISFIABLE);
    assert_int_equal(range("bytes=18446744073709551615-18446744073709551615", 10), CONDITIONAL_UNSATISFIABLE);
    assert_int_equal(range("bytes=-0", 10), CONDITIONAL_UNSATISFIABLE);
    assert_int_equal(range("bytes=0-", 0), CONDITIONAL_UNSATISFIABLE);
    assert_int_equal(range("bytes=-5", 0), CONDITIONAL_UNSATISFIABLE);
}

static void ranges_that_are_ignored(void **state)
{
    static const char *const odd[] = {"bytes=0-1,3-4", "bytes=5-2",   "bytes=",    "bytes=-", "bytes=a-b",  "lines=0-1",
                                      "bytes=1",       "bytes=0x1-2", "bytes=--1", "0-1",     "bytes=1-2-3"};

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        assert_int_equal(range(odd[i], 10), CONDITIONAL_WHOLE);
}

static void entity_tags(void **state)
{
    (void)state;
    assert_int_equal(check((struct conditional_headers){.if_none_match = "\"abc\""}, 10), CONDITIONAL_NOT_MODIFIED);
    assert_int_equal(check((struct conditional_headers){.if_none_match = "W/\"abc\""}, 10), CONDITIONAL_NOT_MODIFIED);
    assert_int_equal(check((struct conditional_headers){.if_none_match = "\"x\", \"abc\""}, 10),
                     CONDITIONAL_NOT_MODIFIED);
    assert_int_equal(check((struct conditional_headers){.if_none_match = "*"}, 10), CONDITIONAL_NOT_MODIFIED);
    assert_int_equal(check((struct conditional_headers){.if_none_match = "\"abcd\""}, 10), CONDITIONAL_WHOLE);
    assert_int_equal(check((struct conditional_headers){.if_match = "\"abc\""}, 10), CONDITIONAL_WHOLE);
    assert_int_equal(check((struct conditional_headers){.if_match = "*"}, 10), CONDITIONAL_WHOLE);
    assert_int_equal(check((struct conditional_headers){.if_match = "W/\"abc\""}, 10), CONDITIONAL_FAILED);
    assert_int_equal(check((struct conditional_headers){.if_match = "\"x\""}, 10), CONDITIONAL_FAILED);
    assert_int_equal(check((struct conditional_headers){.if_match = "\"abc"}, 10), CONDITIONAL_FAILED);
}

static void dates(void **state)
{
    (void)state;
    assert_int_equal(check((struct conditional_headers){.if_modified_since = "Sun, 06 Nov 1994 08:49:37 GMT"}, 10),
                     CONDITIONAL_NOT_MODIFIED);
    assert_int_equal(check((struct conditional_headers){.if_modified_since = "Sun, 06 Nov 1994 08:49:36 GMT"}, 10),
                     CONDITIONAL_WHOLE);
    assert_int_equal(check((struct conditional_headers){.if_unmodified_since = "Sun, 06 Nov 1994 08:49:36 GMT"}, 10),
                     CONDITIONAL_FAILED);
    assert_int_equal(check((struct conditional_headers){.if_modified_since = "yesterday"}, 10), CONDITIONAL_WHOLE);
    /* a tag has the last word over a date */
    assert_int_equal(check((struct conditional_headers){.if_none_match = "\"x\"",
                                                        .if_modified_since = "Sun, 06 Nov 1994 08:49:37 GMT"},
                           10),
                     CONDITIONAL_WHOLE);
}

static void if_range(void **state)
{
    struct conditional_headers headers = {.range = "bytes=0-0", .if_range = "\"abc\""};

    (void)state;
    assert_int_equal(check(headers, 10), CONDITIONAL_PART);
    headers.if_range = "W/\"abc\"";
    assert_int_equal(check(headers, 10), CONDITIONAL_WHOLE);
    headers.if_range = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_int_equal(check(headers, 10), CONDITIONAL_PART);
    headers.if_range = "Sun, 06 Nov 1994 08:49:38 GMT";
    assert_int_equal(check(headers, 10), CONDITIONAL_WHOLE);
}

static void date_forms(void **state)
{
    static const char *const good[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                       "Sun Nov  6 08:49:37 1994"};
    static const char *const bad[] = {"",
                                      "Sun, 06 Nov 1994 08:49:37",
                                      "Sun, 06 Nov 1994 08:49:37 CET",
                                      "Sun, 06 Foo 1994 08:49:37 GMT",
                                      "Sun, 40 Nov 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 GMT x",
                                      "784111777"};
    char text[CONDITIONAL_DATE_LEN + 1];
    time_t when;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(conditional_date_parse(good[i], &when), 0);
        assert_int_equal(when, MODIFIED);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(conditional_date_parse(bad[i], &when), -1);
    conditional_date_format(text, MODIFIED);
    assert_string_equal(text, good[0]);
    conditional_date_format(text, INT64_MAX);
    assert_string_equal(text, "Thu, 01 Jan 1970 00:00:00 GMT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_ranges),
        cmocka_unit_test(unsatisfiable_ranges),
        cmocka_unit_test(ranges_that_are_ignored),
        cmocka_unit_test(entity_tags),
        cmocka_unit_test(dates),
        cmocka_unit_test(if_range),
        cmocka_unit_test(date_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
