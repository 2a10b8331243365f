/* Edits of a text: exactly one place or all of them, in order, all or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prim/edits.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_MAX_BYTES = 64 };

static struct err err;
static char result[TEXT_MAX_BYTES + 1];

/* The text after the edits, or NULL with err. */
static const char *edited(const char *text, const struct edit *edits, size_t count)
{
    struct buf buf;
    buf_init(&buf, TEXT_MAX_BYTES);
    assert_int_equal(buf_append_text(&buf, text), 0);
    int failed = edits_apply(&buf, edits, count, NULL, &err);
    if (failed == 0) {
        memcpy(result, buf.data, buf.len);
        result[buf.len] = '\0';
    }
    buf_deinit(&buf);
    return failed == 0 ? result : NULL;
}

static struct edit one(const char *old, const char *new)
{
    return (struct edit){.old = old, .old_len = strlen(old), .new = new, .new_len = strlen(new)};
}

static struct edit all(const char *old, const char *new)
{
    struct edit edit = one(old, new);
    edit.all = true;
    return edit;
}

static void test_one_occurrence(void **state)
{
    (void)state;
    assert_string_equal(edited("abc", &(struct edit){"b", "xyz", 1, 3, false}, 1), "axyzc");
    struct edit edits[] = {one("abc", ""), one("b", "b"), one("abc", "abcabc"), one("c", "")};
    assert_string_equal(edited("abc", &edits[0], 1), "");
    assert_string_equal(edited("abc", &edits[1], 1), "abc");
    assert_string_equal(edited("abc", &edits[2], 1), "abcabc");
    assert_string_equal(edited("abc", &edits[3], 1), "ab");
    assert_string_equal(edited("unchanged", NULL, 0), "unchanged");
}

static void test_in_order(void **state)
{
    (void)state;
    struct edit edits[] = {one("a", "bb"), all("b", "cd"), one("cdcd", "e")};
    assert_string_equal(edited("xax", edits, 3), "xex");
    struct edit swap[] = {one("left", "\1"), one("right", "left"), one("\1", "right")};
    assert_string_equal(edited("left right", swap, 3), "right left");
}

static void test_all(void **state)
{
    (void)state;
    struct edit edits[] = {all("aa", "b"), all("x", "xx"), all("\n", "\r\n")};
    assert_string_equal(edited("aaaaa", &edits[0], 1), "bba");
    assert_string_equal(edited("xyx", &edits[1], 1), "xxyxx"); /* not what was just put there */
    assert_string_equal(edited("a\nb\n", &edits[2], 1), "a\r\nb\r\n");
}

static void test_bytes(void **state)
{
    (void)state;
    static const char text[] = "a\0\xff\0b\r\n", expected[] = "a\0\xc3\xa9\0\xff b\r\n";
    struct edit edit = {"\0\xff\0", "\0\xc3\xa9\0\xff ", 3, 6, false};
    struct buf buf;
    buf_init(&buf, TEXT_MAX_BYTES);
    assert_int_equal(buf_append(&buf, text, sizeof(text) - 1), 0);
    assert_int_equal(edits_apply(&buf, &edit, 1, NULL, &err), 0);
    assert_int_equal(buf.len, sizeof(expected) - 1);
    assert_memory_equal(buf.data, expected, sizeof(expected) - 1);
    buf_deinit(&buf);
}

static void assert_refused(const char *text, struct edit edit, enum err_code code, const char *field, const char *words)
{
    struct edit edits[] = {all("1", "1"), edit};
    assert_null(edited(text, edits, 2));
    assert_int_equal(err.code, code);
    assert_string_equal(err.field, field);
    assert_non_null(strstr(err.text, words));
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("1 abc", one("x", "y"), ERR_AMBIGUOUS_EDIT, "edits[1].old", "occurs 0 times");
    assert_refused("1 abc", all("x", "y"), ERR_AMBIGUOUS_EDIT, "edits[1].old", "occurs 0 times");
    assert_refused("1 aba", one("a", "y"), ERR_AMBIGUOUS_EDIT, "edits[1].old", "occurs 2 times");
    assert_refused("1 aaa", one("aa", "y"), ERR_AMBIGUOUS_EDIT, "edits[1].old", "occurs 2 times");
    assert_refused("1 a a a", one("a", "y"), ERR_AMBIGUOUS_EDIT, "edits[1].old", "occurs 3 times");
    assert_refused("1", one("longer than the text", "y"), ERR_AMBIGUOUS_EDIT, "edits[1].old", "occurs 0 times");
    assert_refused("1", one("", "y"), ERR_INVALID_REQUEST, "edits[1].old", "empty");
    assert_refused("1", all("", "y"), ERR_INVALID_REQUEST, "edits[1].old", "empty");
    struct edit empty = one("a", "b");
    assert_null(edited("", &empty, 1));
    assert_int_equal(err.code, ERR_AMBIGUOUS_EDIT);
    assert_string_equal(err.field, "edits[0].old");
}

static void test_too_large(void **state)
{
    (void)state;
    struct edit fits[] = {all("a", "12345678")}, grows[] = {all("a", "123456789")};
    assert_int_equal(strlen(edited("aaaaaaaa", fits, 1)), TEXT_MAX_BYTES);
    assert_null(edited("aaaaaaaa", grows, 1));
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    struct edit huge[] = {{"a", "", 1, SIZE_MAX / 4, true}}; /* never read: the length is refused before */
    assert_null(edited("aaaaaaaa", huge, 1));
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
}

static void test_cancelled(void **state)
{
    (void)state;
    struct edit edit = one("a", "b");
    atomic_bool cancelled = true;
    struct buf buf;
    buf_init(&buf, TEXT_MAX_BYTES);
    assert_int_equal(buf_append_text(&buf, "a"), 0);
    assert_int_equal(edits_apply(&buf, &edit, 1, &cancelled, &err), -1);
    assert_int_equal(edits_apply(&buf, &edit, 0, &cancelled, &err), 0);
    buf_deinit(&buf);
}

/* A text of one letter and half of it to look for: every place nearly matches, and to count them all would be
 * quadratic. */
static void test_a_text_that_is_all_near_misses(void **state)
{
    (void)state;
    enum { LEN = 4 * 1024 * 1024 };
    char *text = malloc(LEN);
    assert_non_null(text);
    memset(text, 'a', LEN);
    struct buf buf;
    buf_init(&buf, LEN);
    assert_int_equal(buf_append(&buf, text, LEN), 0);
    struct edit edit = {text, "b", LEN / 2 + 1, 1, false};
    clock_t before = clock();
    assert_int_equal(edits_apply(&buf, &edit, 1, NULL, &err), -1);
    assert_non_null(strstr(err.text, "occurs 2 times"));
    text[LEN / 4] = 'b';
    assert_int_equal(edits_apply(&buf, &edit, 1, NULL, &err), -1);
    assert_non_null(strstr(err.text, "occurs 0 times"));
    assert_true((clock() - before) / CLOCKS_PER_SEC < 20); /* quadratic would be an hour */
    buf_deinit(&buf);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_occurrence),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_a_text_that_is_all_near_misses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
