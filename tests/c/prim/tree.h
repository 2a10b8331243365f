/* A temporary tree for the tests of files: ws is the base, ws-evil a sibling with the same prefix, out a place outside.
 */
#ifndef ABX_TESTS_PRIM_TREE_H
#define ABX_TESTS_PRIM_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prim/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct tree {
    char top[64]; /* real path of the temporary directory */
    char base[80];
    bool walk;
    struct confine *confine;
    int open_before; /* descriptors: each test must give back what it took */
};

static inline int count_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* top/NAME as text; four of them may be in use at once. */
static inline const char *tree_path(const struct tree *tree, const char *name)
{
    static char ring[4][2 * PATH_MAX];
    static unsigned turn;
    char *out = ring[turn++ % 4];
    snprintf(out, sizeof(ring[0]), "%s/%s", tree->top, name);
    return out;
}

static inline void tree_dir(const struct tree *tree, const char *name)
{
    assert_int_equal(mkdir(tree_path(tree, name), 0755), 0);
}

static inline void tree_file(const struct tree *tree, const char *name, const char *content)
{
    int fd = open(tree_path(tree, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

static inline void tree_link(const struct tree *tree, const char *target, const char *name)
{
    assert_int_equal(symlink(target, tree_path(tree, name)), 0);
}

/* The first bytes of an open file, or of a file of the tree. */
static inline const char *text_of(int fd)
{
    static char text[256];
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    return text;
}

static inline const char *tree_text(const struct tree *tree, const char *name)
{
    int fd = open(tree_path(tree, name), O_RDONLY);
    assert_true(fd >= 0);
    const char *text = text_of(fd);
    close(fd);
    return text;
}

static inline bool tree_has(const struct tree *tree, const char *name)
{
    struct stat found;
    return lstat(tree_path(tree, name), &found) == 0;
}

/* Entries of a directory. */
static inline int tree_count(const struct tree *tree, const char *name)
{
    int count = 0;
    DIR *dir = opendir(tree_path(tree, name));
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static const char *tree_root = "/tmp";

/* From here on trees stand in memory; false where this machine has no place for that. */
static inline bool tree_use_memory(void)
{
    struct statfs found;
    tree_root = "/dev/shm";
    bool is_memory = statfs(tree_root, &found) == 0 && found.f_type == TMPFS_MAGIC && access(tree_root, W_OK) == 0;
    if (!is_memory)
        printf("NOT RUN: %s: /dev/shm is no tmpfs to write to\n", program_invocation_short_name);
    return is_memory;
}

static inline void tree_make(struct tree *tree)
{
    snprintf(tree->top, sizeof(tree->top), "%s/abx-test-XXXXXX", tree_root);
    assert_non_null(mkdtemp(tree->top));
    chmod(tree->top, 0755);
    snprintf(tree->base, sizeof(tree->base), "%s/ws", tree->top);
    tree_dir(tree, "ws");
    tree_dir(tree, "ws-evil");
    tree_dir(tree, "out");
    tree_file(tree, "ws-evil/s", "evil");
    tree_file(tree, "out/secret", "secret");
}

static inline int tree_remove_entry(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void tree_remove(struct tree *tree)
{
    nftw(tree->top, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* cmocka fixtures; *state starts as whether to force the walk. */
static bool tree_by_walk = true, tree_by_openat2 = false;

static inline int tree_set_up(void **state)
{
    struct tree *tree = calloc(1, sizeof(*tree));
    struct err err;
    tree->walk = *(bool *)*state;
    tree_make(tree);
    tree->open_before = count_descriptors();
    tree->confine = confine_new(tree->base, tree->walk, &err);
    *state = tree;
    return tree->confine ? 0 : -1;
}

static inline int tree_tear_down(void **state)
{
    struct tree *tree = *state;
    confine_free(tree->confine);
    int leaked = count_descriptors() - tree->open_before;
    tree_remove(tree);
    free(tree);
    if (leaked != 0)
        print_error("%d descriptors leaked\n", leaked);
    return leaked;
}

/* A test in both ways of resolving paths. */
#define TREE_TEST(name)                                                                                                \
    {#name " by openat2", name, tree_set_up, tree_tear_down, &tree_by_openat2},                                        \
    {                                                                                                                  \
#name " by walk", name, tree_set_up, tree_tear_down, &tree_by_walk                                             \
    }

#endif
