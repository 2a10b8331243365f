/* Writes that wait for nobody: what is done so in a base in memory, and that nothing happens where it is not. */
#include "tree.h"

#include "prim/entry.h"
#include "prim/file_lock.h"
#include "prim/file_write.h"
#include "prim/parents.h"

#include <sys/mount.h>
#include <sys/xattr.h>

enum { TOO_MUCH = 64 * 1024 + 1, LARGE = 2 * 1024 * 1024 };

static struct err err;
static char answer[4096];
static bool created;

static struct file_write content_of(const char *path, const char *content)
{
    return (struct file_write){.path = path,
                               .path_len = strlen(path),
                               .content = content,
                               .content_len = strlen(content),
                               .overwrite = true,
                               .create_parents = true,
                               .mode = -1,
                               .at_once = true};
}

static int put(struct tree *tree, struct file_write request)
{
    struct buf text;
    buf_init(&text, sizeof(answer) - 1);
    int result = file_write(tree->confine, &request, &text, &created, &err);
    snprintf(answer, sizeof(answer), "%.*s", (int)text.len, text.len > 0 ? text.data : "");
    buf_deinit(&text);
    return result;
}

static struct stat stat_of(const struct tree *tree, const char *name)
{
    struct stat found;
    assert_int_equal(lstat(tree_path(tree, name), &found), 0);
    return found;
}

static void assert_written(struct tree *tree, struct file_write request, const char *name, const char *text,
                           bool is_created)
{
    char expected[2 * PATH_MAX], path[PATH_MAX], etag[ENTRY_ETAG_MAX];
    assert_int_equal(put(tree, request), 0);
    assert_int_equal(created, is_created);
    assert_string_equal(tree_text(tree, name), text);
    struct stat found = stat_of(tree, name);
    entry_etag(etag, &found);
    snprintf(path, sizeof(path), "%s", tree_path(tree, name));
    snprintf(expected, sizeof(expected), "{\"path\":\"%s\",\"size\":%zu,\"created\":%s,\"etag\":\"\\\"%.*s\\\"\"}",
             path, strlen(text), is_created ? "true" : "false", (int)strlen(etag) - 2, etag + 1);
    assert_string_equal(answer, expected);
}

static void test_done(void **state)
{
    struct tree *tree = *state;
    char etag[ENTRY_ETAG_MAX], absolute[PATH_MAX];
    tree_dir(tree, "ws/d");
    assert_written(tree, content_of("f", "one"), "ws/f", "one", true);
    assert_int_equal(stat_of(tree, "ws/f").st_mode & 07777, 0644);
    assert_int_equal(chmod(tree_path(tree, "ws/f"), 0751), 0);
    assert_written(tree, content_of("f", "two"), "ws/f", "two", false);
    assert_int_equal(stat_of(tree, "ws/f").st_mode & 07777, 0751);
    struct file_write request = content_of("f", "");
    request.mode = 0600;
    assert_written(tree, request, "ws/f", "", false);
    assert_int_equal(stat_of(tree, "ws/f").st_mode & 07777, 0600);
    snprintf(absolute, sizeof(absolute), "%s/d/g", tree->base);
    assert_written(tree, content_of(absolute, "deep"), "ws/d/g", "deep", true);

    struct stat found = stat_of(tree, "ws/d/g");
    entry_etag(etag, &found);
    request = content_of("d/g", "YWJj");
    request.base64 = true;
    request.if_match = etag;
    assert_written(tree, request, "ws/d/g", "abc", false);
    assert_int_equal(tree_count(tree, "ws"), 2);
    assert_int_equal(tree_count(tree, "ws/d"), 1);
}

static void test_attributes_are_kept(void **state)
{
    struct tree *tree = *state;
    char value[8] = "";
    tree_file(tree, "ws/f", "old");
    if (setxattr(tree_path(tree, "ws/f"), "user.note", "kept", 4, 0) != 0) {
        printf("NOT RUN: attributes of files in memory: not on this machine\n");
        return;
    }
    assert_written(tree, content_of("f", "new"), "ws/f", "new", false);
    assert_int_equal(getxattr(tree_path(tree, "ws/f"), "user.note", value, sizeof(value)), 4);
    assert_string_equal(value, "kept");
}

/* Nothing in ws may have changed. */
static void assert_left(struct tree *tree, struct file_write request)
{
    int count = tree_count(tree, "ws");
    assert_int_equal(put(tree, request), 1);
    assert_string_equal(answer, "");
    assert_int_equal(tree_count(tree, "ws"), count);
    assert_string_equal(tree_text(tree, "ws/f"), "old");
}

