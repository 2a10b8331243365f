/* Copies of trees: what is kept, what is refused, and that nothing is left of one that fails. What clients see of
 * single files and merges is tested over HTTP. */
#include "transfer_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

static struct stat look(const struct tree *tree, const char *name)
{
    struct stat found;
    assert_int_equal(lstat(tree_path(tree, name), &found), 0);
    return found;
}

static void test_counts_and_hard_links(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/t");
    tree_dir(tree, "ws/t/a");
    tree_dir(tree, "ws/t/b");
    tree_file(tree, "ws/t/a/f", "12345");
    assert_int_equal(link(tree_path(tree, "ws/t/a/f"), tree_path(tree, "ws/t/b/g")), 0);
    assert_int_equal(link(tree_path(tree, "ws/t/a/f"), tree_path(tree, "ws/outer")), 0);
    tree_link(tree, "../a/f", "ws/t/b/l");
    assert_int_equal(link(tree_path(tree, "ws/t/b/l"), tree_path(tree, "ws/t/l2")), 0);
    assert_int_equal(copy_path(tree, "t", "new/u", false), ERR_NONE);
    assert_int_equal(transfer_copied.files, 2);
    assert_int_equal(transfer_copied.bytes, 5);
    assert_int_equal(look(tree, "ws/new/u/a/f").st_ino, look(tree, "ws/new/u/b/g").st_ino);
    assert_int_equal(look(tree, "ws/new/u/a/f").st_nlink, 2);
    assert_int_equal(look(tree, "ws/new/u/b/l").st_ino, look(tree, "ws/new/u/l2").st_ino);
    assert_int_equal(look(tree, "ws/t/a/f").st_nlink, 3);
    assert_int_equal(tree_count(tree, "ws/new"), 1);
}

/* The names of a file lie in a directory that was there, in one that has its name already, and in one that has none
 * yet. */
static void test_hard_links_into_a_directory_that_is_there(void **state)
{
    struct tree *tree = *state;
    const char *names[] = {"ws/t/a", "ws/t/new1/b", "ws/t/new1/deep/c", "ws/t/new2/d", "ws/t/old/e", "ws/t/old/new3/f"};
    for (int i = 0; i < 2; i++) {
        tree_dir(tree, i == 0 ? "ws/t" : "ws/u");
        tree_dir(tree, i == 0 ? "ws/t/old" : "ws/u/old");
    }
    tree_dir(tree, "ws/t/new1");
    tree_dir(tree, "ws/t/new1/deep");
    tree_dir(tree, "ws/t/new2");
    tree_dir(tree, "ws/t/old/new3");
    tree_file(tree, names[0], "linked");
    tree_file(tree, "ws/u/a", "old");
    for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(link(tree_path(tree, names[0]), tree_path(tree, names[i])), 0);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(copy_path(tree, "t", "u", true), ERR_NONE);
        assert_int_equal(transfer_copied.files, 6);
        assert_int_equal(transfer_copied.bytes, 6);
        assert_int_equal(look(tree, "ws/u/a").st_nlink, 6);
        assert_int_equal(look(tree, "ws/u/a").st_ino, look(tree, "ws/u/old/new3/f").st_ino);
        assert_string_equal(tree_text(tree, "ws/u/new1/deep/c"), "linked");
        assert_int_equal(tree_count(tree, "ws/u"), 4);
        assert_int_equal(tree_count(tree, "ws/u/old"), 2);
    }
}

static void test_many_hard_links(void **state)
{
    struct tree *tree = *state;
    char name[64], other[64];
    tree_dir(tree, "ws/t");
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "ws/t/a%d", i);
        snprintf(other, sizeof other, "ws/t/b%d", 149 - i);
        tree_file(tree, name, name);
        assert_int_equal(link(tree_path(tree, name), tree_path(tree, other)), 0);
    }
    assert_int_equal(copy_path(tree, "t", "u", false), ERR_NONE);
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "ws/u/a%d", i);
        snprintf(other, sizeof other, "ws/u/b%d", 149 - i);
        assert_int_equal(look(tree, name).st_ino, look(tree, other).st_ino);
        name[3] = 't';
        assert_string_equal(tree_text(tree, other), name);
    }
}

