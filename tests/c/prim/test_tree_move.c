/* Moves across file systems, what they refuse, and that the source outlives every failure. */
#include "transfer_fixture.h"

#include "prim/tree_sum.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* ws/far is another file system, of 2 MiB. */
static bool mount_far(const struct tree *tree, const char *test)
{
    tree_dir(tree, "ws/far");
    return may_mount(test) && mount("tmpfs", tree_path(tree, "ws/far"), "tmpfs", 0, "size=2m") == 0;
}

static void unmount_far(const struct tree *tree)
{
    assert_int_equal(umount2(tree_path(tree, "ws/far"), MNT_DETACH), 0);
}

static void test_across(void **state)
{
    struct tree *tree = *state;
    if (!mount_far(tree, "test_across"))
        return;
    tree_dir(tree, "ws/t");
    tree_file(tree, "ws/t/f", "content");
    tree_link(tree, "../../out", "ws/t/l");
    assert_int_equal(move_path(tree, "t", "far/new/u", false), ERR_NONE);
    assert_false(tree_has(tree, "ws/t"));
    assert_string_equal(tree_text(tree, "ws/far/new/u/f"), "content");
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
    assert_int_equal(move_path(tree, "far/new/u/l", "l", false), ERR_NONE);
    assert_int_equal(tree_count(tree, "ws/far/new/u"), 1);
    tree_file(tree, "ws/f", "old");
    assert_int_equal(move_path(tree, "f", "far/new/u/f", false), ERR_ALREADY_EXISTS);
    assert_int_equal(move_path(tree, "f", "far/new/u/f", true), ERR_NONE);
    assert_string_equal(tree_text(tree, "ws/far/new/u/f"), "old");
    assert_int_equal(tree_count(tree, "ws/far/new/u"), 1);
    assert_int_equal(tree_count(tree, "ws/far"), 1);
    unmount_far(tree);
}

static void test_source_survives(void **state)
{
    struct tree *tree = *state;
    if (!mount_far(tree, "test_source_survives"))
        return;
    tree_dir(tree, "ws/t");
    tree_file(tree, "ws/t/a", "a");
    tree_file(tree, "ws/t/big", "b");
    int fd = open(tree_path(tree, "ws/t/big"), O_WRONLY);
    for (int i = 0; i < 48; i++) {
        char block[65536] = {1};
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    }
    close(fd);
    assert_int_equal(move_path(tree, "t", "far/new/u", false), ERR_NO_SPACE);
    assert_string_equal(transfer_err.field, "destination");
    assert_int_equal(tree_count(tree, "ws/far"), 0);
    assert_int_equal(tree_count(tree, "ws/t"), 2);
    assert_int_equal(unlink(tree_path(tree, "ws/t/big")), 0);

    atomic_store(&transfer_cancelled, true);
    assert_int_not_equal(move_path(tree, "t", "far/new/u", false), ERR_NONE);
    atomic_store(&transfer_cancelled, false);
    assert_int_equal(tree_count(tree, "ws/far"), 0);
    assert_string_equal(tree_text(tree, "ws/t/a"), "a");

    tree_dir(tree, "ws/far/full");
    tree_file(tree, "ws/far/full/x", "x");
    assert_int_equal(move_path(tree, "t", "far/full", true), ERR_NOT_EMPTY);
    assert_int_equal(move_path(tree, "t/a", "far/full", true), ERR_IS_A_DIRECTORY);
    assert_int_equal(move_path(tree, "t", "far/full/x", true), ERR_NOT_A_DIRECTORY);
    assert_int_equal(move_path(tree, "far", "near", true), ERR_BUSY);
    assert_string_equal(tree_text(tree, "ws/t/a"), "a");
    assert_int_equal(tree_count(tree, "ws/far"), 1);
    unmount_far(tree);
}

/* The copy is whole, but the source cannot go: both stand there and the answer says so. */
static void test_source_that_cannot_go(void **state)
{
    struct tree *tree = *state;
    if (!mount_far(tree, "test_source_that_cannot_go"))
        return;
    assert_int_equal(chmod(tree_path(tree, "ws/far"), 0777), 0);
    tree_dir(tree, "ws/t");
    tree_file(tree, "ws/t/f", "f");
    AS_NOBODY(assert_int_equal(move_path(tree, "t/f", "far/f", false), ERR_PERMISSION_DENIED));
    assert_non_null(strstr(transfer_err.text, "destination is whole"));
    assert_string_equal(tree_text(tree, "ws/t/f"), "f");
    assert_string_equal(tree_text(tree, "ws/far/f"), "f");
    assert_int_equal(tree_count(tree, "ws/far"), 1);
    unmount_far(tree);
}

static atomic_bool appending;

static void *append(void *ctx)
{
    int fd = open(ctx, O_WRONLY | O_APPEND);
    while (atomic_load(&appending))
        assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    return NULL;
}

