/* What abxd-helper writes for a tree: read back with libarchive, entry by entry. */
#include "helper/archive_tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BIG_BYTES = 8 * 1024 * 1024, DEEP_LEVELS = 1000 };

static char root[] = "/tmp/test-archive-tree-XXXXXX";
static int root_fd;

static int set_up(void **state)
{
    (void)state;
    strcpy(root + strlen(root) - 6, "XXXXXX");
    if (!mkdtemp(root))
        return -1;
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root_fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    close(root_fd);
    return system(command);
}

static void make_file(int dir_fd, const char *name, const char *content)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

/* Bytes that do not compress, so that a pipe fills. */
static void make_big_file(const char *name)
{
    int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    uint32_t seed = 1;
    static uint32_t block[16 * 1024];
    for (int done = 0; done < BIG_BYTES; done += (int)sizeof(block)) {
        for (size_t i = 0; i < sizeof(block) / 4; i++)
            block[i] = seed = seed * 1664525 + 1013904223;
        assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    }
    close(fd);
}

/* Archives into an unlinked file and answers its descriptor, at its beginning. */
static int archive_to_file(enum archive_format format)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(archive_tree_write(root_fd, fd, format, "top", NULL, 0), 0);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static struct archive *open_reader(int fd)
{
    struct archive *reader = archive_read_new();
    archive_read_support_format_tar(reader);
    archive_read_support_format_zip_seekable(reader);
    archive_read_support_filter_gzip(reader);
    assert_int_equal(archive_read_open_fd(reader, fd, 65536), ARCHIVE_OK);
    return reader;
}

struct expected {
    const char *path;
    mode_t mode;
    const char *content; /* of a file; the target of a link; NULL: directory */
};

static void check_entry(struct archive *reader, const struct expected *expected)
{
    struct archive_entry *entry;
    assert_int_equal(archive_read_next_header(reader, &entry), ARCHIVE_OK);
    assert_string_equal(archive_entry_pathname(entry), expected->path);
    if (S_ISLNK(expected->mode)) {
        assert_int_equal(archive_entry_filetype(entry), AE_IFLNK);
        assert_string_equal(archive_entry_symlink(entry), expected->content);
        return;
    }
    assert_int_equal(archive_entry_mode(entry), expected->mode);
    if (!expected->content)
        return;
    char content[64] = "";
    assert_null(archive_entry_hardlink(entry));
    assert_int_equal(archive_entry_size(entry), strlen(expected->content));
    assert_int_equal(archive_read_data(reader, content, sizeof(content)), strlen(expected->content));
    assert_string_equal(content, expected->content);
}

static void check_tree(enum archive_format format)
{
    make_file(root_fd, "b", "two");
    make_file(root_fd, "a\xa4", "bytes");
    make_file(root_fd, "\xc3\xbc\nx", "umlaut");
    assert_int_equal(linkat(root_fd, "b", root_fd, "hard", 0), 0);
    assert_int_equal(symlinkat("/etc", root_fd, "out"), 0);
    assert_int_equal(symlinkat("self", root_fd, "self"), 0);
    assert_int_equal(mkfifoat(root_fd, "fifo", 0600), 0);
    assert_int_equal(mkdirat(root_fd, "d", 0700), 0);
    int dir_fd = openat(root_fd, "d", O_RDONLY | O_DIRECTORY);
    make_file(dir_fd, "in", "");
    close(dir_fd);
    assert_int_equal(fchmodat(root_fd, "b", 04755, 0), 0);
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(root_fd, "b", times, 0), 0);

    static const struct expected tree[] = {
        {"top/", S_IFDIR | 0700, NULL},
        {"top/a\xa4", S_IFREG | 0640, "bytes"},
        {"top/b", S_IFREG | 04755, "two"},
        {"top/d/", S_IFDIR | 0700, NULL},
        {"top/d/in", S_IFREG | 0640, ""},
        {"top/hard", S_IFREG | 04755, "two"},
        {"top/out", S_IFLNK | 0777, "/etc"},
        {"top/self", S_IFLNK | 0777, "self"},
        {"top/\xc3\xbc\nx", S_IFREG | 0640, "umlaut"},
    };
    int fd = archive_to_file(format);
    struct archive *reader = open_reader(fd);
    struct archive_entry *entry;
    for (size_t i = 0; i < sizeof(tree) / sizeof(tree[0]); i++)
        check_entry(reader, &tree[i]);
    assert_int_equal(archive_read_next_header(reader, &entry), ARCHIVE_EOF);
    archive_read_free(reader);
    close(fd);
}

static void test_tar_holds_the_tree(void **state)
{
    (void)state;
    check_tree(ARCHIVE_FORMAT_TAR_GZ);
}

static void test_zip_holds_the_tree(void **state)
{
    (void)state;
    check_tree(ARCHIVE_FORMAT_ZIP);
}