/* Directories that their owner may not write or read: whole, and gone again where the copy fails after them. */
static void test_modes_of_directories(void **state)
{
    struct tree *tree = *state;
    assert_int_equal(chmod(tree->base, 0777), 0);
    AS_NOBODY({
        tree_dir(tree, "ws/t");
        tree_dir(tree, "ws/t/a");
        tree_dir(tree, "ws/t/a/inner");
        tree_file(tree, "ws/t/a/inner/f", "f");
        assert_int_equal(chmod(tree_path(tree, "ws/t/a/inner"), 0555), 0);
        assert_int_equal(chmod(tree_path(tree, "ws/t/a"), 0511), 0);
        assert_int_equal(chmod(tree_path(tree, "ws/t/a"), 0555), 0);
        assert_int_equal(copy_path(tree, "t", "u", false), ERR_NONE);
        assert_int_equal(look(tree, "ws/u/a").st_mode & 07777, 0555);
        assert_int_equal(look(tree, "ws/u/a/inner").st_mode & 07777, 0555);
        assert_int_equal(look(tree, "ws/u").st_mode & 07777, 0755);

        tree_file(tree, "ws/t/secret", "s");
        assert_int_equal(chmod(tree_path(tree, "ws/t/secret"), 0), 0);
        assert_int_equal(copy_path(tree, "t", "new/v", false), ERR_PERMISSION_DENIED);
        assert_non_null(strstr(transfer_err.text, "secret"));
        assert_string_equal(transfer_err.field, "source");
        assert_int_equal(tree_count(tree, "ws"), 2);
        assert_int_equal(unlink(tree_path(tree, "ws/t/secret")), 0);

        tree_dir(tree, "ws/t/locked");
        assert_int_equal(chmod(tree_path(tree, "ws/t/locked"), 0), 0);
        assert_int_equal(copy_path(tree, "t", "v", false), ERR_PERMISSION_DENIED);
        assert_non_null(strstr(transfer_err.text, "locked"));
        assert_int_equal(tree_count(tree, "ws"), 2);
        assert_int_equal(copy_path(tree, "t/a/inner/f", "u/a/f", false), ERR_PERMISSION_DENIED);
        assert_string_equal(transfer_err.field, "destination");
        for (int i = 0; i < 2; i++) {
            assert_int_equal(chmod(tree_path(tree, i ? "ws/u/a" : "ws/t/a"), 0755), 0);
            assert_int_equal(chmod(tree_path(tree, i ? "ws/u/a/inner" : "ws/t/a/inner"), 0755), 0);
        }
        assert_int_equal(chmod(tree_path(tree, "ws/t/locked"), 0755), 0);
    });
}

/* A copy by somebody else bears no set-id bits of the owner. */
static void test_owner(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "f");
    if (geteuid() != 0) {
        print_message("NOT RUN: test_owner: needs root\n");
        return;
    }
    assert_int_equal(chown(tree_path(tree, "ws/f"), 12345, 23456), 0);
    assert_int_equal(chmod(tree_path(tree, "ws/f"), 06755), 0);
    assert_int_equal(chmod(tree->base, 0777), 0);
    assert_int_equal(copy_path(tree, "f", "g", false), ERR_NONE);
    assert_int_equal(look(tree, "ws/g").st_uid, 12345);
    assert_int_equal(look(tree, "ws/g").st_gid, 23456);
    assert_int_equal(look(tree, "ws/g").st_mode & 07777, 06755);
    AS_NOBODY(assert_int_equal(copy_path(tree, "f", "h", false), ERR_NONE));
    assert_int_equal(look(tree, "ws/h").st_uid, 65534);
    assert_int_equal(look(tree, "ws/h").st_mode & 07777, 0755);
    tree_link(tree, "f", "ws/l");
    assert_int_equal(lchown(tree_path(tree, "ws/l"), 12345, 23456), 0);
    assert_int_equal(copy_path(tree, "l", "m", false), ERR_NONE);
    assert_int_equal(look(tree, "ws/m").st_uid, 12345);
}

static void test_cancelled(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/t");
    tree_file(tree, "ws/t/f", "f");
    atomic_store(&transfer_cancelled, true);
    assert_int_not_equal(copy_path(tree, "t", "new/u", false), ERR_NONE);
    assert_int_not_equal(copy_path(tree, "t/f", "new/u", false), ERR_NONE);
    atomic_store(&transfer_cancelled, false);
    assert_int_equal(tree_count(tree, "ws"), 1);
    assert_int_equal(copy_path(tree, "t", "new/u", false), ERR_NONE);
}

static void *cancel_soon(void *ctx)
{
    (void)ctx;
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    atomic_store(&transfer_cancelled, true);
    return NULL;
}

