/* Cursors: what is written is read back, and nothing else is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prim/list_cursor.h"

#include <ctype.h>
#include <stdlib.h>

static void assert_read_back(const char *path, bool past_below)
{
    struct buf out;
    struct list_cursor cursor;
    buf_init(&out, 64 * 1024);
    assert_int_equal(list_cursor_write(&out, path, strlen(path), past_below), 0);
    for (size_t i = 0; i < out.len; i++)
        assert_true(isalnum((unsigned char)out.data[i]) || out.data[i] == '-' || out.data[i] == '_');
    assert_int_equal(list_cursor_read(out.data, out.len, &cursor), 0);
    assert_string_equal(cursor.path, path);
    assert_int_equal(cursor.past_below, past_below);
    free(cursor.path);
    buf_deinit(&out);
}

static void test_read_back(void **state)
{
    (void)state;
    char name[256], path[16 * 256];
    memset(name, 0xFB, 255);
    name[255] = '\0';
    path[0] = '\0';
    static const char *const paths[] = {"a", "a/b", "a/b/c", "\xFF\xFE\xFD/\n", "...", "~?>", "-"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_read_back(paths[i], false);
        assert_read_back(paths[i], true);
    }
    assert_read_back(name, false);
    for (int i = 0; i < 15; i++) { /* the longest path that there is */
        strcat(path, i > 0 ? "/" : "");
        strcat(path, name);
    }
    assert_read_back(path, false);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "Y",    "Yg",   "YQ",   "Yi8",  "YmEv",    "YmEvL2I",
                                        "Yi9h", "YmE=", "Ym E", "Ym+/", "YmEA", "YmF\n",   "YmF",
                                        "eGE",  "Qm",   "YgBh", "====", "____", "\xFF\xFF"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct list_cursor cursor;
        assert_int_equal(list_cursor_read(texts[i], strlen(texts[i]), &cursor), -1);
    }
    struct list_cursor cursor;
    char *longest = malloc(100000);
    memset(longest, 'Y', 100000);
    assert_int_equal(list_cursor_read(longest, 100000, &cursor), -1);
    free(longest);
}

static void test_full(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 3);
    assert_int_equal(list_cursor_write(&out, "abcdef", 6, false), -1);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