/* A writer that goes on all the while: its file is not moved away under it. */
static void test_source_that_changes(void **state)
{
    struct tree *tree = *state;
    char path[PATH_MAX];
    if (!mount_far(tree, "test_source_that_changes"))
        return;
    tree_dir(tree, "ws/t");
    tree_file(tree, "ws/t/log", "");
    snprintf(path, sizeof path, "%s/ws/t/log", tree->top);
    pthread_t thread;
    atomic_store(&appending, true);
    assert_int_equal(pthread_create(&thread, NULL, append, path), 0);
    struct stat found;
    while (stat(path, &found) == 0 && found.st_size == 0)
        sched_yield();
    enum err_code code = ERR_BUSY;
    for (int i = 0; i < 50 && code == ERR_BUSY; i++) {
        code = move_path(tree, "t", "far/t", false);
        /* It may have fallen between two of its writes. */
        assert_true(code == ERR_BUSY || code == ERR_NONE);
        assert_int_equal(tree_count(tree, "ws/far"), code == ERR_NONE);
        assert_int_equal(tree_has(tree, "ws/t/log"), code == ERR_BUSY);
    }
    atomic_store(&appending, false);
    pthread_join(thread, NULL);
    assert_int_equal(code == ERR_NONE ? ERR_NONE : move_path(tree, "t", "far/t", false), ERR_NONE);
    unmount_far(tree);
}

static void test_sums(void **state)
{
    struct tree *tree = *state;
    const atomic_bool never = false;
    struct tree_sum before = {0}, after = {0}, copy = {0};
    struct err err;
    int base = open(tree->base, O_PATH | O_DIRECTORY);
    tree_dir(tree, "ws/t");
    tree_dir(tree, "ws/t/d");
    tree_file(tree, "ws/t/d/f", "12345");
    tree_file(tree, "ws/t/g", "678");
    tree_link(tree, "x", "ws/t/l");
    assert_int_equal(tree_sum(base, "t", &never, &before, &err), 0);
    assert_int_equal(before.files, 2);
    assert_int_equal(before.directories, 2);
    assert_int_equal(before.others, 1);
    assert_int_equal(before.bytes, 8);
    assert_int_equal(copy_path(tree, "t", "u", false), ERR_NONE);
    assert_int_equal(tree_sum(base, "u", &never, &copy, &err), 0);
    assert_int_equal(tree_sum(base, "t", &never, &after, &err), 0);
    assert_true(tree_sum_is_copy(&before, &copy));
    assert_true(before.state == after.state);
    assert_int_equal(chmod(tree_path(tree, "ws/t/g"), 0600), 0);
    after = (struct tree_sum){0};
    assert_int_equal(tree_sum(base, "t", &never, &after, &err), 0);
    assert_true(before.state != after.state);
    tree_file(tree, "ws/u/g", "6789");
    copy = (struct tree_sum){0};
    assert_int_equal(tree_sum(base, "u", &never, &copy, &err), 0);
    assert_false(tree_sum_is_copy(&before, &copy));
    assert_int_equal(tree_sum(base, "none", &never, &copy, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    close(base);
}

static void test_protected_paths(void **state)
{
    struct tree *tree = *state;
    bool inside;
    struct err err;
    tree_dir(tree, "ws/etc");
    tree_dir(tree, "ws/etc/abxd");
    tree_file(tree, "ws/etc/abxd/config", "secret");
    tree_dir(tree, "ws/lib");
    tree_dir(tree, "ws/lib/tables");
    tree_file(tree, "ws/f", "f");
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/abxd/config"), &inside, &err), 0);
    /* Missing as yet, and so its directories are what must stay. */
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/lib/tables/later"), &inside, &err), 0);
    const char *sources[] = {"etc/abxd/config", "etc/abxd", "etc", "lib/tables", "lib"};
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        assert_int_equal(move_path(tree, sources[i], "new/x", false), ERR_PERMISSION_DENIED);
        assert_string_equal(transfer_err.field, i == 0 ? "source" : "");
    }
    assert_int_equal(move_path(tree, "f", "etc/abxd/config", true), ERR_PERMISSION_DENIED);
    assert_int_equal(move_path(tree, "f", "lib/tables/later", true), ERR_PERMISSION_DENIED);
    assert_int_equal(tree_count(tree, "ws"), 3);
    assert_int_equal(move_path(tree, "f", "etc/abxd/g", false), ERR_NONE);
    assert_int_equal(move_path(tree, "etc/abxd/g", "f", false), ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_across),
        TREE_TEST(test_source_survives),
        TREE_TEST(test_source_that_cannot_go),
        TREE_TEST(test_source_that_changes),
        TREE_TEST(test_sums),
        TREE_TEST(test_protected_paths),
    };
    transfer_unshare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
