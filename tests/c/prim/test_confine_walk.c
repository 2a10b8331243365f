/* Entries (a directory and a name in it), protected paths, deep trees, and kernels that refuse openat2 or procfs. */
#include "tree.h"

#include "../refuse_openat2.h"
#include "base/log.h"
#include "prim/confine_walk.h"
#include "prim/parents.h"
#include "prim/upload_dirs.h"

#include <errno.h>
#include <sys/wait.h>

/* confine_parent, then "DIRECTORY|NAME" relative to the temporary directory, or "DIRECTORY|MISSING|NAME"; or the name
 * of the failure's code. */
static const char *entry_of(struct tree *tree, const char *path, int flags)
{
    static char text[3 * PATH_MAX];
    char dir[PATH_MAX];
    struct err err = {0};
    struct confine_entry entry;
    if (confine_parent(tree->confine, path, strlen(path), flags, &entry, &err) != 0)
        return err_code_name(err.code);
    assert_int_equal(confine_path_of(entry.dir_fd, dir, sizeof(dir), &err), 0);
    close(entry.dir_fd);
    assert_memory_equal(dir, tree->top, strlen(tree->top));
    snprintf(text, sizeof(text), "%s|%s%s%s", dir + strlen(tree->top) + 1, entry.missing, entry.missing[0] ? "|" : "",
             entry.name);
    return text;
}

#define assert_entry(tree, path, flags, wanted) assert_string_equal(entry_of(tree, path, flags), wanted)

static void test_entries(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/a");
    tree_dir(tree, "ws/a/b");
    tree_file(tree, "ws/f", "x");
    for (int flags = 0; flags <= CONFINE_FOLLOW; flags += CONFINE_FOLLOW) {
        assert_entry(tree, "f", flags, "ws|f");
        assert_entry(tree, "new", flags, "ws|new");
        assert_entry(tree, "a/b", flags, "ws/a|b");
        assert_entry(tree, "a/b/", flags, "ws/a|b");
        assert_entry(tree, "a/b/.", flags, "ws/a|b");
        assert_entry(tree, "a/b/..", flags, "ws|a");
        assert_entry(tree, "a/./b/../new", flags, "ws/a|new");
        assert_entry(tree, tree_path(tree, "ws/a/new"), flags, "ws/a|new");
        assert_entry(tree, "f/", flags, "not_a_directory");
        assert_entry(tree, "f/new", flags, "not_a_directory");
        assert_entry(tree, "none/new", flags, "file_not_found");
        assert_entry(tree, "../out/new", flags, "path_outside_base");
        assert_entry(tree, tree_path(tree, "out/new"), flags, "path_outside_base");
        assert_entry(tree, tree_path(tree, "ws-evil/new"), flags, "path_outside_base");
    }
    char longer[NAME_MAX + 2];
    memset(longer, 'n', sizeof(longer));
    longer[NAME_MAX + 1] = '\0';
    assert_entry(tree, longer, 0, "invalid_path");
}

static void test_the_base_is_no_entry(void **state)
{
    struct tree *tree = *state;
    const char *names[] = {"", ".", "./", "./.", "a/..", "/", "a/b/../..", "home", "a/home/"};
    tree_dir(tree, "ws/a");
    tree_dir(tree, "ws/a/b");
    tree_link(tree, tree->base, "ws/home");
    tree_link(tree, "..", "ws/a/home");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *wanted = strcmp(names[i], "/") == 0 ? "path_outside_base" : "base_dir_protected";
        assert_entry(tree, names[i], CONFINE_FOLLOW, wanted);
    }
    assert_entry(tree, tree->base, 0, "base_dir_protected");
    assert_entry(tree, tree_path(tree, "ws/"), CONFINE_MISSING_PARENTS, "base_dir_protected");
    assert_entry(tree, "home", 0, "ws|home");
    assert_entry(tree, "a/home/", 0, "ws/a|home");
}

