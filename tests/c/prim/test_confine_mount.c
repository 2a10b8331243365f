/* Mounts inside the base: they are part of it, and no way out of it. In a mount namespace of its own. */
#include "confine_reads.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

static void bind_mount(const struct tree *tree, const char *what, const char *where)
{
    assert_int_equal(
        mount(what[0] == '/' ? what : tree_path(tree, what), tree_path(tree, where), NULL, MS_BIND | MS_REC, NULL), 0);
}

static void unmount(const struct tree *tree, const char *where)
{
    assert_int_equal(umount2(tree_path(tree, where), MNT_DETACH), 0);
}

static void test_directory_mounted_inside(void **state)
{
    struct tree *tree = *state;
    struct err err = {0};
    struct confine_entry entry;
    tree_dir(tree, "ws/mnt");
    tree_file(tree, "ws/f", "inner");
    tree_dir(tree, "out/d");
    tree_link(tree, "../f", "out/up");
    tree_link(tree, "../../out/secret", "out/out");
    tree_link(tree, tree_path(tree, "out/secret"), "out/absolute");
    tree_link(tree, tree_path(tree, "ws/f"), "out/home");
    bind_mount(tree, "out", "ws/mnt");

    assert_reads(tree, "mnt/secret", "secret");
    assert_reads(tree, tree_path(tree, "ws/mnt/d/../secret"), "secret");
    /* ".." at the mount's root is the base, never the place that was mounted. */
    assert_reads(tree, "mnt/../f", "inner");
    assert_reads(tree, "mnt/d/../../f", "inner");
    assert_reads(tree, "mnt/up", "inner");
    assert_reads(tree, "mnt/home", "inner");
    assert_int_equal(code_of(tree, "mnt/../../out/secret"), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "mnt/out"), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "mnt/absolute"), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, tree_path(tree, "out/secret")), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(confine_parent(tree->confine, "mnt/d/new", 9, CONFINE_FOLLOW, &entry, &err), 0);
    assert_int_equal(mkdirat(entry.dir_fd, entry.name, 0755), 0);
    close(entry.dir_fd);
    assert_true(tree_has(tree, "out/d/new"));
    unmount(tree, "ws/mnt");
}

static void test_file_mounted_inside(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "inner");
    bind_mount(tree, "out/secret", "ws/f");
    assert_reads(tree, "f", "secret");
    unmount(tree, "ws/f");
    assert_reads(tree, "f", "inner");
}

/* The directory above the base, seen inside it: a loop, but one that ends at no other place. */
static void test_parent_mounted_inside(void **state)
{
    struct tree *tree = *state;
    struct err err = {0};
    struct confine_entry entry;
    tree_dir(tree, "ws/top");
    tree_file(tree, "ws/f", "inner");
    bind_mount(tree, "", "ws/top");
    assert_reads(tree, "top/ws/f", "inner");
    assert_reads(tree, "top/ws/../out/secret", "secret");
    assert_int_equal(code_of(tree, "top/../../out/secret"), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "top/ws/../../../out/secret"), ERR_PATH_OUTSIDE_BASE);
    int flags = CONFINE_MISSING_PARENTS;
    assert_int_equal(confine_parent(tree->confine, "top/ws/../../../new", 19, flags, &entry, &err), -1);
    assert_int_equal(err.code, ERR_PATH_OUTSIDE_BASE);
    unmount(tree, "ws/top");
}

/* The base is known by what it is, not by its name. */
static void test_base_mounted_elsewhere(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "twin");
    tree_file(tree, "ws/f", "inner");
    bind_mount(tree, "ws", "twin");
    tree_link(tree, tree_path(tree, "twin/f"), "ws/l");
    assert_reads(tree, tree_path(tree, "twin/f"), "inner");
    assert_reads(tree, "l", "inner");
    assert_int_equal(code_of(tree, tree_path(tree, "twin/../out/secret")), ERR_PATH_OUTSIDE_BASE);
    unmount(tree, "twin");
    assert_int_equal(code_of(tree, "l"), ERR_PATH_OUTSIDE_BASE);
}

static void test_procfs_mounted_inside(void **state)
{
    struct tree *tree = *state;
    struct err err = {0};
    char path[64];
    tree_dir(tree, "ws/proc");
    tree_file(tree, "ws/f", "inner");
    bind_mount(tree, "/proc", "ws/proc");
    int out_fd = open(tree_path(tree, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int secret_fd = open(tree_path(tree, "out/secret"), O_RDONLY | O_CLOEXEC);
    int inner_fd = open(tree_path(tree, "ws/f"), O_RDONLY | O_CLOEXEC);
    assert_true(out_fd >= 0 && secret_fd >= 0 && inner_fd >= 0);
    const char *outside[] = {"proc/self/root", "proc/self/root/etc/passwd", "proc/self/cwd", "proc/self/exe",
                             "proc/thread-self/root/etc/passwd"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        assert_int_equal(code_of(tree, outside[i]), ERR_PATH_OUTSIDE_BASE);
    snprintf(path, sizeof(path), "proc/self/fd/%d/secret", out_fd);
    assert_int_equal(code_of(tree, path), ERR_PATH_OUTSIDE_BASE);
    snprintf(path, sizeof(path), "proc/self/fd/%d", secret_fd);
    assert_int_equal(code_of(tree, path), ERR_PATH_OUTSIDE_BASE);
    snprintf(path, sizeof(path), "proc/self/fd/%d", inner_fd);
    assert_reads(tree, path, "inner"); /* its text leads inside */
    assert_int_equal(code_of(tree, "proc/self/status"), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(confine_open_dir(tree->confine, "proc/self/root", 14, &err), -1);
    assert_int_equal(err.code, ERR_PATH_OUTSIDE_BASE);
    close(out_fd);
    close(secret_fd);
    close(inner_fd);
    unmount(tree, "ws/proc");
}

/* As root, or else as the root of a user namespace. */
static bool enter_namespace(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_directory_mounted_inside), TREE_TEST(test_file_mounted_inside),
        TREE_TEST(test_parent_mounted_inside),    TREE_TEST(test_base_mounted_elsewhere),
        TREE_TEST(test_procfs_mounted_inside),
    };
    if (!enter_namespace()) {
        printf("NOT RUN: prim/test_confine_mount: no mount namespace: %s\n", strerror(errno));
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
