/* Paths below the base, both by openat2 and by the walk: what is found, what is refused, and with which code. */
#include "confine_reads.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

static void test_ordinary_paths(void **state)
{
    struct tree *tree = *state;
    char absolute[PATH_MAX];
    tree_dir(tree, "ws/a");
    tree_dir(tree, "ws/a/b");
    tree_file(tree, "ws/a/b/f", "deep");
    tree_file(tree, "ws/f", "top");
    assert_reads(tree, "f", "top");
    assert_reads(tree, "a/b/f", "deep");
    assert_reads(tree, "./a//b/./f", "deep");
    assert_reads(tree, "a/../f", "top");
    assert_reads(tree, "a/b/../../a/b/f", "deep");
    snprintf(absolute, sizeof(absolute), "%s/a/b/f", tree->base);
    assert_reads(tree, absolute, "deep");
    snprintf(absolute, sizeof(absolute), "/%s//a/b/f", tree->base);
    assert_reads(tree, absolute, "deep");
    snprintf(absolute, sizeof(absolute), "%s/../ws/f", tree->base);
    assert_int_equal(code_of(tree, absolute), ERR_PATH_OUTSIDE_BASE);
    snprintf(absolute, sizeof(absolute), "%s/out/../ws/a/b/f", tree->top);
    assert_reads(tree, absolute, "deep");
    assert_string_equal(confine_base_dir(tree->confine), tree->base);
    assert_int_equal(confine_uses_openat2(tree->confine), !tree->walk);
}

static void test_strange_names(void **state)
{
    struct tree *tree = *state;
    char name[300], longer[300], path[320];
    memset(name, 'n', sizeof(name));
    name[NAME_MAX] = '\0';
    memset(longer, 'n', sizeof(longer));
    longer[NAME_MAX + 1] = '\0';
    const char *names[] = {"~", "..\\ws-evil\\s", "b\xa4.txt", "n\nl", "-rf", "%41.txt", " ", "...", "..a", name};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "ws/%s", names[i]);
        tree_file(tree, path, names[i]);
        assert_reads(tree, names[i], names[i]);
    }
    assert_int_equal(code_of(tree, longer), ERR_INVALID_PATH);
    assert_int_equal(code_of(tree, "~root"), ERR_FILE_NOT_FOUND);
}

static void test_what_is_missing_or_wrong(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "x");
    tree_dir(tree, "ws/d");
    assert_int_equal(code_of(tree, "none"), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "none/f"), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "f/x"), ERR_NOT_A_DIRECTORY);
    assert_int_equal(code_of(tree, "f/"), ERR_NOT_A_DIRECTORY);
    assert_int_equal(code_of(tree, "f/."), ERR_NOT_A_DIRECTORY);
    assert_int_equal(code_of(tree, "f/../f"), ERR_NOT_A_DIRECTORY);
    assert_int_equal(code_of(tree, "d"), ERR_IS_A_DIRECTORY);
    assert_int_equal(code_of(tree, "d/"), ERR_IS_A_DIRECTORY);
    assert_int_equal(code_of(tree, ""), ERR_IS_A_DIRECTORY);
    assert_int_equal(code_of(tree, "."), ERR_IS_A_DIRECTORY);
    assert_int_equal(code_of_n(tree, "f\0x", 3), ERR_INVALID_PATH);
    char longest[PATH_MAX + 16];
    memset(longest, '/', sizeof(longest));
    assert_int_equal(code_of_n(tree, longest, sizeof(longest)), ERR_INVALID_PATH);
    for (size_t i = 0; i < sizeof(longest); i++)
        longest[i] = i % 2 ? '/' : 'a';
    assert_int_equal(code_of_n(tree, longest, sizeof(longest)), ERR_INVALID_PATH);
}

static void test_outside(void **state)
{
    struct tree *tree = *state;
    const char *outside[] = {"..",          "../ws-evil/s", "../out/secret", "a/../../out/secret", "../ws/f", "/",
                             "/etc/passwd", "/..",          "../..",         "/proc/self/environ"};
    tree_dir(tree, "ws/a");
    tree_file(tree, "ws/f", "x");
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        assert_int_equal(code_of(tree, outside[i]), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, tree_path(tree, "ws-evil/s")), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, tree_path(tree, "ws-none")), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, tree_path(tree, "ws/../ws-evil/s")), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, tree_path(tree, "out/secret")), ERR_PATH_OUTSIDE_BASE);
    struct err err;
    assert_int_equal(confine_open(tree->confine, "../out/secret", 13, O_RDONLY, &err), -1);
    assert_string_equal(err.text, "../out/secret leads outside the base directory; name a path inside it");
}

