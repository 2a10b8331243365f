/* Removal: what goes, what stays whatever happens, and trees deeper than there are descriptors. */
#include "tree.h"

#include "prim/tree_remove.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static atomic_bool not_cancelled;

/* The code of a removal, ERR_NONE where it was done; *out_count what it removed in any case. */
static enum err_code remove_counted(struct tree *tree, const char *path, bool recursive, uint64_t *out_count)
{
    char gone[PATH_MAX + NAME_MAX + 2];
    struct err err = {0};
    *out_count = 0;
    int result = tree_remove_path(tree->confine, path, strlen(path), recursive, &not_cancelled, gone, out_count, &err);
    return result == 0 ? ERR_NONE : err.code;
}

static enum err_code code_of(struct tree *tree, const char *path, bool recursive)
{
    uint64_t count;
    return remove_counted(tree, path, recursive, &count);
}

#define assert_removes(tree, path, recursive, expected)                                                                \
    do {                                                                                                               \
        uint64_t count_;                                                                                               \
        assert_int_equal(remove_counted(tree, path, recursive, &count_), ERR_NONE);                                    \
        assert_int_equal(count_, expected);                                                                            \
    } while (0)

static void test_files_links_and_directories(void **state)
{
    struct tree *tree = *state;
    char gone[PATH_MAX + NAME_MAX + 2], expected[128];
    struct err err;
    uint64_t count;
    tree_file(tree, "ws/f", "");
    tree_dir(tree, "ws/d");
    tree_dir(tree, "ws/d/e");
    tree_file(tree, "ws/d/e/f", "");
    assert_int_equal(tree_remove_path(tree->confine, "d/../f", 6, false, &not_cancelled, gone, &count, &err), 0);
    snprintf(expected, sizeof(expected), "%s/f", tree->base);
    assert_string_equal(gone, expected);
    assert_int_equal(count, 1);
    assert_int_equal(code_of(tree, "f", false), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "f", true), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "none/f", true), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "d", false), ERR_NOT_EMPTY);
    assert_int_equal(code_of(tree, "d/e/f/", false), ERR_NOT_A_DIRECTORY);
    assert_removes(tree, "d/e/f", false, 1);
    assert_removes(tree, "d/e/", false, 1);
    assert_removes(tree, "d", true, 1);
    assert_int_equal(tree_count(tree, "ws"), 0);
}

static void test_links_go_and_their_targets_stay(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/d/keep", "");
    tree_link(tree, "../out", "ws/l");
    tree_link(tree, "d", "ws/in");
    tree_link(tree, "../../out", "ws/d/l");
    tree_link(tree, ".", "ws/base");
    tree_link(tree, "/nowhere", "ws/dangling");
    assert_int_equal(code_of(tree, "l/secret", true), ERR_PATH_OUTSIDE_BASE);
    assert_removes(tree, "l", true, 1);
    assert_removes(tree, "in/", true, 1);
    assert_removes(tree, "base", true, 1);
    assert_removes(tree, "dangling", false, 1);
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
    assert_true(tree_has(tree, "ws/d/keep"));
    assert_removes(tree, "d", true, 3);
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
}

static void test_the_base_stays_under_any_name(void **state)
{
    struct tree *tree = *state;
    char absolute[2 * PATH_MAX];
    tree_dir(tree, "ws/a");
    tree_link(tree, "..", "ws/a/up");
    tree_file(tree, "ws/keep", "");
    const char *names[] = {"", ".", "./.", "a/..", "a//../.", "a/up/.", "a/up/a/..", tree->base};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(code_of(tree, names[i], true), ERR_BASE_DIR_PROTECTED);
        assert_int_equal(code_of(tree, names[i], false), ERR_BASE_DIR_PROTECTED);
    }
    snprintf(absolute, sizeof(absolute), "%s//.", tree->base);
    assert_int_equal(code_of(tree, absolute, true), ERR_BASE_DIR_PROTECTED);
    assert_int_equal(code_of(tree, "/", true), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "..", true), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "../ws-evil", true), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, tree_path(tree, "ws-evil/s"), true), ERR_PATH_OUTSIDE_BASE);
    assert_true(tree_has(tree, "ws/keep"));
    assert_true(tree_has(tree, "ws-evil/s"));
}

static void test_trees(void **state)
{
    struct tree *tree = *state;
    char name[64];
    tree_dir(tree, "ws/t");
    for (int d = 0; d < 30; d++) {
        snprintf(name, sizeof(name), "ws/t/d%d", d);
        tree_dir(tree, name);
        for (int e = 0; e < 5; e++) {
            snprintf(name, sizeof(name), "ws/t/d%d/e%d", d, e);
            tree_dir(tree, name);
            for (int f = 0; f < 3; f++) {
                snprintf(name, sizeof(name), "ws/t/d%d/e%d/\xa4\n%d", d, e, f);
                tree_file(tree, name, "");
            }
        }
    }
    assert_int_equal(mkfifo(tree_path(tree, "ws/t/fifo"), 0), 0);
    assert_removes(tree, "t", true, 30 * (1 + 5 * (1 + 3)) + 2);
    assert_int_equal(tree_count(tree, "ws"), 0);
}

