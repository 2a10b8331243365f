/* Where a clone goes: found, refused, and taken back with all that was made for it. */
#include "tree.h"

#include "prim/clone_target.h"

static enum err_code open_target(struct tree *tree, const char *path, struct clone_target *out)
{
    struct err err = {0};
    return clone_target_open(tree->confine, path, strlen(path), out, &err) == 0 ? ERR_NONE : err.code;
}

static void assert_refused(struct tree *tree, const char *path, enum err_code code)
{
    struct clone_target target;
    assert_int_equal(open_target(tree, path, &target), code);
}

static void test_new_and_empty(void **state)
{
    struct tree *tree = *state;
    struct clone_target target;
    char expected[128];
    tree_dir(tree, "ws/empty");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "empty" : "new";
        assert_int_equal(open_target(tree, name, &target), ERR_NONE);
        snprintf(expected, sizeof(expected), "%s/%s", tree->base, name);
        assert_string_equal(target.path, expected);
        assert_int_equal(strlen(target.temporary), STAGED_NAME_LEN);
        clone_target_close(&target);
    }
    assert_int_equal(tree_count(tree, "ws"), 1); /* nothing was made */
}

static void test_taken_back_with_its_folders(void **state)
{
    struct tree *tree = *state;
    struct clone_target target;
    char inside[128];
    tree_dir(tree, "ws/kept");
    assert_int_equal(open_target(tree, "kept/a/b/c", &target), ERR_NONE);
    assert_true(tree_has(tree, "ws/kept/a/b"));
    assert_false(tree_has(tree, "ws/kept/a/b/c"));
    snprintf(inside, sizeof(inside), "ws/kept/a/b/%s", target.temporary);
    tree_dir(tree, inside);
    snprintf(inside, sizeof(inside), "ws/kept/a/b/%s/f", target.temporary);
    tree_file(tree, inside, "x");
    clone_target_undo(tree->confine, &target);
    assert_int_equal(tree_count(tree, "ws/kept"), 0);
}

/* What others put there meanwhile stays. */
static void test_only_what_is_its_own(void **state)
{
    struct tree *tree = *state;
    struct clone_target target;
    assert_int_equal(open_target(tree, "a/b/c", &target), ERR_NONE);
    tree_file(tree, "ws/a/other", "x");
    clone_target_undo(tree->confine, &target);
    assert_int_equal(tree_count(tree, "ws/a"), 1);
    assert_string_equal(tree_text(tree, "ws/a/other"), "x");
}

static void test_refused(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/full");
    tree_file(tree, "ws/full/f", "x");
    tree_file(tree, "ws/file", "x");
    tree_link(tree, "nowhere", "ws/dangling");
    tree_link(tree, "../out", "ws/l");
    assert_refused(tree, "full", ERR_ALREADY_EXISTS);
    assert_refused(tree, "file", ERR_ALREADY_EXISTS);
    assert_refused(tree, ".", ERR_ALREADY_EXISTS);
    assert_refused(tree, "file/x", ERR_NOT_A_DIRECTORY);
    assert_refused(tree, "l/x", ERR_PATH_OUTSIDE_BASE);
    assert_refused(tree, "l", ERR_PATH_OUTSIDE_BASE);
    assert_refused(tree, "../ws-evil/x", ERR_PATH_OUTSIDE_BASE);
    assert_refused(tree, "full/../../x", ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(tree_count(tree, "out"), 1);
    assert_int_equal(tree_count(tree, "ws"), 4);
}

static void test_links_inside_are_followed(void **state)
{
    struct tree *tree = *state;
    struct clone_target target;
    char expected[128];
    tree_dir(tree, "ws/real");
    tree_link(tree, "real", "ws/l");
    assert_int_equal(open_target(tree, "l/x", &target), ERR_NONE);
    snprintf(expected, sizeof(expected), "%s/real/x", tree->base);
    assert_string_equal(target.path, expected);
    clone_target_close(&target);
    assert_int_equal(open_target(tree, "l", &target), ERR_NONE);
    snprintf(expected, sizeof(expected), "%s/real", tree->base);
    assert_string_equal(target.path, expected);
    clone_target_close(&target);
}

/* An empty directory stays the one it is, the base too. */
static void test_inside(void **state)
{
    struct tree *tree = *state;
    struct clone_target target;
    char path[128];
    assert_int_equal(open_target(tree, ".", &target), ERR_NONE);
    assert_true(target.inside);
    assert_string_equal(target.path, tree->base);
    snprintf(path, sizeof(path), "ws/%s", target.temporary);
    tree_dir(tree, path);
    snprintf(path, sizeof(path), "ws/%s/f", target.temporary);
    tree_file(tree, path, "x");
    struct clone_target second; /* what is about to go is nothing */
    assert_int_equal(open_target(tree, tree->base, &second), ERR_NONE);
    clone_target_close(&second);
    clone_target_undo(tree->confine, &target);
    assert_int_equal(tree_count(tree, "ws"), 0);
    tree_dir(tree, "ws/empty");
    assert_refused(tree, ".", ERR_ALREADY_EXISTS);
    assert_int_equal(open_target(tree, "empty", &target), ERR_NONE);
    assert_true(target.inside);
    clone_target_undo(tree->confine, &target);
    assert_int_equal(tree_count(tree, "ws"), 1);
    assert_int_equal(open_target(tree, "new", &target), ERR_NONE);
    assert_false(target.inside);
    clone_target_close(&target);
}

/* A refusal behind folders that were made for it takes them back. */
static void test_failure_leaves_nothing(void **state)
{
    struct tree *tree = *state;
    char path[PATH_MAX] = "a/b/";
    memset(path + 4, 'x', NAME_MAX + 20);
    path[4 + NAME_MAX + 20] = '\0';
    struct clone_target target;
    assert_int_not_equal(open_target(tree, path, &target), ERR_NONE);
    assert_int_equal(tree_count(tree, "ws"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_new_and_empty),
        TREE_TEST(test_taken_back_with_its_folders),
        TREE_TEST(test_only_what_is_its_own),
        TREE_TEST(test_refused),
        TREE_TEST(test_links_inside_are_followed),
        TREE_TEST(test_inside),
        TREE_TEST(test_failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
