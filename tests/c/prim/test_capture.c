/* prim/capture: head, tail, and what falls out between them. */
#include "prim/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void keeps_all_that_fits(void **state)
{
    (void)state;
    struct capture capture;
    struct capture_view view;
    capture_init(&capture, 10);
    capture_view(&capture, &view);
    assert_int_equal(view.head_len + view.tail_len, 0);
    capture_append(&capture, "abcdefg", 7);
    capture_append(&capture, "hij", 3);
    capture_view(&capture, &view);
    assert_int_equal(view.total_bytes, 10);
    assert_int_equal(view.head_len, 5);
    assert_memory_equal(view.head, "abcde", 5);
    assert_int_equal(view.tail_len, 5);
    assert_memory_equal(view.tail, "fghij", 5);
    capture_deinit(&capture);
}

static void drops_the_middle(void **state)
{
    (void)state;
    struct capture capture;
    struct capture_view view;
    capture_init(&capture, 9);
    for (char c = 'a'; c <= 'z'; c++)
        capture_append(&capture, &c, 1);
    capture_view(&capture, &view);
    assert_int_equal(view.total_bytes, 26);
    assert_int_equal(view.head_len, 4);
    assert_memory_equal(view.head, "abcd", 4);
    assert_int_equal(view.tail_len, 5);
    assert_memory_equal(view.tail, "vwxyz", 5);
    capture_deinit(&capture);
}

static void one_large_piece(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20, LEN = 3 << 20 };
    struct capture capture;
    struct capture_view view;
    char *bytes = malloc(LEN);
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (char)(i % 253);
    capture_init(&capture, LIMIT);
    capture_append(&capture, bytes, LEN - 1000);
    capture_append(&capture, bytes + LEN - 1000, 1000);
    capture_view(&capture, &view);
    assert_int_equal(view.total_bytes, LEN);
    assert_int_equal(view.head_len, LIMIT / 2);
    assert_memory_equal(view.head, bytes, LIMIT / 2);
    assert_int_equal(view.tail_len, LIMIT / 2);
    assert_memory_equal(view.tail, bytes + LEN - LIMIT / 2, LIMIT / 2);
    capture_deinit(&capture);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_all_that_fits),
        cmocka_unit_test(drops_the_middle),
        cmocka_unit_test(one_large_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
