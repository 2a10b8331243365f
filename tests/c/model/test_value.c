/* Value trees: what a document becomes, duplicate names, and the arena's limit. */
#include "base/buf.h"
#include "model/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct arena arena;
static struct err err;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 64 * 1024 * 1024);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static struct value parse(const char *text)
{
    struct value value;
    assert_int_equal(value_parse(&arena, text, strlen(text), &value, &err), 0);
    return value;
}

static void test_tree(void **state)
{
    (void)state;
    struct value root = parse("{\"a\":[1,[2.5],{}],\"b\\u0000\":{\"c\":null,\"d\":\"x\\u0000y\"},\"e\":true}");
    assert_int_equal(root.type, VALUE_OBJECT);
    assert_int_equal(root.as.object.count, 3);
    struct value *a = value_member(&root, "a", 1);
    assert_int_equal(a->type, VALUE_ARRAY);
    assert_int_equal(a->as.array.count, 3);
    assert_int_equal(a->as.array.items[0].as.integer, 1);
    assert_true(a->as.array.items[1].as.array.items[0].as.number == 2.5);
    assert_int_equal(a->as.array.items[2].type, VALUE_OBJECT);
    assert_int_equal(a->as.array.items[2].as.object.count, 0);
    struct value *b = value_member(&root, "b\0", 2);
    assert_non_null(b);
    assert_null(value_member(&root, "b", 1));
    assert_int_equal(value_member(b, "c", 1)->type, VALUE_NULL);
    struct value *d = value_member(b, "d", 1);
    assert_int_equal(d->as.string.len, 3);
    assert_memory_equal(d->as.string.text, "x\0y", 4);
    assert_true(value_member(&root, "e", 1)->as.boolean);
    assert_null(value_member(d, "x", 1));
}

static void test_scalars_and_errors(void **state)
{
    (void)state;
    assert_int_equal(parse("7").as.integer, 7);
    assert_int_equal(parse("[]").as.array.count, 0);
    struct value untouched = {.type = VALUE_BOOL};
    assert_int_equal(value_parse(&arena, "[1,", 3, &untouched, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_JSON);
    assert_int_equal(untouched.type, VALUE_BOOL);
    assert_string_equal(value_type_name(VALUE_OBJECT), "an object");
    assert_string_equal(value_type_name(VALUE_INT), "an integer");
}

static void test_duplicates(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"\\u0061\":3}",
                                      "[{\"x\":{\"\":1,\"\":2}}]"};
    struct value value;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(value_parse(&arena, bad[i], strlen(bad[i]), &value, &err), -1);
        assert_int_equal(err.code, ERR_INVALID_JSON);
    }
    assert_string_equal(err.text, "the member \"\" stands twice in one object");
    assert_int_equal(parse("{\"a\":{\"a\":1},\"A\":2,\"aa\":3}").as.object.count, 3);
}

static void test_many_names(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    for (int twice = 0; twice < 2; twice++) {
        struct buf text;
        buf_init(&text, 16 * 1024 * 1024);
        assert_int_equal(buf_append_text(&text, "{\"last\":0"), 0);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(buf_printf(&text, ",\"k%d\":%d", i, i), 0);
        assert_int_equal(buf_append_text(&text, twice ? ",\"k5\":1}" : "}"), 0);
        struct value value;
        clock_t before = clock();
        assert_int_equal(value_parse(&arena, text.data, text.len, &value, &err), twice ? -1 : 0);
        assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 5);
        if (!twice)
            assert_int_equal(value_member(&value, "k99999", 6)->as.integer, 99999);
        buf_deinit(&text);
    }
    assert_string_equal(err.text, "the member \"k5\" stands twice in one object");
}

static void test_limit(void **state)
{
    (void)state;
    enum { LEN = 1024 * 1024 };
    struct arena small;
    struct value value;
    char *text = malloc(LEN);
    text[0] = '[';
    text[1] = '0';
    text[2] = ',';
    for (size_t i = 3; i < LEN; i++)
        text[i] = "0,"[(i - 3) % 2];
    text[LEN - 1] = ']';
    text[LEN - 2] = '0';
    text[LEN - 3] = ',';
    text[LEN - 4] = '0';
    arena_init(&small, LEN);
    assert_int_equal(value_parse(&small, text, LEN, &value, &err), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    arena_deinit(&small);

    memset(text, 'x', LEN);
    text[0] = text[LEN - 1] = '"';
    arena_init(&small, LEN - 100);
    assert_int_equal(value_parse(&small, text, LEN, &value, &err), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    arena_deinit(&small);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scalars_and_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_duplicates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