/* More names than one read of the directory gives. */
static void test_wide_directories(void **state)
{
    struct tree *tree = *state;
    char name[64];
    tree_dir(tree, "ws/w");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "ws/w/a-name-of-some-length-%d", i);
        if (i % 2)
            tree_dir(tree, name);
        else
            tree_link(tree, "/", name);
    }
    assert_removes(tree, "w", true, 5001);
}

static void test_trees_deeper_than_descriptors(void **state)
{
    struct tree *tree = *state;
    struct rlimit before, few;
    int fd = open(tree->base, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        int inner = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        close(fd);
        assert_true(inner >= 0);
        fd = inner;
    }
    close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 128;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    uint64_t count;
    enum err_code code = remove_counted(tree, "d", true, &count);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, ERR_NONE);
    assert_int_equal(count, 10000);
}

static void test_operator_files_stay(void **state)
{
    struct tree *tree = *state;
    struct err err;
    bool inside;
    tree_dir(tree, "ws/etc");
    tree_dir(tree, "ws/etc/abxd");
    tree_file(tree, "ws/etc/abxd/commands.lua", "keep");
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/abxd"), &inside, &err), 0);
    assert_int_equal(code_of(tree, "etc/abxd", true), ERR_PERMISSION_DENIED);
    assert_int_equal(code_of(tree, "etc/abxd/commands.lua", true), ERR_PERMISSION_DENIED);
    assert_int_equal(code_of(tree, "etc", true), ERR_PERMISSION_DENIED);
    assert_string_equal(tree_text(tree, "ws/etc/abxd/commands.lua"), "keep");
}

static void test_cancelled(void **state)
{
    struct tree *tree = *state;
    atomic_bool cancelled = true;
    char gone[PATH_MAX + NAME_MAX + 2];
    struct err err;
    uint64_t count;
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/d/f", "");
    assert_int_equal(tree_remove_path(tree->confine, "d", 1, true, &cancelled, gone, &count, &err), -1);
    assert_int_equal(count, 0);
    assert_true(tree_has(tree, "ws/d/f"));
}

static void test_kernel_file_systems(void **state)
{
    struct tree *tree = *state;
    struct err err;
    struct confine *root = confine_new("/", tree->walk, &err);
    char gone[PATH_MAX + NAME_MAX + 2];
    uint64_t count;
    assert_non_null(root);
    assert_int_equal(tree_remove_path(root, "proc/self/fd/0", 14, false, &not_cancelled, gone, &count, &err), -1);
    assert_int_equal(err.code, ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(tree_remove_path(root, "/", 1, true, &not_cancelled, gone, &count, &err), -1);
    assert_int_equal(err.code, ERR_BASE_DIR_PROTECTED);
    confine_free(root);
}

/* In a child with mounts of its own: 0 well, 77 where this machine allows none. */
static int remove_mounts(struct tree *tree)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(tree_path(tree, "out"), tree_path(tree, "ws/d/m"), NULL, MS_BIND, NULL) != 0)
        return 77;
    bool ok = code_of(tree, "d/m", true) == ERR_BUSY && code_of(tree, "d/m", false) == ERR_BUSY &&
              code_of(tree, "d", true) == ERR_BUSY && tree_has(tree, "out/secret");
    /* The base itself, mounted below itself. */
    ok = ok && mount(tree->base, tree_path(tree, "ws/d/m"), NULL, MS_BIND, NULL) == 0 &&
         code_of(tree, "d", true) == ERR_BUSY && code_of(tree, "d/m", true) == ERR_BUSY && tree_has(tree, "ws/keep");
    return ok ? 0 : 1;
}

