/* The arena: alignment, zeroes, the limit, and what a reset keeps. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 10 * 1024 * 1024);
    assert_null(arena.blocks);
    for (size_t size = 0; size < 3000; size += 7) {
        char *memory = arena_alloc(&arena, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xFF, size);
    }
    char *big = arena_alloc(&arena, 5 * 1024 * 1024);
    assert_int_equal(big[5 * 1024 * 1024 - 1], 0);
    assert_non_null(arena_alloc(&arena, 10));
    arena_reset(&arena);
    char *again = arena_alloc(&arena, 2000);
    for (size_t i = 0; i < 2000; i++)
        assert_int_equal(again[i], 0);
    arena_deinit(&arena);
}

static void test_limit(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1024);
    assert_non_null(arena_alloc(&arena, 512));
    assert_null(arena_alloc(&arena, 513));
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 15));
    assert_null(arena_strndup(&arena, "x", SIZE_MAX));
    assert_non_null(arena_alloc(&arena, 512));
    assert_int_equal(arena.used_bytes, 1024);
    assert_null(arena_alloc(&arena, 1));
    arena_reset(&arena);
    assert_non_null(arena_alloc(&arena, 1024));
    arena_deinit(&arena);
    arena_deinit(&arena);
}

static void test_strings_keep_nul(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1024);
    char *copy = arena_strndup(&arena, "a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(arena_strndup(&arena, NULL, 0), "");
    arena_deinit(&arena);
}

static void test_huge_first_block_is_not_kept(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 64 * 1024 * 1024);
    assert_non_null(arena_alloc(&arena, 32 * 1024 * 1024));
    arena_reset(&arena);
    assert_null(arena.blocks);
    assert_non_null(arena_alloc(&arena, 100));
    arena_reset(&arena);
    assert_non_null(arena.blocks);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_and_aligned),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_strings_keep_nul),
        cmocka_unit_test(test_huge_first_block_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