static void test_entries_through_links(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/a");
    tree_file(tree, "ws/a/f", "x");
    tree_link(tree, "a/f", "ws/file");
    tree_link(tree, tree_path(tree, "ws/a"), "ws/absolute");
    tree_link(tree, tree_path(tree, "out"), "ws/l");
    tree_link(tree, tree_path(tree, "out/new"), "ws/dangling-out");
    tree_link(tree, "../out/new", "ws/dangling-up");
    tree_link(tree, "a/new", "ws/dangling-in");
    tree_link(tree, "x/y/new", "ws/dangling-deep");
    assert_entry(tree, "file", 0, "ws|file");
    assert_entry(tree, "file", CONFINE_FOLLOW, "ws/a|f");
    assert_entry(tree, "absolute/f", 0, "ws/a|f");
    assert_entry(tree, "absolute", CONFINE_FOLLOW, "ws|a");
    assert_entry(tree, "l", 0, "ws|l");
    assert_entry(tree, "l", CONFINE_FOLLOW, "path_outside_base");
    assert_entry(tree, "l/new", 0, "path_outside_base");
    assert_entry(tree, "l/new", CONFINE_FOLLOW | CONFINE_MISSING_PARENTS, "path_outside_base");
    assert_entry(tree, "l/d/new", CONFINE_MISSING_PARENTS, "path_outside_base");
    assert_entry(tree, "dangling-out", CONFINE_FOLLOW, "path_outside_base");
    assert_entry(tree, "dangling-up", CONFINE_FOLLOW, "path_outside_base");
    assert_entry(tree, "dangling-in", CONFINE_FOLLOW, "ws/a|new");
    assert_entry(tree, "dangling-deep", CONFINE_FOLLOW, "file_not_found");
    assert_entry(tree, "dangling-deep", CONFINE_FOLLOW | CONFINE_MISSING_PARENTS, "ws|x/y|new");
    assert_int_equal(tree_count(tree, "out"), 1);
    assert_false(tree_has(tree, "ws/a/new"));
}

static void test_missing_parents(void **state)
{
    struct tree *tree = *state;
    char longer[NAME_MAX + 10];
    tree_dir(tree, "ws/a");
    tree_file(tree, "ws/f", "x");
    assert_entry(tree, "p/q/new", 0, "file_not_found");
    assert_entry(tree, "p/q/new", CONFINE_MISSING_PARENTS, "ws|p/q|new");
    assert_entry(tree, "a/p/./q//new", CONFINE_MISSING_PARENTS, "ws/a|p/q|new");
    assert_entry(tree, "a/new", CONFINE_MISSING_PARENTS, "ws/a|new");
    assert_entry(tree, tree_path(tree, "ws/r/s/new/"), CONFINE_MISSING_PARENTS, "ws|r/s|new");
    assert_entry(tree, "f/q/new", CONFINE_MISSING_PARENTS, "not_a_directory");
    assert_entry(tree, "../out/d/new", CONFINE_MISSING_PARENTS, "path_outside_base");
    /* what is not there has no parent */
    assert_entry(tree, "p/../new", CONFINE_MISSING_PARENTS, "file_not_found");
    assert_entry(tree, "p/../../out/new", CONFINE_MISSING_PARENTS, "file_not_found");
    assert_entry(tree, "p/q/..", CONFINE_MISSING_PARENTS, "file_not_found");
    assert_entry(tree, "p/q/.", CONFINE_MISSING_PARENTS, "file_not_found");
    memset(longer, 'n', sizeof(longer));
    memcpy(longer, "p/", 2);
    longer[sizeof(longer) - 1] = '\0';
    assert_entry(tree, longer, CONFINE_MISSING_PARENTS, "invalid_path");
    assert_int_equal(tree_count(tree, "ws"), 2);
    assert_int_equal(tree_count(tree, "out"), 1);
}

static void test_protected_paths(void **state)
{
    struct tree *tree = *state;
    struct err err = {0};
    bool inside;
    tree_dir(tree, "ws/lua");
    tree_dir(tree, "ws/lua/routes");
    tree_file(tree, "ws/lua/routes/core.lua", "x");
    tree_dir(tree, "ws/etc");
    tree_file(tree, "ws/etc/commands.lua", "x");
    tree_file(tree, "ws/etc/other", "fine");
    tree_link(tree, "lua", "ws/alias");
    assert_int_equal(link(tree_path(tree, "ws/etc/commands.lua"), tree_path(tree, "ws/hard")), 0);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/lua/"), &inside, &err), 0);
    assert_true(inside);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/commands.lua"), &inside, &err), 0);
    assert_true(inside);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/etc/later.lua"), &inside, &err), 0);
    assert_true(inside);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/none/deep/later.lua"), &inside, &err), 0);
    assert_true(inside);
    assert_int_equal(confine_protect(tree->confine, tree->base, &inside, &err), 0);
    assert_true(inside);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "out/secret"), &inside, &err), 0);
    assert_false(inside);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "none/x"), &inside, &err), 0);
    assert_false(inside);
    assert_int_equal(confine_protect(tree->confine, "relative", &inside, &err), -1);

    const char *refused[] = {"lua/routes/core.lua", "alias/routes/core.lua", "lua", "etc/commands.lua", "hard",
                             "etc/../lua/routes",   "etc/later.lua"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(confine_open(tree->confine, refused[i], strlen(refused[i]), O_RDONLY, &err), -1);
        assert_int_equal(err.code, ERR_PERMISSION_DENIED);
        assert_entry(tree, refused[i], CONFINE_FOLLOW | CONFINE_MISSING_PARENTS, "permission_denied");
    }
    assert_entry(tree, "lua/new", 0, "permission_denied");
    assert_entry(tree, "none/deep/new", CONFINE_MISSING_PARENTS, "permission_denied");
    assert_int_equal(confine_open_dir(tree->confine, "lua/routes", 10, &err), -1);
    assert_int_equal(err.code, ERR_PERMISSION_DENIED);
    assert_int_equal(confine_open_file(tree->confine, "etc/commands.lua", 16, O_WRONLY, &err), -1);
    assert_int_equal(err.code, ERR_PERMISSION_DENIED);

    /* An editor that saves by rename makes a new inode: the name stays protected. */
    tree_file(tree, "ws/etc/saved", "new");
    assert_int_equal(rename(tree_path(tree, "ws/etc/saved"), tree_path(tree, "ws/etc/commands.lua")), 0);
    assert_entry(tree, "etc/commands.lua", 0, "permission_denied");
    int fd = confine_open_file(tree->confine, "etc/other", 9, O_RDONLY, &err);
    assert_string_equal(text_of(fd), "fine");
    close(fd);
    assert_entry(tree, "alias", 0, "ws|alias");
}

