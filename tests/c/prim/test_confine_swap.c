/* Trees that change while paths are looked up: whatever is answered, nothing outside the base is ever opened. */
#include "tree.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

/* As long as the tests run at least, and at most where one of the outcomes has not been seen by then. */
enum { RUN_S = 10, RUN_MAX_S = 120 };

struct mover {
    const char *one, *other;
    unsigned flags; /* of renameat2; 0: there and back */
    atomic_bool stop;
};

static void *move(void *ctx)
{
    struct mover *mover = ctx;
    while (!atomic_load(&mover->stop)) {
        syscall(SYS_renameat2, AT_FDCWD, mover->one, AT_FDCWD, mover->other, mover->flags);
        if (mover->flags == 0)
            syscall(SYS_renameat2, AT_FDCWD, mover->other, AT_FDCWD, mover->one, 0);
    }
    return NULL;
}

struct outcomes {
    unsigned opened, outside, other;
};

static void count(struct outcomes *outcomes, enum err_code code)
{
    outcomes->opened += code == ERR_NONE;
    outcomes->outside += code == ERR_PATH_OUTSIDE_BASE;
    outcomes->other += code != ERR_NONE && code != ERR_PATH_OUTSIDE_BASE;
}

static ino_t inode_of(const char *path)
{
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return found.st_ino;
}

static void try_file(struct tree *tree, const char *path, struct outcomes *outcomes)
{
    struct err err = {0};
    int fd = confine_open_file(tree->confine, path, strlen(path), O_RDWR, &err);
    count(outcomes, err.code);
    if (fd < 0)
        return;
    assert_string_equal(text_of(fd), "inner");
    close(fd);
}

static void try_dir(struct tree *tree, const char *path, ino_t wanted, struct outcomes *outcomes)
{
    struct err err = {0};
    struct stat found;
    int fd = confine_open_dir(tree->confine, path, strlen(path), &err);
    count(outcomes, err.code);
    if (fd < 0)
        return;
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(found.st_ino, wanted);
    close(fd);
}

/* Makes the entry where it was found, and removes it: in the directory that it is to be in, or the count of the places
 * outside tells at the end. */
static void try_entry(struct tree *tree, const char *path, int flags, ino_t wanted, struct outcomes *outcomes)
{
    struct err err = {0};
    struct stat found;
    struct confine_entry entry;
    int missed = confine_parent(tree->confine, path, strlen(path), flags, &entry, &err);
    count(outcomes, err.code);
    if (missed)
        return;
    assert_int_equal(fstat(entry.dir_fd, &found), 0);
    assert_int_equal(found.st_ino, wanted);
    assert_string_equal(entry.missing, "");
    int fd = openat(entry.dir_fd, entry.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlinkat(entry.dir_fd, entry.name, 0), 0);
    close(entry.dir_fd);
}

static bool goes_on(time_t start, const struct outcomes *outcomes)
{
    time_t ran_s = time(NULL) - start;
    return ran_s < RUN_S || (ran_s < RUN_MAX_S && (outcomes->opened == 0 || outcomes->outside == 0));
}

/* ws/d is by turns a directory and a link to out. */
static void test_directory_swapped_for_a_link(void **state)
{
    struct tree *tree = *state;
    char absolute[PATH_MAX];
    tree_dir(tree, "ws/d");
    tree_dir(tree, "ws/d/n");
    tree_dir(tree, "out/n");
    tree_file(tree, "ws/d/secret", "inner");
    tree_link(tree, tree_path(tree, "out"), "ws/l");
    tree_link(tree, "d", "ws/in");
    tree_link(tree, tree_path(tree, "ws/d"), "ws/absolute");
    snprintf(absolute, sizeof(absolute), "%s/d/secret", tree->base);
    const char *files[] = {"d/secret", "d/../d/secret", "d/n/../secret", "in/secret", "absolute/secret", absolute};
    char one[PATH_MAX], other[PATH_MAX];
    snprintf(one, sizeof(one), "%s/d", tree->base);
    snprintf(other, sizeof(other), "%s/l", tree->base);
    struct mover mover = {.one = one, .other = other, .flags = RENAME_EXCHANGE};
    ino_t inner = inode_of(one);
    struct outcomes of_files = {0}, of_dirs = {0}, of_entries = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, move, &mover), 0);
    time_t start = time(NULL);
    do {
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
            try_file(tree, files[i], &of_files);
        try_dir(tree, "d", inner, &of_dirs);
        try_dir(tree, "in/n/..", inner, &of_dirs);
        for (int flags = 0; flags <= (CONFINE_FOLLOW | CONFINE_MISSING_PARENTS); flags++) {
            try_entry(tree, "d/new", flags, inner, &of_entries);
            try_entry(tree, "absolute/n/../new", flags, inner, &of_entries);
        }
    } while (goes_on(start, &of_files) || goes_on(start, &of_dirs) || goes_on(start, &of_entries));
    atomic_store(&mover.stop, true);
    pthread_join(thread, NULL);

    const struct outcomes *all[] = {&of_files, &of_dirs, &of_entries};
    for (size_t i = 0; i < 3; i++) {
        print_message("%u opened, %u outside, %u other\n", all[i]->opened, all[i]->outside, all[i]->other);
        assert_true(all[i]->opened > 0);
        assert_true(all[i]->outside > 0);
    }
    assert_int_equal(tree_count(tree, "out"), 2);
    assert_int_equal(tree_count(tree, "out/n"), 0);
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
}

/* ws/m/n goes out and comes back: a ".." that asked the kernel for the parent would go on outside. */
static void test_directory_moved_out_and_back(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/m");
    tree_dir(tree, "ws/m/n");
    tree_dir(tree, "ws/m/n/o");
    tree_dir(tree, "out/p");
    tree_dir(tree, "out/m");
    tree_file(tree, "ws/secret", "inner");
    tree_file(tree, "ws/m/secret", "inner");
    tree_file(tree, "out/p/secret", "secret");
    tree_file(tree, "secret", "secret");
    const char *files[] = {"m/n/../secret", "m/n/../../secret", "m/n/o/../../secret", "m/n/o/../../../m/secret",
                           "m/n/o/../../../secret"};
    char one[PATH_MAX], other[PATH_MAX];
    snprintf(one, sizeof(one), "%s/m/n", tree->base);
    snprintf(other, sizeof(other), "%s/out/p/n", tree->top);
    struct mover mover = {.one = one, .other = other};
    struct outcomes outcomes = {0}, of_entries = {0};
    ino_t base = inode_of(tree->base);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, move, &mover), 0);
    time_t start = time(NULL);
    do {
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
            try_file(tree, files[i], &outcomes);
        try_entry(tree, "m/n/../../new", CONFINE_FOLLOW, base, &of_entries);
        try_entry(tree, "m/n/o/../../../new", 0, base, &of_entries);
    } while (time(NULL) - start < RUN_S / 5 ||
             (time(NULL) - start < RUN_MAX_S && (outcomes.opened == 0 || outcomes.other == 0)));
    atomic_store(&mover.stop, true);
    pthread_join(thread, NULL);
    print_message("%u opened, %u outside, %u other\n", outcomes.opened, outcomes.outside, outcomes.other);
    assert_true(outcomes.opened > 0);
    assert_true(outcomes.other > 0); /* not found, or busy */
    assert_int_equal(tree_count(tree, "out"), 3);
    assert_int_equal(tree_count(tree, ""), 4);
    assert_string_equal(tree_text(tree, "secret"), "secret");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_directory_swapped_for_a_link),
        TREE_TEST(test_directory_moved_out_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