static void test_links(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/a");
    tree_file(tree, "ws/a/f", "inner");
    tree_link(tree, "a", "ws/in");
    tree_link(tree, "a/f", "ws/file");
    tree_link(tree, tree_path(tree, "ws/a"), "ws/absolute");
    tree_link(tree, tree_path(tree, "ws"), "ws/a/home");
    tree_link(tree, tree_path(tree, "out"), "ws/l");
    tree_link(tree, tree_path(tree, "out/secret"), "ws/s");
    tree_link(tree, "../out/secret", "ws/r");
    tree_link(tree, "../../ws/a/f", "ws/a/reenter");
    tree_link(tree, tree_path(tree, "ws-evil"), "ws/evil");
    tree_link(tree, "self", "ws/self");
    tree_link(tree, "nowhere", "ws/dangling");
    assert_reads(tree, "in/f", "inner");
    assert_reads(tree, "file", "inner");
    assert_reads(tree, "absolute/f", "inner");
    assert_reads(tree, "absolute/../a/home/in/f", "inner");
    assert_reads(tree, "absolute/home/absolute/home/file", "inner");
    const char *outside[] = {"l/secret",          "l", "s", "r", "l/../ws/a/f", "a/reenter", "evil/s", "l/none",
                             "absolute/../../out"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        assert_int_equal(code_of(tree, outside[i]), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "self"), ERR_INVALID_PATH);
    assert_int_equal(code_of(tree, "self/x"), ERR_INVALID_PATH);
    assert_int_equal(code_of(tree, "dangling"), ERR_FILE_NOT_FOUND);
    assert_int_equal(code_of(tree, "file/"), ERR_NOT_A_DIRECTORY);
}

static void test_forty_links_and_one_more(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/link0", "end");
    for (int i = 1; i <= 41; i++) {
        char target[32], name[32];
        snprintf(target, sizeof(target), "link%d", i - 1);
        snprintf(name, sizeof(name), "ws/link%d", i);
        tree_link(tree, target, name);
    }
    assert_reads(tree, "link40", "end");
    assert_int_equal(code_of(tree, "link41"), ERR_INVALID_PATH);
}

static void test_final_link_not_followed(void **state)
{
    struct tree *tree = *state;
    struct err err;
    struct stat found;
    tree_link(tree, "/etc/passwd", "ws/l");
    int fd = confine_open(tree->confine, "l", 1, O_PATH | O_NOFOLLOW, &err);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    close(fd);
    assert_int_equal(confine_open(tree->confine, "l", 1, O_RDONLY | O_NOFOLLOW, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_PATH);
}

static void test_special_files_do_not_block(void **state)
{
    struct tree *tree = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0644), 0);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", tree->base);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
    close(sock);
    struct err err;
    const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_APPEND};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        assert_int_equal(confine_open_file(tree->confine, "fifo", 4, flags[i], &err), -1);
        assert_int_equal(err.code, ERR_NOT_A_REGULAR_FILE);
        assert_int_equal(confine_open_file(tree->confine, "socket", 6, flags[i], &err), -1);
        assert_int_equal(err.code, ERR_NOT_A_REGULAR_FILE);
    }
}

static void test_opens_for_writing(void **state)
{
    struct tree *tree = *state;
    struct err err;
    tree_file(tree, "ws/f", "12345");
    int fd = confine_open_file(tree->confine, "f", 1, O_WRONLY | O_APPEND, &err);
    assert_int_equal(write(fd, "6", 1), 1);
    close(fd);
    assert_string_equal(tree_text(tree, "ws/f"), "123456");
    fd = confine_open_file(tree->confine, "f", 1, O_RDWR | O_TRUNC, &err);
    assert_int_equal(write(fd, "ab", 2), 2);
    close(fd);
    assert_string_equal(tree_text(tree, "ws/f"), "ab");
}

