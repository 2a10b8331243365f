/* Content with and without holes, in every way that file systems offer, and attributes. */
#include "tree.h"

#include "prim/file_copy.h"

#include <errno.h>
#include <sys/xattr.h>

struct pair {
    int from, to;
    struct stat found;
};

static struct pair open_pair(const struct tree *tree)
{
    struct pair pair = {.from = open(tree_path(tree, "ws/from"), O_RDONLY),
                        .to = open(tree_path(tree, "ws/to"), O_RDWR | O_CREAT | O_TRUNC, 0600)};
    assert_true(pair.from >= 0 && pair.to >= 0);
    assert_int_equal(fstat(pair.from, &pair.found), 0);
    return pair;
}

static void close_pair(const struct pair *pair)
{
    close(pair->from);
    close(pair->to);
}

static void assert_same_content(const struct tree *tree)
{
    char a[4096], b[4096];
    FILE *from = fopen(tree_path(tree, "ws/from"), "r"), *to = fopen(tree_path(tree, "ws/to"), "r");
    size_t len;
    do {
        len = fread(a, 1, sizeof a, from);
        assert_int_equal(fread(b, 1, sizeof b, to), len);
        assert_memory_equal(a, b, len);
    } while (len > 0);
    fclose(from);
    fclose(to);
}

/* Copies with the given ways switched off. */
static void assert_copies(const struct tree *tree, bool no_clone, bool no_range)
{
    struct file_copier copier = {.no_clone = no_clone, .no_range = no_range};
    struct pair pair = open_pair(tree);
    uint64_t len = 0;
    assert_int_equal(file_copy_content(&copier, pair.from, pair.to, &pair.found, &len), 0);
    assert_int_equal(len, pair.found.st_size);
    file_copier_deinit(&copier);
    close_pair(&pair);
    assert_same_content(tree);
}

static void make_file(const struct tree *tree, size_t len)
{
    int fd = open(tree_path(tree, "ws/from"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    uint32_t word = 1;
    for (size_t at = 0; at < len; at += sizeof word) {
        word = word * 1664525 + 1013904223;
        size_t part = len - at < sizeof word ? len - at : sizeof word;
        assert_int_equal(pwrite(fd, &word, part, (off_t)at), part);
    }
    close(fd);
}

static void test_sizes(void **state)
{
    const struct tree *tree = *state;
    const size_t sizes[] = {0, 1, 4095, 4096, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 700 * 1024 + 3};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        make_file(tree, sizes[i]);
        for (int ways = 0; ways < 4; ways++)
            assert_copies(tree, ways & 1, ways & 2);
    }
}

static void test_holes(void **state)
{
    const struct tree *tree = *state;
    const struct {
        off_t data[3];
        off_t size;
    } files[] = {
        {{0, -1}, 10000000}, {{9000000, -1}, 10000000}, {{-1}, 5000000}, {{100000, 3000000, 7000000}, 7000004}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = open(tree_path(tree, "ws/from"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_int_equal(ftruncate(fd, files[i].size), 0);
        for (int j = 0; j < 3 && files[i].data[j] >= 0; j++)
            assert_int_equal(pwrite(fd, "data", 4, files[i].data[j]), 4);
        close(fd);
        for (int ways = 0; ways < 4; ways++) {
            struct stat from, to;
            assert_copies(tree, ways & 1, ways & 2);
            assert_int_equal(stat(tree_path(tree, "ws/from"), &from), 0);
            assert_int_equal(stat(tree_path(tree, "ws/to"), &to), 0);
            assert_true(to.st_blocks <= from.st_blocks);
        }
    }
}

/* A file that is cut or grows after it was looked at. */
static void test_other_sizes(void **state)
{
    const struct tree *tree = *state;
    struct file_copier copier = {0};
    uint64_t len;
    make_file(tree, 300000);
    struct pair pair = open_pair(tree);
    assert_int_equal(truncate(tree_path(tree, "ws/from"), 1000), 0);
    assert_int_equal(file_copy_content(&copier, pair.from, pair.to, &pair.found, &len), 0);
    assert_int_equal(len, 1000);
    close_pair(&pair);
    assert_same_content(tree);

    pair = open_pair(tree);
    make_file(tree, 300000);
    copier.no_clone = true;
    assert_int_equal(file_copy_content(&copier, pair.from, pair.to, &pair.found, &len), 0);
    assert_int_equal(len, 1000);
    close_pair(&pair);
    file_copier_deinit(&copier);
}

static void test_cancelled(void **state)
{
    const struct tree *tree = *state;
    const atomic_bool cancelled = true;
    struct file_copier copier = {.cancelled = &cancelled};
    uint64_t len;
    make_file(tree, 10);
    struct pair pair = open_pair(tree);
    assert_int_equal(file_copy_content(&copier, pair.from, pair.to, &pair.found, &len), -1);
    assert_int_equal(errno, ECANCELED);
    close_pair(&pair);
    file_copier_deinit(&copier);
}

static void test_attributes(void **state)
{
    const struct tree *tree = *state;
    struct timespec times[2] = {{1000000000, 123456789}, {1200000000, 987654321}};
    make_file(tree, 10);
    assert_int_equal(chmod(tree_path(tree, "ws/from"), 01464), 0);
    bool has_xattr = setxattr(tree_path(tree, "ws/from"), "user.note", "a\0b", 3, 0) == 0;
    assert_int_equal(utimensat(AT_FDCWD, tree_path(tree, "ws/from"), times, 0), 0);
    struct pair pair = open_pair(tree);
    struct stat made;
    char value[8];
    assert_int_equal(file_copy_attributes(pair.from, pair.to, &pair.found), 0);
    assert_int_equal(fstat(pair.to, &made), 0);
    assert_int_equal(made.st_mode & 07777, 01464);
    assert_int_equal(made.st_mtim.tv_sec, 1200000000);
    assert_int_equal(made.st_mtim.tv_nsec, pair.found.st_mtim.tv_nsec);
    assert_int_equal(made.st_atim.tv_sec, 1000000000);
    if (has_xattr) {
        assert_int_equal(fgetxattr(pair.to, "user.note", value, sizeof value), 3);
        assert_memory_equal(value, "a\0b", 3);
    } else {
        print_message("NOT RUN: test_attributes: no extended attributes here\n");
    }
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_sizes),     TREE_TEST(test_holes),      TREE_TEST(test_other_sizes),
        TREE_TEST(test_cancelled), TREE_TEST(test_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
