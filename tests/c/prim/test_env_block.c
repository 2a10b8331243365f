/* prim/env_block: inheriting, setting, removing, and which names are names. */
#include "prim/env_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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
    clock_t start = clock();
    for (int i = 0; i < 60000; i++) {
        snprintf(name, sizeof(name), "VAR_%d", i);
        assert_int_equal(env_block_set(&block, name, name), 0);
        assert_null(block.vars[block.count]);
    }
    assert_int_equal(block.count, 60000);
    assert_string_equal(env_block_get(&block, "VAR_59999"), "VAR_59999");
    for (int i = 0; i < 60000; i++) {
        snprintf(name, sizeof(name), "VAR_%d", i);
        env_block_unset(&block, name);
    }
    assert_int_equal(block.count, 0);
    env_block_deinit(&block);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 2); /* a search from the front takes a quarter of a minute */
}

/* Against a plain list, with few names, so that the index is full of neighbours that come and go. */
static void finds_what_is_set_in_any_order(void **state)
{
    (void)state;
    enum { NAMES = 200, STEPS = 20000 };
    struct env_block block;
    int values[NAMES] = {0}; /* 0: not set */
    char name[16], value[16];
    unsigned random = 1;
    env_block_init(&block);
    for (int step = 1; step <= STEPS; step++) {
        random = random * 1103515245u + 12345u;
        int which = (int)(random >> 8) % NAMES;
        snprintf(name, sizeof(name), "N%d", which);
        snprintf(value, sizeof(value), "%d", step);
        values[which] = (random >> 20) % 3 == 0 ? 0 : step;
        if (values[which] == 0)
            env_block_unset(&block, name);
        else
            assert_int_equal(env_block_set(&block, name, value), 0);
        if (step % 100 != 0)
            continue;
        size_t count = 0;
        for (int i = 0; i < NAMES; i++) {
            snprintf(name, sizeof(name), "N%d", i);
            snprintf(value, sizeof(value), "%d", values[i]);
            const char *found = env_block_get(&block, name);
            assert_int_equal(found != NULL, values[i] != 0);
            if (found != NULL)
                assert_string_equal(found, value);
            count += found != NULL;
        }
        assert_int_equal(block.count, count);
        assert_null(block.vars[block.count]);
    }
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
        cmocka_unit_test(finds_what_is_set_in_any_order),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
