/* UTF-8: the table of well-formed sequences, cut characters, replacement of maximal ill-formed parts. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VALID(text) utf8_valid("" text, sizeof(text) - 1)

static void test_valid(void **state)
{
    (void)state;
    assert_true(VALID(""));
    assert_true(VALID("plain ascii, longer than eight bytes\0with NUL"));
    assert_true(VALID(
        "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));
    assert_false(VALID("\xC0\x80"));
    assert_false(VALID("\xC1\xBF"));
    assert_false(VALID("\xE0\x9F\xBF"));
    assert_false(VALID("\xED\xA0\x80"));
    assert_false(VALID("\xF0\x8F\xBF\xBF"));
    assert_false(VALID("\xF4\x90\x80\x80"));
    assert_false(VALID("\xF5\x80\x80\x80"));
    assert_false(VALID("\x80"));
    assert_false(VALID("12345678\xFF"));
    assert_false(VALID("1234567\xE2\x82"));
    assert_false(VALID("\xE2\x82 12345678"));
}

static void test_whole_len_holds_only_what_may_become_a_character(void **state)
{
    (void)state;
    assert_int_equal(utf8_whole_len("", 0), 0);
    assert_int_equal(utf8_whole_len("abc", 3), 3);
    assert_int_equal(utf8_whole_len("a\xE4\xBD\xA0", 4), 4);
    assert_int_equal(utf8_whole_len("a\xE4\xBD", 3), 1);
    assert_int_equal(utf8_whole_len("a\xE4", 2), 1);
    assert_int_equal(utf8_whole_len("\xF0\x9F\x98", 3), 0);
    assert_int_equal(utf8_whole_len("a\x80", 2), 2);
    assert_int_equal(utf8_whole_len("\xE4\xBD\xA0\x80", 4), 4);
    assert_int_equal(utf8_whole_len("a\xC0", 2), 2);
    assert_int_equal(utf8_whole_len("a\xED\xA0", 3), 3);
    assert_int_equal(utf8_whole_len("a\xFF", 2), 2);
}

static void test_skip_len(void **state)
{
    (void)state;
    assert_int_equal(utf8_skip_len("abc", 3), 0);
    assert_int_equal(utf8_skip_len("\xBD\xA0"
                                   "a",
                                   3),
                     2);
    assert_int_equal(utf8_skip_len("\x80\x80\x80\x80", 4), 3);
    assert_int_equal(utf8_skip_len("", 0), 0);
}

#define FFFD "\xEF\xBF\xBD"

static void scrub(const char *text, size_t len, const char *expected, bool expected_lossy)
{
    struct buf out;
    bool lossy = false;
    buf_init(&out, 1000);
    assert_int_equal(utf8_append_scrubbed(&out, text, len, &lossy), 0);
    assert_int_equal(out.len, strlen(expected));
    if (out.len > 0)
        assert_memory_equal(out.data, expected, out.len);
    assert_int_equal(lossy, expected_lossy);
    buf_deinit(&out);
}

static void test_scrub(void **state)
{
    (void)state;
    scrub("", 0, "", false);
    scrub("g\xC3\xB6od", 5, "g\xC3\xB6od", false);
    scrub("x\xE4", 2, "x" FFFD, true);
    scrub("\xE4\xBDx", 3, FFFD "x", true);
    scrub("\xF0\x9F\x98\xF0\x9F\x98\x80", 7, FFFD "\xF0\x9F\x98\x80", true);
    /* Unicode 15, table 3-8: each byte of a sequence that cannot begin a character stands alone. */
    scrub("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", 13, "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d",
          true);
    scrub("\xED\xA0\x80", 3, FFFD FFFD FFFD, true);
}

static void test_scrub_refused_changes_nothing(void **state)
{
    (void)state;
    struct buf out;
    bool lossy = false;
    buf_init(&out, 6);
    assert_int_equal(buf_append_text(&out, "ab"), 0);
    assert_int_equal(utf8_append_scrubbed(&out, "cd\xFF", 3, &lossy), -1);
    assert_int_equal(out.len, 2);
    assert_false(lossy);
    assert_int_equal(utf8_append_scrubbed(&out, "c\xFF", 2, &lossy), 0);
    assert_int_equal(out.len, 6);
    assert_true(lossy);
    buf_deinit(&out);
}

static void test_mend(void **state)
{
    (void)state;
    char text[] = "a\xFF\xC3\xA4\xE2\x82", cut[] = "a\xC3\xA4\xE2\x82";
    utf8_mend(text, false);
    assert_string_equal(text, "a?\xC3\xA4??");
    utf8_mend(cut, true);
    assert_string_equal(cut, "a\xC3\xA4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_whole_len_holds_only_what_may_become_a_character),
        cmocka_unit_test(test_skip_len),
        cmocka_unit_test(test_scrub),
        cmocka_unit_test(test_scrub_refused_changes_nothing),
        cmocka_unit_test(test_mend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
