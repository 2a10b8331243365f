/* A directory's names: all of them, sorted by bytes, with their types, from any position. */
#include "tree.h"

#include "prim/dir_scan.h"

#include <errno.h>

static void test_names_are_sorted(void **state)
{
    struct tree *tree = *state;
    static const char *const wanted[] = {" ", "-rf", ".hidden", "A", "a", "b\xa4", "d", "n\nl", "~"};
    for (size_t i = 0; i < 9; i++) {
        char name[32];
        snprintf(name, sizeof(name), "ws/%s", wanted[8 - i]);
        if (wanted[8 - i][0] == 'd')
            tree_dir(tree, name);
        else
            tree_file(tree, name, "");
    }
    int dir_fd = open(tree->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int round = 0; round < 2; round++) { /* the second begins where the first stopped */
        struct dir_scan scan;
        assert_int_equal(dir_scan(dir_fd, &scan), 0);
        assert_int_equal(scan.count, 9);
        for (size_t i = 0; i < 9; i++) {
            assert_string_equal(scan.names[i].name, wanted[i]);
            assert_true(scan.names[i].type == (i == 6 ? DT_DIR : DT_REG) || scan.names[i].type == DT_UNKNOWN);
        }
        dir_scan_free(&scan);
    }
    close(dir_fd);
}

static void test_many_and_none(void **state)
{
    struct tree *tree = *state;
    struct dir_scan scan;
    tree_dir(tree, "ws/many");
    tree_dir(tree, "ws/none");
    for (int i = 0; i < 5000; i++) {
        char name[300];
        snprintf(name, sizeof(name), "ws/many/%05d%0100d", i, i);
        tree_file(tree, name, "");
    }
    int many_fd = open(tree_path(tree, "ws/many"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(dir_scan(many_fd, &scan), 0);
    assert_int_equal(scan.count, 5000);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(atoi(scan.names[i].name + 5), i);
    dir_scan_free(&scan);
    close(many_fd);
    int none_fd = open(tree_path(tree, "ws/none"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(dir_scan(none_fd, &scan), 0);
    assert_int_equal(scan.count, 0);
    dir_scan_free(&scan);
    assert_int_equal(rmdir(tree_path(tree, "ws/none")), 0);
    assert_int_equal(dir_scan(none_fd, &scan), -1);
    assert_int_equal(errno, ENOENT); /* removed meanwhile */
    dir_scan_free(&scan);
    close(none_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_names_are_sorted),
        TREE_TEST(test_many_and_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