static void test_times_and_owners_are_kept(void **state)
{
    (void)state;
    make_file(root_fd, "a", "x");
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    utimensat(root_fd, "a", times, 0);
    struct stat about;
    fstatat(root_fd, "a", &about, 0);
    int fd = archive_to_file(ARCHIVE_FORMAT_TAR_GZ);
    struct archive *reader = open_reader(fd);
    struct archive_entry *entry;
    archive_read_next_header(reader, &entry);
    archive_read_next_header(reader, &entry);
    assert_int_equal(archive_entry_mtime(entry), 1000000000);
    assert_int_equal(archive_entry_uid(entry), about.st_uid);
    assert_int_equal(archive_entry_gid(entry), about.st_gid);
    assert_string_equal(archive_entry_uname(entry) ? archive_entry_uname(entry) : "", "");
    archive_read_free(reader);
    close(fd);
}

static void test_a_deep_tree_needs_few_descriptors(void **state)
{
    (void)state;
    int fd = dup(root_fd);
    for (int i = 0; i < DEEP_LEVELS; i++) {
        assert_int_equal(mkdirat(fd, "m", 0700), 0);
        if (i % 100 == 0)
            make_file(fd, "z", "after"); /* comes after the way down and back */
        int next = openat(fd, "m", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    close(fd);
    struct rlimit old, few = {150, 150};
    getrlimit(RLIMIT_NOFILE, &old);
    few.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_NOFILE, &few);
    int archive_fd = archive_to_file(ARCHIVE_FORMAT_TAR_GZ);
    setrlimit(RLIMIT_NOFILE, &old);
    struct archive *reader = open_reader(archive_fd);
    struct archive_entry *entry;
    int directories = 0, files = 0;
    while (archive_read_next_header(reader, &entry) == ARCHIVE_OK)
        archive_entry_filetype(entry) == AE_IFDIR ? directories++ : files++;
    assert_int_equal(directories, DEEP_LEVELS + 1);
    assert_int_equal(files, DEEP_LEVELS / 100);
    archive_read_free(reader);
    close(archive_fd);
}

/* In a child, because a failed archive leaks inside libarchive. */
static pid_t start_archive(int dir_fd, int out_fd, const char *top_name)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    signal(SIGPIPE, SIG_IGN);
    _exit(archive_tree_write(dir_fd, out_fd, ARCHIVE_FORMAT_TAR_GZ, top_name, NULL, 0) == 0 ? 0 : 1);
}

static int exit_code_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Archives the one big file into a pipe. The first byte is read, change() is called, then the rest is read. The exit
 * code; *out_size is what the archive holds of the file, -1 where it is cut. */
static int archive_while_it_changes(void (*change)(void), int64_t *out_size)
{
    make_big_file("big");
    int pipe_fds[2];
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = start_archive(root_fd, pipe_fds[1], "top");
    close(pipe_fds[1]);
    char first;
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    assert_int_equal(read(pipe_fds[0], &first, 1), 1);
    assert_int_equal(write(fd, &first, 1), 1);
    change();
    static char chunk[65536];
    for (ssize_t got; (got = read(pipe_fds[0], chunk, sizeof(chunk))) > 0;)
        assert_int_equal(write(fd, chunk, (size_t)got), got);
    close(pipe_fds[0]);
    int exit_code = exit_code_of(pid);

    lseek(fd, 0, SEEK_SET);
    struct archive *reader = open_reader(fd);
    struct archive_entry *entry;
    *out_size = 0;
    while (archive_read_next_header(reader, &entry) == ARCHIVE_OK)
        for (la_ssize_t got; *out_size >= 0 && (got = archive_read_data(reader, chunk, sizeof(chunk))) != 0;)
            *out_size = got < 0 ? -1 : *out_size + got;
    archive_read_free(reader);
    close(fd);
    return exit_code;
}

static void shrink(void)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/big", root);
    assert_int_equal(truncate(path, 100), 0);
}

static void grow(void)
{
    int fd = openat(root_fd, "big", O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "more", 4), 4);
    close(fd);
}

static void test_a_file_that_shrinks_cuts_the_archive(void **state)
{
    (void)state;
    int64_t size;
    assert_int_equal(archive_while_it_changes(shrink, &size), 1);
    assert_int_equal(size, -1);
}

static void test_a_file_that_grows_is_cut_at_its_promised_size(void **state)
{
    (void)state;
    int64_t size;
    assert_int_equal(archive_while_it_changes(grow, &size), 0);
    assert_int_equal(size, BIG_BYTES);
}

static void test_it_ends_when_nobody_reads(void **state)
{
    (void)state;
    make_big_file("big");
    int pipe_fds[2];
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    close(pipe_fds[0]);
    assert_int_equal(exit_code_of(start_archive(root_fd, pipe_fds[1], "top")), 1);
    close(pipe_fds[1]);
}

static void test_files_of_the_kernel_are_left_out(void **state)
{
    (void)state;
    int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY);
    int out_fd = open("/dev/null", O_WRONLY);
    assert_int_equal(exit_code_of(start_archive(proc_fd, out_fd, "top")), 1);
    close(proc_fd);
    close(out_fd);
}

static void test_odd_top_names_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", "a/b", "/"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(exit_code_of(start_archive(root_fd, STDERR_FILENO, names[i])), 1);
    assert_int_equal(archive_tree_format("tar"), ARCHIVE_FORMAT_UNKNOWN);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tar_holds_the_tree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_zip_holds_the_tree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times_and_owners_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_deep_tree_needs_few_descriptors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_that_shrinks_cuts_the_archive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_that_grows_is_cut_at_its_promised_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_ends_when_nobody_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_of_the_kernel_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_top_names_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
