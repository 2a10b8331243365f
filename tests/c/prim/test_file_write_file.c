/* Writing what another file holds, which may stand on another file system and change meanwhile. */
#include "tree.h"

#include "prim/file_write.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mount.h>

enum { ANSWER_MAX_BYTES = 64 * 1024, LARGE_BYTES = 5 * 1024 * 1024 + 3 };

static char *bytes; /* LARGE_BYTES */

/* A new file without a name that holds the first bytes. */
static int open_source(const char *dir, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/abx-source-XXXXXX", dir);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static struct file_write request_of(const char *path, int fd, size_t size)
{
    return (struct file_write){
        .path = path,
        .path_len = strlen(path),
        .from_file = true,
        .content_fd = fd,
        .content_len = size,
        .overwrite = true,
        .create_parents = true,
        .mode = -1,
    };
}

/* The code, "" where it worked; closes the source. */
static const char *put(struct tree *tree, struct file_write request)
{
    struct buf answer;
    struct err err;
    bool created;
    buf_init(&answer, ANSWER_MAX_BYTES);
    request.at_once = true;
    assert_int_equal(file_write(tree->confine, &request, &answer, &created, &err), 1);
    request.at_once = false;
    int result = file_write(tree->confine, &request, &answer, &created, &err);
    buf_deinit(&answer);
    close(request.content_fd);
    return result == 0 ? "" : err_code_name(err.code);
}

static void assert_bytes(const struct tree *tree, const char *name, size_t size)
{
    char *found = malloc(size + 1);
    int fd = open(tree_path(tree, name), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, found, size + 1), size);
    assert_memory_equal(found, bytes, size);
    close(fd);
    free(found);
}

static void test_all_bytes_come(void **state)
{
    struct tree *tree = *state;
    static const size_t sizes[] = {0, 1, 4096, 300 * 1000, LARGE_BYTES};
    static const char *const places[] = {"/tmp", "/dev/shm"}; /* a rename could not do it */
    tree_file(tree, "ws/old", "old");
    assert_int_equal(chmod(tree_path(tree, "ws/old"), 0751), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t p = 0; p < 2; p++) {
            char path[32], name[40];
            assert_string_equal(put(tree, request_of("old", open_source(places[p], sizes[i]), sizes[i])), "");
            assert_bytes(tree, "ws/old", sizes[i]);
            snprintf(path, sizeof(path), "new%zu-%zu/dir/f", i, p);
            snprintf(name, sizeof(name), "ws/%s", path);
            assert_string_equal(put(tree, request_of(path, open_source(places[p], sizes[i]), sizes[i])), "");
            assert_bytes(tree, name, sizes[i]);
        }
    struct stat found;
    assert_int_equal(stat(tree_path(tree, "ws/old"), &found), 0);
    assert_int_equal(found.st_mode, S_IFREG | 0751);
    assert_int_equal(tree_count(tree, "ws"), 11);
}

static void test_holes_come(void **state)
{
    struct tree *tree = *state;
    int fd = open_source("/tmp", 0);
    memset(bytes, 0, LARGE_BYTES);
    bytes[LARGE_BYTES - 1] = 'x';
    assert_int_equal(pwrite(fd, "x", 1, LARGE_BYTES - 1), 1);
    assert_string_equal(put(tree, request_of("f", fd, LARGE_BYTES)), "");
    assert_bytes(tree, "ws/f", LARGE_BYTES);
}

static void test_links_are_followed(void **state)
{
    struct tree *tree = *state;
    tree_link(tree, "real", "ws/link");
    tree_link(tree, "../out/secret", "ws/leaves");
    assert_string_equal(put(tree, request_of("link", open_source("/tmp", 9), 9)), "");
    assert_bytes(tree, "ws/real", 9);
    assert_string_equal(put(tree, request_of("leaves", open_source("/tmp", 9), 9)), "path_outside_base");
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
    assert_int_equal(tree_count(tree, "ws"), 3);
}

static void test_failures_change_nothing(void **state)
{
    struct tree *tree = *state;
    static const size_t told[] = {0, 8, 10, LARGE_BYTES};
    tree_file(tree, "ws/old", "old");
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        assert_string_equal(put(tree, request_of("old", open_source("/tmp", 9), told[i])), "busy");
        assert_string_equal(put(tree, request_of("a/b/c", open_source("/tmp", 9), told[i])), "busy");
    }
    atomic_bool cancelled = true;
    struct file_write stopped = request_of("old", open_source("/tmp", 9), 9);
    stopped.cancelled = &cancelled;
    assert_string_not_equal(put(tree, stopped), "");
    struct file_write kept = request_of("old", open_source("/tmp", 9), 9);
    kept.overwrite = false;
    assert_string_equal(put(tree, kept), "already_exists");
    assert_string_equal(put(tree, request_of(".", open_source("/tmp", 9), 9)), "base_dir_protected");
    assert_string_equal(tree_text(tree, "ws/old"), "old");
    assert_int_equal(tree_count(tree, "ws"), 1);
}

static void test_full_disk(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/small");
    if (mount("tmpfs", tree_path(tree, "ws/small"), "tmpfs", 0, "size=1m") != 0) {
        print_message("NOT RUN: test_full_disk: mount: %s\n", strerror(errno));
        return;
    }
    tree_file(tree, "ws/small/keep", "old");
    assert_string_equal(put(tree, request_of("small/keep", open_source("/tmp", LARGE_BYTES), LARGE_BYTES)), "no_space");
    assert_string_equal(put(tree, request_of("small/a/b", open_source("/tmp", LARGE_BYTES), LARGE_BYTES)), "no_space");
    assert_string_equal(tree_text(tree, "ws/small/keep"), "old");
    assert_int_equal(tree_count(tree, "ws/small"), 1);
    assert_int_equal(umount(tree_path(tree, "ws/small")), 0);
}

static int fill_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < LARGE_BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_all_bytes_come), TREE_TEST(test_links_are_followed), TREE_TEST(test_failures_change_nothing),
        TREE_TEST(test_full_disk),      TREE_TEST(test_holes_come), /* the last one, as it changes the bytes */
    };
    bytes = malloc(LARGE_BYTES);
    int failed = cmocka_run_group_tests(tests, fill_bytes, NULL);
    if (tree_use_memory())
        failed += cmocka_run_group_tests_name("in memory", tests, fill_bytes, NULL);
    free(bytes);
    return failed;
}
