/* Members cut out of valid JSON text, and what is cut short. */
#include "base/json_member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, const char *name, const char *expected)
{
    /* On the heap without a NUL, so that the sanitizer sees a step too far. */
    size_t len = strlen(text);
    char *copy = malloc(len + (len == 0));
    memcpy(copy, text, len);
    struct json_span span = json_member(copy, len, name);
    if (expected == NULL) {
        assert_null(span.text);
        assert_false(json_span_is(span, ""));
        assert_int_equal(json_span_kind(span), 0);
    } else {
        assert_true(json_span_is(span, expected));
        assert_int_equal(json_span_kind(span), expected[0]);
    }
    free(copy);
}

static void test_finds(void **state)
{
    (void)state;
    const char *text = " { \"a\" : 1 ,\"s\":\"x\\\"}\\\\\",\"o\":{\"a\":[2,{}]},\"l\":[ ],\"n\":null , \"t\":true}";
    expect(text, "a", "1");
    expect(text, "s", "\"x\\\"}\\\\\"");
    expect(text, "o", "{\"a\":[2,{}]}");
    expect(text, "l", "[ ]");
    expect(text, "n", "null");
    expect(text, "t", "true");
    expect(text, "x", NULL);
    expect("{\"a\":1,\"a\":2}", "a", "1");
    expect("{\"id\":7}", "id", "7");
    expect("{\"\\u0061\":1}", "a", NULL);
}

static void test_finds_several(void **state)
{
    (void)state;
    const char *text = "{\"b\":[{\"a\":1}],\"a\":\"\\\\\\\"\\\\\",\"c\":{}}";
    struct json_span a = {0}, b = {0}, none = {0};
    const struct json_wanted wanted[] = {{"a", &a}, {"b", &b}, {"d", &none}};
    assert_true(json_members(text, strlen(text), wanted, 3));
    assert_true(json_span_is(a, "\"\\\\\\\"\\\\\""));
    assert_true(json_span_is(b, "[{\"a\":1}]"));
    assert_null(none.text);
    text = "{\"d\":1,\"e\":2,\"e\":3,\"d\":4}";
    assert_false(json_members(text, strlen(text), &wanted[2], 1));
    assert_true(json_span_is(none, "1"));
    assert_true(json_members(text, strlen(text), wanted, 0));
    assert_true(json_members(NULL, 0, wanted, 3));
}

static void test_finds_nothing(void **state)
{
    (void)state;
    expect("{}", "a", NULL);
    expect("[{\"a\":1}]", "a", NULL);
    expect("\"a\"", "a", NULL);
    expect("7", "a", NULL);
    expect("", "a", NULL);
    expect("  ", "a", NULL);
}

static void test_cut_text_is_never_left(void **state)
{
    (void)state;
    const char *text = "{\"key\":{\"a\":\"b\\\\\"},\"other\":[1,2]}";
    for (size_t len = 0; len < strlen(text); len++) {
        char *copy = malloc(len + 1);
        memcpy(copy, text, len);
        char *exact = realloc(copy, len > 0 ? len : 1);
        json_member(exact, len, "other");
        json_member(exact, len, "none");
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds),
        cmocka_unit_test(test_finds_several),
        cmocka_unit_test(test_finds_nothing),
        cmocka_unit_test(test_cut_text_is_never_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