static void test_cancelled_on_the_way(void **state)
{
    struct tree *tree = *state;
    char name[64];
    tree_dir(tree, "ws/t");
    tree_dir(tree, "ws/t/d");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "ws/t/d/%d", i);
        assert_int_equal(mknod(tree_path(tree, name), S_IFREG | 0600, 0), 0);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
    enum err_code code = copy_path(tree, "t", "new/u", false);
    pthread_join(thread, NULL);
    atomic_store(&transfer_cancelled, false);
    /* It may have been quicker. */
    assert_int_equal(tree_count(tree, "ws"), code == ERR_NONE ? 2 : 1);
    if (code == ERR_NONE)
        assert_int_equal(tree_count(tree, "ws/new/u/d"), 5000);
}

static void test_protected_paths(void **state)
{
    struct tree *tree = *state;
    bool inside;
    struct err err;
    tree_dir(tree, "ws/etc");
    tree_dir(tree, "ws/etc/abxd");
    tree_file(tree, "ws/etc/abxd/config", "secret");
    tree_dir(tree, "ws/other");
    tree_dir(tree, "ws/other/abxd");
    tree_file(tree, "ws/other/abxd/config", "mine");
    tree_file(tree, "ws/other/abxd/later", "mine");
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/abxd/config"), &inside, &err), 0);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/abxd/later"), &inside, &err), 0);
    assert_int_equal(copy_path(tree, "etc/abxd/config", "x", false), ERR_PERMISSION_DENIED);
    assert_int_equal(copy_path(tree, "etc", "new/x", false), ERR_PERMISSION_DENIED);
    assert_non_null(strstr(transfer_err.text, "abxd/config"));
    assert_int_equal(copy_path(tree, "other", "etc", true), ERR_PERMISSION_DENIED);
    assert_int_equal(copy_path(tree, "other/abxd/config", "etc/abxd/later", false), ERR_PERMISSION_DENIED);
    assert_int_equal(unlink(tree_path(tree, "ws/other/abxd/config")), 0);
    assert_int_equal(copy_path(tree, "other", "etc", true), ERR_PERMISSION_DENIED);
    assert_string_equal(transfer_err.field, "destination");
    assert_string_equal(tree_text(tree, "ws/etc/abxd/config"), "secret");
    assert_int_equal(tree_count(tree, "ws/etc/abxd"), 1);
    assert_int_equal(tree_count(tree, "ws"), 2);
    assert_int_equal(copy_path(tree, "other", "free", false), ERR_NONE);
}

