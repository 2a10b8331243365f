/* Files as JSON text: every member, names that are no UTF-8, times before 1970 and far ahead, etags. */
#include "tree.h"

#include "prim/entry.h"

#include <errno.h>

static char *ended(struct buf *out)
{
    assert_int_equal(buf_append(out, "", 1), 0);
    return out->data;
}

static void test_members(void **state)
{
    (void)state;
    struct buf out;
    struct entry_names names = {0};
    struct stat found = {.st_mode = S_IFREG | 04750, .st_size = 12, .st_uid = 0, .st_gid = 4123456789u};
    found.st_mtim = (struct timespec){1769860800, 123456789};
    buf_init(&out, 4096);
    assert_int_equal(entry_write(&out, &names, "/ws/a \"b\"", 9, &found, NULL, 0), 0);
    assert_string_equal(ended(&out),
                        "\"path\":\"/ws/a \\\"b\\\"\",\"name\":\"a \\\"b\\\"\",\"type\":\"file\",\"size\":12,"
                        "\"mode\":\"4750\",\"owner\":\"root\",\"group\":\"4123456789\","
                        "\"modified_at\":\"2026-01-31T12:00:00.123Z\"");
    buf_reset(&out);
    found.st_mode = S_IFLNK | 0777;
    assert_int_equal(entry_write(&out, &names, "/l", 2, &found, "to\xff", 3), 0);
    assert_non_null(strstr(ended(&out), "\"target\":\"to\xEF\xBF\xBD\",\"target_base64\":\"dG//\""));
    buf_reset(&out);
    assert_int_equal(entry_write(&out, &names, "/", 1, &found, NULL, 0), 0);
    assert_non_null(strstr(ended(&out), "\"path\":\"/\",\"name\":\"/\""));
    buf_deinit(&out);
    buf_init(&out, 60);
    assert_int_equal(entry_write(&out, &names, "/l", 2, &found, NULL, 0), -1);
    buf_deinit(&out);
    entry_names_free(&names);
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        struct timespec time;
        const char *text;
    } cases[] = {
        {{0, 0}, "\"t\":\"1970-01-01T00:00:00.000Z\""},
        {{-1, 999999999}, "\"t\":\"1969-12-31T23:59:59.999Z\""},
        {{951782400, 1000000}, "\"t\":\"2000-02-29T00:00:00.001Z\""},
        {{4107542399, 0}, "\"t\":\"2100-02-28T23:59:59.000Z\""},
        {{4107542400, 0}, "\"t\":\"2100-03-01T00:00:00.000Z\""},
        {{-62135596800, 0}, "\"t\":\"0001-01-01T00:00:00.000Z\""},
        {{253402300799, 0}, "\"t\":\"9999-12-31T23:59:59.000Z\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out;
        buf_init(&out, 100);
        assert_int_equal(entry_write_time(&out, "t", &cases[i].time), 0);
        assert_string_equal(ended(&out), cases[i].text);
        buf_deinit(&out);
    }
}

static void test_types_on_the_disk(void **state)
{
    struct tree *tree = *state;
    struct entry_names names = {0};
    static const char *const wanted[][2] = {{"f", "file"}, {"d", "directory"}, {"l", "symlink"}, {"p", "fifo"}};
    tree_file(tree, "ws/f", "abc");
    tree_dir(tree, "ws/d");
    assert_int_equal(symlink("nowhere", tree_path(tree, "ws/l")), 0);
    assert_int_equal(mkfifo(tree_path(tree, "ws/p"), 0600), 0);
    int dir_fd = open(tree->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct buf out;
        char type[40];
        buf_init(&out, 4096);
        assert_int_equal(entry_write_at(&out, &names, dir_fd, tree->base, wanted[i][0]), 0);
        snprintf(type, sizeof(type), "\"type\":\"%s\"", wanted[i][1]);
        assert_non_null(strstr(ended(&out), type));
        assert_true((strstr(out.data, "\"target\":\"nowhere\"}") != NULL) == (wanted[i][0][0] == 'l'));
        buf_deinit(&out);
    }
    struct buf out;
    buf_init(&out, 10);
    assert_int_equal(entry_write_at(&out, &names, dir_fd, tree->base, "missing"), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(entry_write_at(&out, &names, dir_fd, tree->base, "f"), -1);
    assert_int_equal(errno, ENOBUFS);
    buf_deinit(&out);
    close(dir_fd);
    entry_names_free(&names);
}

static void test_etags_differ(void **state)
{
    (void)state;
    struct stat one = {.st_ino = 1, .st_size = 2}, other = one;
    char left[ENTRY_ETAG_MAX], right[ENTRY_ETAG_MAX];
    entry_etag(left, &one);
    assert_string_equal(left, "\"1-2-0-0\"");
    other.st_ctim.tv_nsec = 1;
    entry_etag(right, &other);
    assert_string_not_equal(left, right);
    one.st_ino = UINT64_MAX;
    one.st_size = INT64_MAX;
    one.st_mtim = one.st_ctim = (struct timespec){INT64_MAX, 999999999};
    entry_etag(left, &one);
    assert_int_equal(left[strlen(left) - 1], '"');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_times),
        TREE_TEST(test_types_on_the_disk),
        cmocka_unit_test(test_etags_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
