/* Listings where a tree is hard to list: unreadable, deep, wide, the kernel's, changing all the while. */
#include "list_answer.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

/* Root may read anything: then the check runs in a child that is nobody. */
static bool holds_for_nobody(struct tree *tree, bool (*check)(struct tree *tree))
{
    if (geteuid() != 0)
        return check(tree);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(setgid(65534) == 0 && setuid(65534) == 0 && check(tree) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool lists_unreadable(struct tree *tree)
{
    const char *errors = rest(tree, ".", &deep);
    if (strcmp(errors, NO_MORE "{\"path\":\"/locked\",\"code\":\"permission_denied\"},"
                               "{\"path\":\"/names/f\",\"code\":\"permission_denied\"}]}") != 0) {
        print_error("%s\n", errors);
        return false;
    }
    return strcmp(paths(tree, ".", &deep), "a a/x locked names z ") == 0 &&
           strcmp(paged(tree, ".", deep, 1), "a a/x locked names z ") == 0 &&
           code_of(tree, "locked", &flat) == ERR_PERMISSION_DENIED &&
           code_of(tree, "names", &flat) == ERR_PERMISSION_DENIED;
}

static void test_unreadable_directories(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/a");
    tree_file(tree, "ws/a/x", "");
    tree_dir(tree, "ws/locked");
    tree_file(tree, "ws/locked/f", "");
    tree_dir(tree, "ws/names");
    tree_file(tree, "ws/names/f", "");
    tree_file(tree, "ws/z", "");
    assert_int_equal(chmod(tree_path(tree, "ws/locked"), 0), 0);
    assert_int_equal(chmod(tree_path(tree, "ws/names"), 0444), 0); /* can be read, not searched */
    assert_true(holds_for_nobody(tree, lists_unreadable));
    chmod(tree_path(tree, "ws/locked"), 0755);
    chmod(tree_path(tree, "ws/names"), 0755);
}

/* The errors of a page have an end, and the next page goes on behind them: each comes once. */
static bool lists_many_unreadable(struct tree *tree)
{
    struct tree_list_options options = deep;
    char cursor[8192];
    size_t errors = 0, pages = 0, entries = 0;
    bool more = true;
    while (more) {
        char *answer = list(tree, ".", &options);
        for (const char *at = answer; (at = strstr(at, "\"code\":\"permission_denied\"")); at++)
            errors++;
        for (const char *at = answer; (at = strstr(at, "\"type\":\"directory\"")); at++)
            entries++;
        more = next_cursor(answer, cursor, sizeof(cursor));
        options.cursor = cursor;
        options.cursor_len = strlen(cursor);
        free(answer);
        pages++;
    }
    if (errors != 2500 || entries != 2500 || pages != 3)
        print_error("%zu errors, %zu entries, %zu pages\n", errors, entries, pages);
    return errors == 2500 && entries == 2500 && pages == 3;
}

static void test_many_errors_are_paged(void **state)
{
    struct tree *tree = *state;
    char name[64];
    for (int i = 0; i < 2500; i++) {
        snprintf(name, sizeof(name), "ws/d%04d", i);
        assert_int_equal(mkdir(tree_path(tree, name), 0), 0);
    }
    assert_true(holds_for_nobody(tree, lists_many_unreadable));
}

/* 5,000 directories in one another cannot be made, or removed, by their paths. */
static void dig(const char *top, int levels)
{
    int fd = open(top, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < levels; i++) {
        assert_true(fd >= 0);
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        int inner = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = inner;
    }
    close(fd);
}

/* Takes it away again. */
static void fill_in(const char *top, int levels)
{
    int fd = open(top, O_RDONLY | O_DIRECTORY), depth = 0;
    for (int inner; depth < levels && (inner = openat(fd, "d", O_RDONLY | O_DIRECTORY)) >= 0; depth++) {
        close(fd);
        fd = inner;
    }
    for (; depth > 0; depth--) {
        int outer = openat(fd, "..", O_RDONLY | O_DIRECTORY);
        assert_int_equal(unlinkat(outer, "d", AT_REMOVEDIR), 0);
        close(fd);
        fd = outer;
    }
    close(fd);
}

static void test_deep_trees(void **state)
{
    struct tree *tree = *state;
    dig(tree->base, 5000);
    tree_file(tree, "ws/e", "");
    char *answer = list(tree, ".", &deep);
    assert_int_equal(count_of(answer, "\"type\":\"directory\""), 64);
    assert_int_equal(count_of(answer, "\"name\":\"e\""), 1);
    assert_int_equal(count_of(answer, "\"code\":\"invalid_path\""), 1);
    free(answer);

    /* Deeper than descriptors are held, and page by page all the same. */
    struct tree_list_options options = deep;
    char cursor[8192];
    bool more = true;
    size_t dirs = 0, files = 0;
    options.max_depth = 1024;
    options.limit = 100;
    while (more) {
        answer = list(tree, ".", &options);
        dirs += count_of(answer, "\"type\":\"directory\"");
        files += count_of(answer, "\"name\":\"e\"");
        more = next_cursor(answer, cursor, sizeof(cursor));
        options.cursor = cursor;
        options.cursor_len = strlen(cursor);
        free(answer);
    }
    assert_int_equal(dirs, 1024);
    assert_int_equal(files, 1);
    fill_in(tree->base, 5000);
}

/* Where a path would be longer than the kernel takes, the directory is an error and not entered. */
static void test_long_paths(void **state)
{
    struct tree *tree = *state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    int fd = open(tree->base, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mkdirat(fd, name, 0755), 0);
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = inner;
    }
    char *answer = list(tree, ".", &deep);
    size_t dirs = count_of(answer, "\"type\":\"directory\"");
    assert_true(dirs >= 15 && dirs <= 16);
    assert_int_equal(count_of(answer, "\"code\":\"invalid_path\""), 1);
    free(answer);
    for (int i = 0; i < 20; i++) {
        int outer = openat(fd, "..", O_RDONLY | O_DIRECTORY);
        close(fd);
        assert_int_equal(unlinkat(outer, name, AT_REMOVEDIR), 0);
        fd = outer;
    }
    close(fd);
}

static void test_many_entries(void **state)
{
    struct tree *tree = *state;
    char name[64], cursor[8192], last[64] = "";
    struct tree_list_options options = deep;
    size_t count = 0, pages = 0;
    bool more = true;
    tree_dir(tree, "ws/many");
    for (int i = 0; i < 10500; i++) {
        snprintf(name, sizeof(name), "ws/many/f%05d", (i * 7919) % 10500);
        int fd = open(tree_path(tree, name), O_WRONLY | O_CREAT, 0644);
        close(fd);
    }
    while (more) {
        char *answer = list(tree, "many", &options);
        for (const char *at = answer; (at = strstr(at, "\"name\":\"")); count++) {
            at += strlen("\"name\":\"");
            snprintf(name, sizeof(name), "%.6s", at);
            assert_true(strcmp(last, name) < 0);
            strcpy(last, name);
        }
        more = next_cursor(answer, cursor, sizeof(cursor));
        options.cursor = cursor;
        options.cursor_len = strlen(cursor);
        free(answer);
        pages++;
    }
    assert_int_equal(count, 10500);
    assert_int_equal(pages, 2);
}

static void test_kernel_file_systems(void **state)
{
    struct tree *tree = *state;
    struct err err;
    bool walk = tree->walk;
    struct confine *root = confine_new("/", walk, &err);
    assert_non_null(root);
    struct buf out;
    struct tree_list_options options = deep;
    /* The top level alone, and it is said that the rest was left out. */
    buf_init(&out, ANSWER_MAX);
    assert_int_equal(tree_list(root, "/proc/self", 10, &options, &out, &err), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_int_equal(count_of(out.data, "\"name\":\"cmdline\""), 1);
    assert_non_null(strstr(out.data, "\"code\":\"not_a_regular_file\"}]}"));
    buf_deinit(&out);
    /* Flat, it is a directory like another; its magic links are shown and not followed. */
    options = flat;
    buf_init(&out, ANSWER_MAX);
    assert_int_equal(tree_list(root, "/proc/self/fd", 13, &options, &out, &err), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_true(count_of(out.data, "\"type\":\"symlink\"") > 2);
    assert_non_null(strstr(out.data, "\"errors\":[]}"));
    buf_deinit(&out);
    confine_free(root);
}

struct swapper {
    struct tree *tree;
    atomic_bool stop;
};

static void *swap(void *ctx)
{
    struct swapper *swapper = ctx;
    while (!swapper->stop) {
        renameat2(AT_FDCWD, tree_path(swapper->tree, "ws/d"), AT_FDCWD, tree_path(swapper->tree, "ws/l"),
                  RENAME_EXCHANGE);
        rename(tree_path(swapper->tree, "ws/d/x"), tree_path(swapper->tree, "ws/x"));
        rename(tree_path(swapper->tree, "ws/x"), tree_path(swapper->tree, "ws/d/x"));
    }
    return NULL;
}

/* A directory and a link to a place outside change places all the while. */
static void test_swaps_never_lead_outside(void **state)
{
    struct tree *tree = *state;
    struct swapper swapper = {.tree = tree};
    pthread_t thread;
    tree_dir(tree, "ws/d");
    tree_dir(tree, "ws/d/x");
    tree_link(tree, "../out", "ws/l");
    assert_int_equal(pthread_create(&thread, NULL, swap, &swapper), 0);
    time_t end = time(NULL) + 3;
    size_t listed = 0;
    for (; time(NULL) < end; listed++) {
        char *answer = list(tree, ".", &deep);
        assert_null(strstr(answer, "secret"));
        free(answer);
        struct buf out;
        struct err err;
        buf_init(&out, ANSWER_MAX);
        if (tree_list(tree->confine, "d", 1, &deep, &out, &err) == 0)
            assert_null(memmem(out.data, out.len, "secret", 6));
        buf_deinit(&out);
    }
    swapper.stop = true;
    pthread_join(thread, NULL);
    assert_true(listed > 0);
}

/* Where much is made, and paths do not matter. */
#define ONCE(name)                                                                                                     \
    {                                                                                                                  \
#name, name, tree_set_up, tree_tear_down, &tree_by_openat2                                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_unreadable_directories),
        ONCE(test_many_errors_are_paged),
        TREE_TEST(test_deep_trees),
        TREE_TEST(test_long_paths),
        ONCE(test_many_entries),
        TREE_TEST(test_kernel_file_systems),
        TREE_TEST(test_swaps_never_lead_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