static void test_by_way_of_mounts(void **state)
{
    struct tree *tree = *state;
    if (!may_mount("test_by_way_of_mounts"))
        return;
    tree_dir(tree, "ws/t");
    tree_dir(tree, "ws/t/sub");
    tree_file(tree, "ws/t/f", "f");
    tree_dir(tree, "ws/mnt");
    char mnt[PATH_MAX];
    snprintf(mnt, sizeof mnt, "%s/mnt", tree->base);
    assert_int_equal(mount(tree_path(tree, "ws/t"), mnt, NULL, MS_BIND, NULL), 0);
    assert_int_equal(copy_path(tree, "t", "mnt/x", false), ERR_INVALID_REQUEST);
    assert_int_equal(copy_path(tree, "t", "mnt/sub/x", false), ERR_INVALID_REQUEST);
    assert_int_equal(copy_path(tree, "t", "mnt", true), ERR_INVALID_REQUEST);
    assert_int_equal(move_path(tree, "t", "mnt/x", false), ERR_INVALID_REQUEST);
    assert_int_equal(umount2(mnt, MNT_DETACH), 0);
    /* No directory above the destination is the source, but the source holds the destination. */
    assert_int_equal(mount(tree_path(tree, "ws/t/sub"), mnt, NULL, MS_BIND, NULL), 0);
    assert_int_equal(copy_path(tree, "t", "mnt/new/x", false), ERR_INVALID_REQUEST);
    assert_int_equal(copy_path(tree, "t", "mnt/x", false), ERR_INVALID_REQUEST);
    assert_int_equal(copy_path(tree, "t", "mnt", true), ERR_INVALID_REQUEST);
    assert_int_equal(move_path(tree, "t", "mnt/x", false), ERR_INVALID_REQUEST);
    assert_int_equal(umount2(mnt, MNT_DETACH), 0);
    /* What the kernel makes up is not copied, wherever it stands. */
    assert_int_equal(mount("proc", tree_path(tree, "ws/t/sub"), "proc", 0, NULL), 0);
    assert_int_equal(copy_path(tree, "t", "x", false), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(copy_path(tree, "t/sub/version", "x", false), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(copy_path(tree, "t/f", "t/sub/x", false), ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(umount2(tree_path(tree, "ws/t/sub"), MNT_DETACH), 0);
    assert_int_equal(tree_count(tree, "ws"), 2);
    assert_int_equal(tree_count(tree, "ws/t"), 2);
}

/* ---- swapped meanwhile */

static atomic_bool swapping;

static void *swap(void *ctx)
{
    const struct tree *tree = ctx;
    char dir[PATH_MAX], link[PATH_MAX];
    snprintf(dir, sizeof dir, "%s/ws/t/d", tree->top);
    snprintf(link, sizeof link, "%s/ws/other", tree->top);
    while (atomic_load(&swapping))
        renameat2(AT_FDCWD, dir, AT_FDCWD, link, RENAME_EXCHANGE);
    return NULL;
}

static void test_swapped_for_a_link(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/t");
    tree_dir(tree, "ws/t/d");
    tree_file(tree, "ws/t/d/secret", "harmless");
    tree_link(tree, "../../out", "ws/other");
    tree_file(tree, "ws/f", "harmless");
    tree_dir(tree, "ws/t2");
    tree_dir(tree, "ws/t2/d");
    tree_file(tree, "ws/t2/d/deeper", "harmless");
    pthread_t thread;
    atomic_store(&swapping, true);
    assert_int_equal(pthread_create(&thread, NULL, swap, tree), 0);
    for (int i = 0; i < 300; i++) {
        struct stat found;
        enum err_code code = copy_path(tree, "t", "u", false);
        assert_true(code == ERR_NONE || code == ERR_BUSY);
        if (code == ERR_NONE && lstat(tree_path(tree, "ws/u/d"), &found) == 0 && S_ISDIR(found.st_mode))
            assert_string_equal(tree_text(tree, "ws/u/d/secret"), "harmless");
        nftw(tree_path(tree, "ws/u"), tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        code = copy_path(tree, "t/d/secret", "u", false);
        if (code == ERR_NONE)
            assert_string_equal(tree_text(tree, "ws/u"), "harmless");
        unlink(tree_path(tree, "ws/u"));
        copy_path(tree, "f", "t/d/new", false);
        copy_path(tree, "f", "t/d/secret", true);
        copy_path(tree, "f", "t/d/new", true);
        copy_path(tree, "t2", "t", true);
        for (int j = 0; j < 2; j++) {
            unlink(tree_path(tree, j ? "ws/t/d/new" : "ws/other/new"));
            unlink(tree_path(tree, j ? "ws/t/d/deeper" : "ws/other/deeper"));
        }
        assert_string_equal(tree_text(tree, "out/secret"), "secret");
        assert_int_equal(tree_count(tree, "out"), 1);
    }
    atomic_store(&swapping, false);
    pthread_join(thread, NULL);
}

static void test_few_descriptors(void **state)
{
    struct tree *tree = *state;
    struct rlimit before, few = {220, 0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    int at = open(tree->base, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(at, i == 0 ? "t" : "d", 0755), 0);
        int inner = openat(at, i == 0 ? "t" : "d", O_RDONLY | O_DIRECTORY);
        assert_int_equal(symlinkat("target", inner, "l"), 0);
        close(at);
        at = inner;
    }
    close(at);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(copy_path(tree, "t", "u", false), ERR_NONE);
    assert_int_equal(transfer_copied.others, 600);
    assert_int_equal(copy_path(tree, "t", "u", true), ERR_NONE);
    assert_int_equal(transfer_copied.others, 600);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    /* nftw goes by paths, which end long before. */
    assert_int_equal(chdir(tree->base), 0);
    assert_int_equal(system("rm -rf t u"), 0);
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_counts_and_hard_links),
        TREE_TEST(test_hard_links_into_a_directory_that_is_there),
        TREE_TEST(test_many_hard_links),
        TREE_TEST(test_modes_of_directories),
        TREE_TEST(test_owner),
        TREE_TEST(test_cancelled),
        TREE_TEST(test_cancelled_on_the_way),
        TREE_TEST(test_protected_paths),
        TREE_TEST(test_swapped_for_a_link),
        TREE_TEST(test_few_descriptors),
        TREE_TEST(test_by_way_of_mounts),
    };
    transfer_unshare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