static void test_mounts_are_not_emptied(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_dir(tree, "ws/d/m");
    tree_file(tree, "ws/keep", "");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(remove_mounts(tree));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("NOT RUN: mounts are not emptied: no mount may be made here\n");
        return;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* What nobody may read goes where it is empty, and is refused where it is not. */
static bool removes_unreadable(struct tree *tree)
{
    return code_of(tree, "d/empty", true) == ERR_NONE && code_of(tree, "d/full", true) == ERR_PERMISSION_DENIED &&
           code_of(tree, "d", true) == ERR_PERMISSION_DENIED &&
           code_of(tree, "locked/f", false) == ERR_PERMISSION_DENIED;
}

static void test_rights(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_dir(tree, "ws/d/empty");
    tree_dir(tree, "ws/d/full");
    tree_file(tree, "ws/d/full/f", "");
    tree_dir(tree, "ws/locked");
    tree_file(tree, "ws/locked/f", "");
    chmod(tree_path(tree, "ws/d"), 0777);
    chmod(tree_path(tree, "ws/d/empty"), 0);
    chmod(tree_path(tree, "ws/d/full"), 0);
    chmod(tree_path(tree, "ws/locked"), 0555);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit((geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0)) && removes_unreadable(tree) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    chmod(tree_path(tree, "ws/d/full"), 0755);
    chmod(tree_path(tree, "ws/locked"), 0755);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(tree_has(tree, "ws/d/full/f"));
}

/* A thread's own paths: tree_path is for one thread. */
struct swapper {
    const char *base;
    atomic_bool stop;
};

static const char *in_base(const struct swapper *swapper, char out[PATH_MAX], const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", swapper->base, name);
    return out;
}

/* The directory t/a itself, never what a link in its place leads to: the test must not reach outside either. */
static int open_a(const char *a)
{
    return open(a, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

static void *swap(void *ctx)
{
    struct swapper *swapper = ctx;
    char a[PATH_MAX], l[PATH_MAX];
    in_base(swapper, a, "t/a");
    in_base(swapper, l, "l");
    while (!swapper->stop) {
        int fd = open_a(a);
        if (fd >= 0) {
            renameat2(fd, "d", fd, "l", RENAME_EXCHANGE);
            close(fd);
        }
        renameat2(AT_FDCWD, a, AT_FDCWD, l, RENAME_EXCHANGE);
    }
    return NULL;
}

/* t/a/d with files, t/a/l and l, links to the outside; as far as they do not stand there yet. */
static void fill_for_swaps(struct tree *tree, const char *a)
{
    const char *out = tree_path(tree, "out");
    mkdir(tree_path(tree, "ws/t"), 0755);
    mkdir(a, 0755);
    (void)!symlink(out, tree_path(tree, "ws/l"));
    int fd = open_a(a);
    if (fd < 0)
        return;
    (void)!symlinkat(out, fd, "l");
    mkdirat(fd, "d", 0755);
    int inner_fd = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    for (int i = 0; inner_fd >= 0 && i < 4; i++)
        (void)!symlinkat("/", inner_fd, (char[]){(char)('0' + i), '\0'});
    if (inner_fd >= 0)
        close(inner_fd);
    close(fd);
}

/* Directories and links to a place outside change places all the while that the tree is removed. */
static void test_swaps_never_lead_outside(void **state)
{
    struct tree *tree = *state;
    struct swapper swapper = {.base = tree->base};
    pthread_t thread;
    char a[PATH_MAX];
    uint64_t count, removed = 0;
    tree_dir(tree, "out/d");
    tree_file(tree, "out/d/f", "keep");
    in_base(&swapper, a, "t/a");
    assert_int_equal(pthread_create(&thread, NULL, swap, &swapper), 0);
    for (time_t end = time(NULL) + 3; time(NULL) < end;) {
        fill_for_swaps(tree, a);
        enum err_code code = remove_counted(tree, "t", true, &count);
        assert_true(code == ERR_NONE || code == ERR_BUSY || code == ERR_NOT_EMPTY || code == ERR_FILE_NOT_FOUND);
        removed += count;
        assert_string_equal(tree_text(tree, "out/secret"), "secret");
        assert_string_equal(tree_text(tree, "out/d/f"), "keep");
        assert_int_equal(tree_count(tree, "out"), 2);
    }
    swapper.stop = true;
    pthread_join(thread, NULL);
    assert_true(removed > 0);
}

/* Others fill the tree, and remove it, while it is removed. */
static void *stir(void *ctx)
{
    struct swapper *swapper = ctx;
    char name[32], path[PATH_MAX];
    for (unsigned i = 0; !swapper->stop; i++) {
        snprintf(name, sizeof(name), "t/%u", i % 7);
        mkdir(in_base(swapper, path, name), 0755);
        snprintf(name, sizeof(name), "t/%u/x", (i + 3) % 7);
        mkdir(in_base(swapper, path, name), 0755);
        snprintf(name, sizeof(name), "t/%u", (i + 5) % 7);
        rmdir(in_base(swapper, path, name));
    }
    return NULL;
}

static void test_what_others_do_meanwhile(void **state)
{
    struct tree *tree = *state;
    struct swapper swapper = {.base = tree->base};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stir, &swapper), 0);
    for (time_t end = time(NULL) + 2; time(NULL) < end;) {
        uint64_t count;
        mkdir(tree_path(tree, "ws/t"), 0755);
        enum err_code code = remove_counted(tree, "t", true, &count);
        assert_true(code == ERR_NONE || code == ERR_NOT_EMPTY);
    }
    swapper.stop = true;
    pthread_join(thread, NULL);
}

/* Where much is made, and paths do not matter. */
#define ONCE(name)                                                                                                     \
    {                                                                                                                  \
#name, name, tree_set_up, tree_tear_down, &tree_by_openat2                                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_files_links_and_directories),
        TREE_TEST(test_links_go_and_their_targets_stay),
        TREE_TEST(test_the_base_stays_under_any_name),
        TREE_TEST(test_trees),
        ONCE(test_wide_directories),
        ONCE(test_trees_deeper_than_descriptors),
        TREE_TEST(test_operator_files_stay),
        TREE_TEST(test_cancelled),
        TREE_TEST(test_kernel_file_systems),
        TREE_TEST(test_mounts_are_not_emptied),
        TREE_TEST(test_rights),
        ONCE(test_swaps_never_lead_outside),
        ONCE(test_what_others_do_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
