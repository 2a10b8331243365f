/* The way down into a tree: how many descriptors it holds, and that the way back is the one it came. */
#include "tree.h"

#include "prim/dir_chain.h"

#include <errno.h>

enum { DEPTH = 3 * DIR_CHAIN_HELD_MAX };

/* Makes the directories as it goes down; the device and inode of each are kept. */
static void go_down(struct tree *tree, struct dir_chain *chain, struct stat found[DEPTH])
{
    int fd = open(tree->base, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &found[i]), 0);
        assert_int_equal(dir_chain_push(chain, fd), 0);
        assert_int_equal(dir_chain_top(chain), fd);
        if (i + 1 < DEPTH) {
            assert_int_equal(mkdirat(fd, "d", 0755), 0);
            fd = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        }
    }
}

static void test_few_descriptors(void **state)
{
    struct tree *tree = *state;
    struct dir_chain chain = {0};
    static struct stat found[DEPTH];
    int before = count_descriptors();
    go_down(tree, &chain, found);
    assert_int_equal(count_descriptors() - before, DIR_CHAIN_HELD_MAX);
    for (int i = DEPTH - 1; i > 0; i--) {
        struct stat now;
        assert_int_equal(dir_chain_pop(&chain), 0);
        assert_int_equal(fstat(dir_chain_top(&chain), &now), 0);
        assert_true(now.st_dev == found[i - 1].st_dev && now.st_ino == found[i - 1].st_ino);
        assert_true(count_descriptors() - before <= DIR_CHAIN_HELD_MAX);
    }
    assert_int_equal(dir_chain_pop(&chain), 0);
    assert_int_equal(chain.depth, 0);
    dir_chain_close(&chain);
}

/* A directory that was moved outside meanwhile has another "..", which is not taken. */
static void test_moved_meanwhile(void **state)
{
    struct tree *tree = *state;
    struct dir_chain chain = {0};
    static struct stat found[DEPTH];
    go_down(tree, &chain, found);
    assert_int_equal(rename(tree_path(tree, "ws/d/d/d"), tree_path(tree, "out/d")), 0);
    int result = 0;
    while (result == 0 && chain.depth > 1)
        result = dir_chain_pop(&chain);
    assert_int_equal(result, -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(chain.depth, 3); /* the way back to ws/d/d is lost */
    dir_chain_close(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_few_descriptors),
        TREE_TEST(test_moved_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