static void test_left_to_who_may_wait(void **state)
{
    struct tree *tree = *state;
    static char much[TOO_MUCH + 1];
    static const char *const paths[] = {"new/f",
                                        "l",
                                        "ld/f",
                                        "d",
                                        "fifo",
                                        "d/",
                                        ".",
                                        "..",
                                        "",
                                        "d/../f",
                                        "./f",
                                        "d//f",
                                        "f/",
                                        "f/x",
                                        "large",
                                        "../ws-evil/s",
                                        "/etc/hostname",
                                        "mounted/f"};
    memset(much, 'x', TOO_MUCH);
    tree_file(tree, "ws/f", "old");
    tree_dir(tree, "ws/d");
    tree_link(tree, "f", "ws/l");
    tree_link(tree, "d", "ws/ld");
    tree_dir(tree, "ws/mounted");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    int large = open(tree_path(tree, "ws/large"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(posix_fallocate(large, 0, LARGE), 0);
    close(large);
    bool is_mounted = mount("tmpfs", tree_path(tree, "ws/mounted"), "tmpfs", 0, "size=64k") == 0;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) - !is_mounted; i++)
        assert_left(tree, content_of(paths[i], "new"));
    if (is_mounted)
        umount2(tree_path(tree, "ws/mounted"), MNT_DETACH);

    assert_left(tree, content_of("f", much));
    struct edit edit = {"old", "new", 3, 3, false};
    struct file_write request = content_of("f", "more");
    request.append = true;
    assert_left(tree, request);
    request = content_of("f", "");
    request.content = NULL;
    request.edits = &edit;
    request.edit_count = 1;
    assert_left(tree, request);
    request = content_of("f", "new");
    request.overwrite = false;
    assert_left(tree, request);
    request.overwrite = true;
    request.if_match = "\"stale\"";
    assert_left(tree, request);
    request.if_match = NULL;
    request.base64 = true;
    assert_left(tree, request);
    much[TOO_MUCH - 1] = '\0';
    assert_int_equal(put(tree, content_of("f", much)), 0);
}

/* Whoever is at the file or makes directories may be waiting for a disk. */
static void test_waits_for_no_lock(void **state)
{
    struct tree *tree = *state;
    struct file_lock lock = {0}, other = {0};
    tree_file(tree, "ws/f", "old");
    int base = open(tree->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_lock_take(&lock, base, "f", &err), 0);
    assert_int_equal(file_lock_try(&other, base, "f", &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    assert_left(tree, content_of("f", "new"));
    assert_int_equal(put(tree, content_of("g", "new")), 0);
    file_lock_release(&lock);
    parents_lock();
    assert_left(tree, content_of("f", "new"));
    parents_unlock();
    assert_written(tree, content_of("f", "new"), "ws/f", "new", false);
    assert_int_equal(file_lock_try(&other, base, "f", &err), 0); /* nothing is held any more */
    file_lock_release(&other);
    close(base);
}

#define MEMORY_TEST(name) cmocka_unit_test_prestate_setup_teardown(name, tree_set_up, tree_tear_down, &tree_by_openat2)

/* The walk, and what is on a disk, may wait. */
static void test_never(void **state)
{
    struct tree *tree = *state;
    assert_int_equal(put(tree, content_of("f", "new")), 1);
    assert_int_equal(tree_count(tree, "ws"), 0);
}

static bool is_possible(void)
{
    struct tree tree = {0};
    struct confine_entry entry;
    char dir_path[PATH_MAX];
    if (!tree_use_memory())
        return false;
    tree_make(&tree);
    struct confine *confine = confine_new(tree.base, false, &err);
    bool possible = confine && confine_parent_cached(confine, "f", 1, &entry, dir_path) == 0;
    if (possible)
        close(entry.dir_fd);
    else
        printf("NOT RUN: writes at once: this kernel cannot look up what is cached only\n");
    confine_free(confine);
    tree_remove(&tree);
    return possible;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(test_done),
        MEMORY_TEST(test_attributes_are_kept),
        MEMORY_TEST(test_left_to_who_may_wait),
        MEMORY_TEST(test_waits_for_no_lock),
        cmocka_unit_test_prestate_setup_teardown(test_never, tree_set_up, tree_tear_down, &tree_by_walk),
    };
    umask(022);
    return is_possible() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