static void test_directories(void **state)
{
    struct tree *tree = *state;
    struct err err;
    char path[PATH_MAX], wanted[PATH_MAX];
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/f", "x");
    tree_link(tree, tree_path(tree, "ws/d"), "ws/absolute");
    const char *names[] = {"d", "d/", "absolute", "absolute/", "d/../d/."};
    snprintf(wanted, sizeof(wanted), "%s/d", tree->base);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int fd = confine_open_dir(tree->confine, names[i], strlen(names[i]), &err);
        assert_true(fd >= 0);
        assert_int_equal(confine_path_of(fd, path, sizeof(path), &err), 0);
        assert_string_equal(path, wanted);
        close(fd);
    }
    int fd = confine_open_dir(tree->confine, "", 0, &err);
    assert_int_equal(confine_path_of(fd, path, sizeof(path), &err), 0);
    assert_string_equal(path, tree->base);
    assert_int_equal(confine_path_of(fd, path, 5, &err), -1);
    close(fd);
    assert_int_equal(confine_open_dir(tree->confine, "f", 1, &err), -1);
    assert_int_equal(err.code, ERR_NOT_A_DIRECTORY);
    assert_int_equal(confine_open_dir(tree->confine, "none", 4, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_int_equal(confine_open_dir(tree->confine, "..", 2, &err), -1);
    assert_int_equal(err.code, ERR_PATH_OUTSIDE_BASE);
}

static void test_no_search_permission(void **state)
{
    struct tree *tree = *state;
    struct err err;
    tree_dir(tree, "ws/closed");
    tree_file(tree, "ws/closed/f", "x");
    tree_file(tree, "ws/open", "x");
    chmod(tree_path(tree, "ws/closed"), 0444);
    /* Root may search everything, so another user looks. */
    bool was_root = geteuid() == 0;
    if (was_root)
        assert_int_equal(setresuid(65534, 65534, 0), 0);
    enum err_code file = code_of(tree, "closed/f"), dots = code_of(tree, "closed/../f");
    enum err_code open_code = code_of(tree, "open"); /* through /proc/self, which is root's now */
    int fd = confine_open_dir(tree->confine, "closed", 6, &err);
    struct confine_entry entry;
    int parent = confine_parent(tree->confine, "closed/new", 10, 0, &entry, &err);
    enum err_code entry_code = err.code;
    if (was_root)
        assert_int_equal(setresuid(0, 0, 0), 0);
    assert_int_equal(open_code, ERR_NONE);
    assert_int_equal(fd, -1);
    assert_int_equal(file, ERR_PERMISSION_DENIED);
    assert_int_equal(dots, ERR_PERMISSION_DENIED);
    assert_int_equal(parent, -1);
    assert_int_equal(entry_code, ERR_PERMISSION_DENIED);
}

/* Links to procfs's magic links: their text counts, not what they stand for. */
static void test_links_to_procfs(void **state)
{
    struct tree *tree = *state;
    char target[PATH_MAX];
    tree_file(tree, "ws/f", "inner");
    int out_fd = open(tree_path(tree, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(out_fd >= 0);
    snprintf(target, sizeof(target), "/proc/self/fd/%d", out_fd);
    tree_link(tree, target, "ws/fd");
    snprintf(target, sizeof(target), "/proc/self/root%s/out", tree->top);
    tree_link(tree, target, "ws/root");
    tree_link(tree, "/proc/self/cwd", "ws/cwd");
    tree_link(tree, "/proc/thread-self/root", "ws/thread");
    tree_link(tree, "/proc/self/exe", "ws/exe");
    tree_link(tree, "../../../proc/self/root/etc/passwd", "ws/relative");
    snprintf(target, sizeof(target), "/proc/self/root%s", tree->base);
    tree_link(tree, target, "ws/home");
    const char *outside[] = {"fd", "fd/secret", "root/secret", "cwd", "thread", "thread/etc/passwd", "exe", "relative"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        assert_int_equal(code_of(tree, outside[i]), ERR_PATH_OUTSIDE_BASE);
    snprintf(target, sizeof(target), "/proc/self/fd/%d/secret", out_fd);
    assert_int_equal(code_of(tree, target), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "/proc/self/root/etc/passwd"), ERR_PATH_OUTSIDE_BASE);
    assert_reads(tree, "home/f", "inner"); /* another name of the base itself */
    close(out_fd);
}

static int open_cached(struct tree *tree, const char *path, char out_path[PATH_MAX])
{
    struct stat found, opened;
    int fd = confine_open_cached(tree->confine, path, strlen(path), out_path, &found);
    if (fd >= 0) {
        assert_int_equal(fstat(fd, &opened), 0);
        assert_int_equal(found.st_ino, opened.st_ino);
    }
    return fd;
}

/* What is in memory opens at once; of anything else nothing is known, touched or waited for. */
static void test_cached(void **state)
{
    struct tree *tree = *state;
    char path[PATH_MAX], absolute[PATH_MAX];
    static const char *const others[] = {
        "missing", "d", "d/",   "d//f",         "d/./f",         "d/../f",           "./f", "", ".", "..", "/",
        "fifo",    "l", "ld/f", "../ws-evil/f", "/etc/hostname", "/proc/self/status"};
    tree_file(tree, "ws/f", "text");
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/d/f", "text");
    tree_file(tree, "ws-evil/f", "secret");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    assert_int_equal(symlink("f", tree_path(tree, "ws/l")), 0);
    assert_int_equal(symlink("d", tree_path(tree, "ws/ld")), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(open_cached(tree, others[i], path), -1);
    struct stat found;
    assert_int_equal(confine_open_cached(tree->confine, "f\0", 2, path, &found), -1);
    snprintf(absolute, sizeof(absolute), "%s/d/f", tree->base);
    int fd = open_cached(tree, "d/f", path);
    if (fd < 0 && tree->walk)
        return; /* the walk waits for the disk */
    if (fd < 0) {
        printf("NOT RUN: cached opens: the temporary folder's file system or kernel is not known for them\n");
        return;
    }
    assert_string_equal(path, absolute);
    close(fd);
    fd = open_cached(tree, absolute, path);
    assert_true(fd >= 0);
    assert_string_equal(path, absolute);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_ordinary_paths),
        TREE_TEST(test_strange_names),
        TREE_TEST(test_what_is_missing_or_wrong),
        TREE_TEST(test_outside),
        TREE_TEST(test_links),
        TREE_TEST(test_forty_links_and_one_more),
        TREE_TEST(test_final_link_not_followed),
        TREE_TEST(test_special_files_do_not_block),
        TREE_TEST(test_opens_for_writing),
        TREE_TEST(test_directories),
        TREE_TEST(test_no_search_permission),
        TREE_TEST(test_links_to_procfs),
        TREE_TEST(test_cached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
