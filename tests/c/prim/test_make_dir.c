/* Directories made, found to be there, and refused. */
#include "tree.h"

#include "prim/make_dir.h"

#include <pthread.h>

/* The code of a call, ERR_NONE where it is well; *out_created what it said. */
static enum err_code make(struct tree *tree, const char *path, bool parents, int mode, bool *out_created)
{
    char real[PATH_MAX];
    struct err err = {0};
    *out_created = false;
    return make_dir(tree->confine, path, strlen(path), parents, mode, real, out_created, &err) == 0 ? ERR_NONE
                                                                                                    : err.code;
}

static enum err_code code_of(struct tree *tree, const char *path, bool parents)
{
    bool created;
    return make(tree, path, parents, -1, &created);
}

static void assert_made(struct tree *tree, const char *path, bool parents, int mode, bool expected)
{
    bool created;
    assert_int_equal(make(tree, path, parents, mode, &created), ERR_NONE);
    assert_int_equal(created, expected);
}

static unsigned mode_of(struct tree *tree, const char *name)
{
    struct stat found;
    assert_int_equal(lstat(tree_path(tree, name), &found), 0);
    assert_true(S_ISDIR(found.st_mode));
    return found.st_mode & 07777;
}

static void test_made_once(void **state)
{
    struct tree *tree = *state;
    char real[PATH_MAX], expected[128];
    struct err err;
    bool created;
    assert_int_equal(make_dir(tree->confine, "a//b/./c/", 9, true, -1, real, &created, &err), 0);
    assert_true(created);
    snprintf(expected, sizeof(expected), "%s/a/b/c", tree->base);
    assert_string_equal(real, expected);
    assert_made(tree, "a/b/c", true, -1, false);
    assert_made(tree, "a/b/c/", false, -1, false);
    assert_made(tree, expected, true, -1, false);
    assert_made(tree, "a/b/../d", false, -1, true);
    assert_made(tree, "", true, -1, false);
    assert_made(tree, ".", false, -1, false);
    assert_made(tree, "a/..", true, -1, false);
    assert_made(tree, tree->base, true, -1, false);
    assert_made(tree, "b\xa4\n", true, -1, true);
    assert_true(tree_has(tree, "ws/b\xa4\n"));
}

static void test_modes(void **state)
{
    struct tree *tree = *state;
    mode_t before = umask(077);
    assert_made(tree, "by-umask/x", true, -1, true);
    assert_made(tree, "p/exact", true, 02775, true);
    assert_made(tree, "none", true, 0, true);
    assert_made(tree, "p/exact", true, 0700, false);
    umask(before);
    assert_int_equal(mode_of(tree, "ws/by-umask/x"), 0700);
    assert_int_equal(mode_of(tree, "ws/p"), 0700);
    assert_int_equal(mode_of(tree, "ws/p/exact"), 02775);
    assert_int_equal(mode_of(tree, "ws/none"), 0);
}

static void test_what_is_in_the_way(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "");
    tree_link(tree, "f", "ws/lf");
    tree_link(tree, "nowhere", "ws/dangling");
    tree_link(tree, "loop", "ws/loop");
    assert_int_equal(code_of(tree, "f", true), ERR_ALREADY_EXISTS);
    assert_int_equal(code_of(tree, "f", false), ERR_ALREADY_EXISTS);
    assert_int_equal(code_of(tree, "lf", true), ERR_ALREADY_EXISTS);
    assert_int_equal(code_of(tree, "f/x", true), ERR_ALREADY_EXISTS);
    assert_int_equal(code_of(tree, "f/x", false), ERR_NOT_A_DIRECTORY);
    assert_int_equal(code_of(tree, "dangling", true), ERR_ALREADY_EXISTS);
    assert_int_equal(code_of(tree, "loop", true), ERR_INVALID_PATH);
    assert_int_equal(code_of(tree, "new/x", false), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "new/../x", true), ERR_FILE_NOT_FOUND);
    assert_false(tree_has(tree, "ws/nowhere"));
    assert_false(tree_has(tree, "ws/new"));
}

static void test_links(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_link(tree, "d", "ws/in");
    tree_link(tree, tree_path(tree, "ws/d"), "ws/absolute");
    tree_link(tree, "../out", "ws/l");
    tree_link(tree, "../out/new", "ws/dangling");
    tree_link(tree, tree_path(tree, "ws-evil"), "ws/evil");
    assert_made(tree, "in", true, -1, false);
    assert_made(tree, "absolute", true, -1, false);
    assert_made(tree, "in/x", true, -1, true);
    assert_made(tree, "absolute/y/z", true, -1, true);
    assert_true(tree_has(tree, "ws/d/x") && tree_has(tree, "ws/d/y/z"));
    static const char *const outside[] = {"l",  "l/x",      "l/x/y",        "dangling", "dangling/x",   "evil/x",
                                          "..", "../out/x", "../ws-evil/x", "/x",       "d/../../out/x"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        assert_int_equal(code_of(tree, outside[i], true), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(tree_count(tree, "out"), 1);
    assert_int_equal(tree_count(tree, "ws-evil"), 1);
}

static void test_failure_leaves_nothing(void **state)
{
    struct tree *tree = *state;
    char path[1200] = "p/q/";
    memset(path + 4, 'n', NAME_MAX + 1);
    path[4 + NAME_MAX + 1] = '\0';
    assert_int_equal(code_of(tree, path, true), ERR_INVALID_PATH);
    assert_int_equal(tree_count(tree, "ws"), 0);
}

static void test_operator_and_kernel_paths(void **state)
{
    struct tree *tree = *state;
    struct err err;
    bool inside, created;
    char real[PATH_MAX];
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/abxd"), &inside, &err), 0);
    assert_int_equal(code_of(tree, "etc", true), ERR_PERMISSION_DENIED);
    assert_int_equal(code_of(tree, "etc/abxd/x", true), ERR_PERMISSION_DENIED);
    assert_int_equal(tree_count(tree, "ws"), 0);
    struct confine *root = confine_new("/", tree->walk, &err);
    assert_non_null(root);
    assert_int_equal(make_dir(root, "proc/x", 6, true, -1, real, &created, &err), -1);
    assert_int_equal(err.code, ERR_NOT_A_REGULAR_FILE);
    confine_free(root);
}

struct maker {
    struct tree *tree;
    int made;
};

static void *make_same(void *ctx)
{
    struct maker *maker = ctx;
    for (int i = 0; i < 200; i++) {
        char path[32];
        bool created;
        snprintf(path, sizeof(path), "r%d/x/y", i);
        if (make(maker->tree, path, true, 0755, &created) == ERR_NONE)
            maker->made += created;
        else
            maker->made -= 1000;
    }
    return NULL;
}

/* Two that make the same: one of them made it, and neither fails. */
static void test_races(void **state)
{
    struct tree *tree = *state;
    struct maker makers[2] = {{tree, 0}, {tree, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_same, &makers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(makers[0].made + makers[1].made, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_made_once),
        TREE_TEST(test_modes),
        TREE_TEST(test_what_is_in_the_way),
        TREE_TEST(test_links),
        TREE_TEST(test_failure_leaves_nothing),
        TREE_TEST(test_operator_and_kernel_paths),
        TREE_TEST(test_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
