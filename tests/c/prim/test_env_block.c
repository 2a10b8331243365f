/* prim/env_block: inheriting, setting, removing, and which names are names. */
#include "prim/env_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void inherits_all_but_our_own(void **state)
{
    (void)state;
    char *envp[] = {"PATH=/bin", "ABX_SERVER_TOKEN=secret", "EMPTY=", "nonsense", "A=b=c", "ABX_OTHER=1", NULL};
    struct env_block block;
    env_block_init(&block);
    assert_int_equal(env_block_inherit(&block, envp), 0);
    assert_int_equal(block.count, 4);
    assert_string_equal(env_block_get(&block, "PATH"), "/bin");
    assert_string_equal(env_block_get(&block, "EMPTY"), "");
    assert_string_equal(env_block_get(&block, "A"), "b=c");
    assert_string_equal(env_block_get(&block, "ABX_OTHER"), "1");
    assert_null(env_block_get(&block, "ABX_SERVER_TOKEN"));
    assert_null(block.vars[block.count]);
    env_block_deinit(&block);
}

static void set_replaces_and_unset_removes(void **state)
{
    (void)state;
    struct env_block block;
    env_block_init(&block);
    env_block_unset(&block, "MISSING");
    assert_null(env_block_get(&block, "A"));
    assert_int_equal(env_block_set(&block, "A", "1"), 0);
    assert_int_equal(env_block_set(&block, "AB", "2"), 0);
    assert_int_equal(env_block_set(&block, "A", "3"), 0);
    assert_int_equal(block.count, 2);
    assert_string_equal(block.vars[0], "A=3");
    env_block_unset(&block, "A");
    assert_int_equal(block.count, 1);
    assert_string_equal(block.vars[0], "AB=2");
    assert_null(block.vars[1]);
    env_block_deinit(&block);
}

static void holds_many(void **state)
{
    (void)state;
    struct env_block block;
    char name[32];
    env_block_init(&block);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "VAR_%d", i);
        assert_int_equal(env_block_set(&block, name, name), 0);
        assert_null(block.vars[block.count]);
    }
    assert_int_equal(block.count, 1000);
    assert_string_equal(env_block_get(&block, "VAR_999"), "VAR_999");
    env_block_deinit(&block);
}

static void names(void **state)
{
    (void)state;
    const char *good[] = {"A", "_", "a1", "LONG_NAME_2"};
    const char *bad[] = {"", "1A", "A-B", "A B", "A=B", "\xc3\xa4", "A."};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_true(env_name_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(env_name_valid(bad[i], strlen(bad[i])));
    assert_false(env_name_valid("A\0B", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inherits_all_but_our_own),
        cmocka_unit_test(set_replaces_and_unset_removes),
        cmocka_unit_test(holds_many),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