/* Physical depth: what is deeper than the walk goes is refused, not cut; the kernel itself has no such bound. */
static void test_deep_trees(void **state)
{
    struct tree *tree = *state;
    struct err err = {0};
    char path[PATH_MAX] = "d";
    for (int i = 1; i < 250; i++)
        strcat(path, "/d");
    struct confine_entry entry;
    int fd;
    char file[PATH_MAX + 8];
    snprintf(file, sizeof(file), "%s/f", path);
    assert_int_equal(confine_parent(tree->confine, file, strlen(file), CONFINE_MISSING_PARENTS, &entry, &err), 0);
    assert_string_equal(entry.missing, path);
    size_t made;
    fd = parents_make(entry.dir_fd, entry.missing, &made, &err);
    assert_true(fd >= 0);
    assert_int_equal(made, 250);
    close(fd);
    close(entry.dir_fd);
    fd = confine_open_dir(tree->confine, path, strlen(path), &err);
    assert_true(fd >= 0);
    close(fd);
    for (int i = 0; i < 250; i++)
        strcat(path, "/..");
    fd = confine_open_dir(tree->confine, path, strlen(path), &err);
    assert_true(fd >= 0);
    close(fd);
    path[0] = '\0';
    for (int i = 0; i < 300; i++)
        strcat(path, "e/");
    assert_int_equal(confine_parent(tree->confine, path, strlen(path), CONFINE_MISSING_PARENTS, &entry, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_PATH);
}

/* Without /proc the name is opened again in its directory, and must be the inode that was found. */
static void test_without_procfs(void **state)
{
    struct tree *tree = *state;
    struct err err = {0};
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/d/f", "12345");
    tree_link(tree, tree_path(tree, "ws/d"), "ws/absolute");
    tree->confine->has_proc = false;
    int fd = confine_open_file(tree->confine, "absolute/f", 10, O_RDONLY, &err);
    assert_string_equal(text_of(fd), "12345");
    close(fd);
    fd = confine_open_file(tree->confine, "d/f", 3, O_RDWR | O_TRUNC, &err);
    assert_string_equal(text_of(fd), "");
    close(fd);
    fd = confine_open_dir(tree->confine, "absolute", 8, &err);
    assert_true(fd >= 0);
    assert_int_equal(faccessat(fd, "f", F_OK, 0), 0);
    close(fd);
    assert_int_equal(confine_open_file(tree->confine, "d", 1, O_RDONLY, &err), -1);
    assert_int_equal(err.code, ERR_IS_A_DIRECTORY);
}

static int child_without_openat2(const struct tree *tree, unsigned errno_value)
{
    struct err err;
    if (!refuse_openat2(errno_value))
        return 77;
    log_configure(LOG_LEVEL_OFF, true);
    struct confine *confine = confine_new(tree->base, false, &err);
    if (!confine || confine_uses_openat2(confine))
        return 1;
    int fd = confine_open_file(confine, "f", 1, O_RDONLY, &err);
    if (fd < 0 || confine_open_file(confine, "../out/secret", 13, O_RDONLY, &err) >= 0)
        return 2;
    close(fd);
    confine_free(confine);
    return err.code == ERR_PATH_OUTSIDE_BASE ? 0 : 3;
}

static void test_openat2_refused(void **state)
{
    struct tree *tree = *state;
    const unsigned refusals[] = {ENOSYS, EPERM};
    tree_file(tree, "ws/f", "x");
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(child_without_openat2(tree, refusals[i]));
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) {
            printf("NOT RUN: test_openat2_refused: no seccomp filters here\n");
            return;
        }
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_entries),
        TREE_TEST(test_the_base_is_no_entry),
        TREE_TEST(test_entries_through_links),
        TREE_TEST(test_missing_parents),
        TREE_TEST(test_protected_paths),
        TREE_TEST(test_deep_trees),
        TREE_TEST(test_without_procfs),
        cmocka_unit_test_prestate_setup_teardown(test_openat2_refused, tree_set_up, tree_tear_down, &tree_by_openat2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
