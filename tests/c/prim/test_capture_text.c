/* prim/capture_text: what was captured as text, JSON and base64, with and without a dropped middle. */
#include "prim/capture_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FFFD "\xEF\xBF\xBD"
#define HELLO "\xE4\xBD\xA0\xE5\xA5\xBD" /* two characters of three bytes */

static const struct capture_text text = {0}, json = {.json = true}, running = {.running = true},
                                 base64 = {.base64 = true}, base64_json = {.base64 = true, .json = true};

static void expect_of(size_t limit_bytes, const char *bytes, size_t len, const struct capture_text *how,
                      const char *expected, bool expected_lossy)
{
    struct capture capture;
    struct capture_view view;
    struct buf out;
    bool lossy = false;
    capture_init(&capture, limit_bytes);
    capture_append(&capture, bytes, len);
    capture_view(&capture, &view);
    buf_init(&out, 100000);
    assert_int_equal(capture_text_append(&out, &view, how, &lossy), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_string_equal(out.data, expected);
    assert_int_equal(lossy, expected_lossy);
    buf_deinit(&out);
    capture_deinit(&capture);
}

static void expect(size_t limit_bytes, const char *bytes, const struct capture_text *how, const char *expected)
{
    expect_of(limit_bytes, bytes, strlen(bytes), how, expected, false);
}

static void whole(void **state)
{
    (void)state;
    expect(10, "", &text, "");
    expect(10, "", &json, "\"\"");
    expect(10, "", &base64_json, "\"\"");
    expect(10, "a\"\n", &text, "a\"\n");
    expect(10, "a\"\n", &json, "\"a\\\"\\n\"");
    expect_of(10, "\0\x1F", 2, &json, "\"\\u0000\\u001f\"", false);
    expect_of(10, "a\xFF", 2, &text, "a" FFFD, true);
    expect_of(10, "a\xFF", 2, &json, "\"a" FFFD "\"", true);
}

/* The border between head and tail is none where nothing was dropped. */
static void characters_across_the_border_stay_whole(void **state)
{
    (void)state;
    for (size_t limit_bytes = 12; limit_bytes < 30; limit_bytes++) {
        expect(limit_bytes, HELLO HELLO, &text, HELLO HELLO);
        expect(limit_bytes, HELLO HELLO, &json, "\"" HELLO HELLO "\"");
        expect(limit_bytes, "0123456789", &base64, "MDEyMzQ1Njc4OQ==");
    }
    expect(4, "abcd", &base64, "YWJjZA==");
    expect(3, "abc", &base64, "YWJj");
    expect(2, "ab", &base64_json, "\"YWI=\"");
    expect(1, "a", &base64, "YQ==");
}

static void the_marker_counts_all_that_is_missing(void **state)
{
    (void)state;
    expect(4, "abcdefgh", &text, "ab\n[… 4 bytes dropped …]\ngh");
    expect(4, "abcdefgh", &json, "\"ab\\n[… 4 bytes dropped …]\\ngh\"");
    expect(4, "abcdefgh", &base64, "YWJnaA==");
    expect(5, HELLO HELLO HELLO HELLO, &text, "\n[… 21 bytes dropped …]\n\xE5\xA5\xBD");
    expect(8, HELLO HELLO HELLO HELLO, &text, "\xE4\xBD\xA0\n[… 18 bytes dropped …]\n\xE5\xA5\xBD");
    expect(4, HELLO HELLO HELLO HELLO, &json, "\"\\n[… 24 bytes dropped …]\\n\"");
    expect_of(4, "\xFF\xFF....\xFF\xFF", 8, &text, FFFD FFFD "\n[… 4 bytes dropped …]\n" FFFD FFFD, true);
}

static void a_character_that_is_still_coming_is_left_out(void **state)
{
    (void)state;
    expect(20, "abc\xE4\xBD", &running, "abc");
    expect_of(20, "abc\xE4\xBD", 5, &text, "abc" FFFD, true);
    expect(8, "abcdefg\xE4", &running, "abcdefg");
    expect_of(20, "abc\xFF", 4, &running, "abc" FFFD, true);
}

static void a_full_buffer_is_told(void **state)
{
    (void)state;
    struct capture_view view = {.head = "abcdef", .head_len = 6, .total_bytes = 6};
    struct buf out;
    bool lossy = false;
    buf_init(&out, 7);
    assert_int_equal(capture_text_append(&out, &view, &text, &lossy), 0);
    buf_reset(&out);
    assert_int_equal(capture_text_append(&out, &view, &json, &lossy), -1);
    buf_reset(&out);
    assert_int_equal(capture_text_append(&out, &view, &base64, &lossy), -1);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(characters_across_the_border_stay_whole),
        cmocka_unit_test(the_marker_counts_all_that_is_missing),
        cmocka_unit_test(a_character_that_is_still_coming_is_left_out),
        cmocka_unit_test(a_full_buffer_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
