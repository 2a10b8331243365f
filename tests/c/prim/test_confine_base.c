/* Bases by other names: a link, an alias, the root of the file system. */
#include "confine_reads.h"

static void test_base_by_other_names(void **state)
{
    struct tree *tree = *state;
    struct err err;
    char path[PATH_MAX];
    tree_file(tree, "ws/f", "here");
    tree_link(tree, "ws", "alias");
    snprintf(path, sizeof(path), "%s/alias/f", tree->top);
    assert_reads(tree, path, "here"); /* found by identity */
    struct tree named = *tree;
    named.confine = confine_new(tree_path(tree, "alias//"), tree->walk, &err);
    assert_non_null(named.confine);
    assert_string_equal(confine_base_dir(named.confine), tree->base);
    assert_reads(&named, path, "here"); /* as configured */
    snprintf(path, sizeof(path), "%s/f", tree->base);
    assert_reads(&named, path, "here"); /* its real name */
    snprintf(path, sizeof(path), "%s/aliasf", tree->top);
    assert_int_equal(code_of(&named, path), ERR_PATH_OUTSIDE_BASE);
    confine_free(named.confine);
    assert_null(confine_new(tree_path(tree, "none"), tree->walk, &err));
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_null(confine_new(tree_path(tree, "ws/f"), tree->walk, &err));
    assert_int_equal(err.code, ERR_NOT_A_DIRECTORY);
}

/* A base is what it was when the server started, wherever its name leads later. */
static void test_base_that_is_a_link_is_moved(void **state)
{
    struct tree *tree = *state;
    struct err err;
    char path[PATH_MAX];
    tree_file(tree, "ws/f", "here");
    tree_file(tree, "out/f", "secret");
    tree_link(tree, "ws", "alias");
    struct tree named = *tree;
    named.confine = confine_new(tree_path(tree, "alias"), tree->walk, &err);
    assert_non_null(named.confine);
    assert_int_equal(unlink(tree_path(tree, "alias")), 0);
    tree_link(tree, "out", "alias");
    snprintf(path, sizeof(path), "%s/alias/f", tree->top);
    assert_reads(&named, path, "here");
    assert_reads(&named, "f", "here");
    assert_int_equal(rename(tree->base, tree_path(tree, "moved")), 0);
    assert_int_equal(rename(tree_path(tree, "out"), tree->base), 0);
    assert_reads(&named, "f", "here");
    assert_int_equal(code_of(&named, "../ws/f"), ERR_PATH_OUTSIDE_BASE);
    confine_free(named.confine);
}

static void test_entries_with_root_as_base(void **state)
{
    struct tree *tree = *state;
    struct err err;
    struct confine_entry entry;
    struct stat found;
    char path[PATH_MAX];
    struct confine *root = confine_new("/", tree->walk, &err);
    assert_non_null(root);
    tree_link(tree, tree_path(tree, "out/new"), "ws/dangling");
    snprintf(path, sizeof(path), "%s/dangling", tree->base);
    assert_int_equal(confine_parent(root, path, strlen(path), CONFINE_FOLLOW, &entry, &err), 0);
    assert_string_equal(entry.name, "new");
    assert_int_equal(fstatat(entry.dir_fd, "secret", &found, 0), 0);
    close(entry.dir_fd);
    assert_int_equal(confine_parent(root, "/tmp", 4, 0, &entry, &err), 0);
    assert_string_equal(entry.name, "tmp");
    close(entry.dir_fd);
    const char *itself[] = {"/", "", "//", "/tmp/..", "."};
    for (size_t i = 0; i < sizeof(itself) / sizeof(itself[0]); i++) {
        assert_int_equal(confine_parent(root, itself[i], strlen(itself[i]), 0, &entry, &err), -1);
        assert_int_equal(err.code, ERR_BASE_DIR_PROTECTED);
    }
    assert_int_equal(confine_parent(root, "/../tmp", 7, 0, &entry, &err), -1);
    assert_int_equal(err.code, ERR_PATH_OUTSIDE_BASE);
    confine_free(root);
}

static void test_root_as_base(void **state)
{
    struct tree *tree = *state;
    struct err err;
    struct tree root = *tree;
    root.confine = confine_new("/", tree->walk, &err);
    assert_non_null(root.confine);
    assert_string_equal(confine_base_dir(root.confine), "/");
    tree_link(tree, tree_path(tree, "out"), "ws/l");
    assert_reads(&root, tree_path(tree, "out/secret"), "secret");
    assert_reads(&root, tree_path(tree, "out/secret") + 1, "secret");
    assert_reads(&root, tree_path(tree, "ws/l/secret"), "secret");
    assert_int_equal(code_of(&root, "/.."), ERR_PATH_OUTSIDE_BASE);
    /* Magic links are text; procfs and sysfs are never read; devices are no files. */
    assert_int_equal(code_of(&root, "/proc/self/root"), ERR_IS_A_DIRECTORY);
    assert_int_equal(code_of(&root, "/proc/self/status"), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(code_of(&root, "/proc/self/environ"), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(code_of(&root, "/sys/kernel/notes"), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(code_of(&root, "/dev/null"), ERR_NOT_A_REGULAR_FILE);
    int pipe_fds[2];
    char path[64];
    assert_int_equal(pipe(pipe_fds), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pipe_fds[0]);
    assert_int_equal(code_of(&root, path), ERR_FILE_NOT_FOUND); /* "pipe:[1]" is a name like any other */
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    confine_free(root.confine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_base_by_other_names),
        TREE_TEST(test_base_that_is_a_link_is_moved),
        TREE_TEST(test_root_as_base),
        TREE_TEST(test_entries_with_root_as_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
