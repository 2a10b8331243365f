/* prim/worker_dir: private directories of workers, made, used and removed whatever is in them. */
#include "prim/worker_dir.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "/tmp/worker-dir-XXXXXX";
static struct confine *confine;

static int set_up(void **state)
{
    struct err err;
    (void)state;
    assert_non_null(mkdtemp(base));
    assert_int_equal(chmod(base, 0777), 0);
    confine = confine_new(base, false, &err);
    assert_non_null(confine);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    confine_free(confine);
    return rmdir(base);
}

static void makes_and_removes(void **state)
{
    (void)state;
    struct worker_dir dir, other;
    struct stat st;
    struct err err;
    char path[PATH_MAX + 8];
    assert_int_equal(worker_dir_make(&dir, base, &err), 0);
    assert_int_equal(worker_dir_make(&other, base, &err), 0);
    assert_string_not_equal(dir.path, other.path);
    assert_memory_equal(dir.path, base, strlen(base));
    static const char *const parts[] = {"", "/home", "/tmp"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s%s", dir.path, parts[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0700);
    }
    char made[PATH_MAX];
    strcpy(made, dir.path);
    worker_dir_remove(&dir, confine);
    assert_string_equal(dir.path, "");
    assert_int_equal(access(made, F_OK), -1);
    worker_dir_remove(&dir, confine);
    worker_dir_remove(&other, confine);
}

static void falls_back_to_tmp(void **state)
{
    (void)state;
    static const char *const parents[] = {NULL, "", "relative", "/nowhere/at/all"};
    for (size_t i = 0; i < 4; i++) {
        struct worker_dir dir;
        struct err err;
        assert_int_equal(worker_dir_make(&dir, parents[i], &err), 0);
        assert_memory_equal(dir.path, "/tmp/abxd-worker-", 17);
        worker_dir_remove(&dir, confine);
    }
}

static void sets_the_environment(void **state)
{
    (void)state;
    char *vars[] = {"A=1",   "HOME=/root",      "XDG_CONFIG_HOME=/etc", "ABX_SERVER_TOKEN=x",
                    "XDG_=", "TMPDIR=/var/tmp", "MY_XDG_X=stays",       NULL};
    struct env_block from, env;
    struct worker_dir dir = {.path = "/tmp/abxd-test"};
    env_block_init(&from);
    assert_int_equal(worker_dir_env(&dir, &from, &env), 0); /* an empty one */
    assert_int_equal(env.count, 2);
    env_block_deinit(&env);
    assert_int_equal(env_block_inherit(&from, vars), 0);
    assert_int_equal(worker_dir_env(&dir, &from, &env), 0);
    assert_int_equal(env.count, 4);
    assert_string_equal(env_block_get(&env, "A"), "1");
    assert_string_equal(env_block_get(&env, "HOME"), "/tmp/abxd-test/home");
    assert_string_equal(env_block_get(&env, "TMPDIR"), "/tmp/abxd-test/tmp");
    assert_string_equal(env_block_get(&env, "MY_XDG_X"), "stays");
    env_block_deinit(&env);
    env_block_deinit(&from);
}

/* Everything that keeps an owner who is not root from removing it, and links that lead away. */
static int fill_and_remove(void)
{
    struct worker_dir dir;
    struct stat st;
    struct err err;
    char command[PATH_MAX + 512];
    if (worker_dir_make(&dir, base, &err) != 0)
        return 2;
    snprintf(command, sizeof(command),
             "cd '%s/home' && mkdir -p a/b/c d/e keep ../../outside && echo x > a/b/c/f && echo x > d/e/f && "
             "ln -s ../../../outside a/link && ln -s / d/root && chmod 0 a/b/c && chmod 0 a/b && chmod 0500 a && "
             "chmod 0400 d/e && chmod 0500 ../../outside && chmod 0500 ../home",
             dir.path);
    if (system(command) != 0)
        return 3;
    char made[PATH_MAX];
    strcpy(made, dir.path);
    worker_dir_remove(&dir, confine);
    if (access(made, F_OK) == 0)
        return 4;
    snprintf(command, sizeof(command), "%s/outside", base);
    return stat(command, &st) == 0 && (st.st_mode & 0777) == 0500 && rmdir(command) == 0 ? 42 : 5;
}

/* In a mount namespace of its own, whose /tmp takes nothing. */
static int make_in_closed_tmp(void)
{
    struct worker_dir dir;
    struct err err;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/tmp", "tmpfs", MS_RDONLY, NULL) != 0)
        return 77;
    if (worker_dir_make(&dir, "/nonexistent", &err) == 0 || err.code != ERR_UNAVAILABLE || dir.path[0] != '\0')
        return 1;
    return strstr(err.text, "TMPDIR") != NULL ? 42 : 2;
}

/* In a process of its own: 42 is right, 77 that this machine refuses it. */
static void expect_in_child(int (*run)(void), const char *what)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77) {
        printf("NOT RUN: %s\n", what);
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void a_closed_tmp_is_nothing_of_the_clients(void **state)
{
    (void)state;
    expect_in_child(make_in_closed_tmp, "a /tmp that takes nothing: this machine allows no namespace of mounts");
}

static int fill_and_remove_without_root(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
        return 77;
    return fill_and_remove();
}

static void removes_what_even_its_owner_may_not_enter(void **state)
{
    (void)state;
    assert_int_equal(fill_and_remove(), 42);
    expect_in_child(fill_and_remove_without_root, "removal by a user who is not root: this machine allows no change of "
                                                  "users");
}

/* --- what a server left */

/* The end of the process lets go of it, as a SIGKILL does. */
static int make_and_leave(void)
{
    struct worker_dir dir;
    struct err err;
    return worker_dir_make(&dir, base, &err) == 0 ? 42 : 1;
}

static size_t count_in(const char *path)
{
    size_t count = 0;
    DIR *list = opendir(path);
    while (readdir(list) != NULL)
        count++;
    closedir(list);
    return count - 2;
}

static void sweeps_what_nobody_holds(void **state)
{
    (void)state;
    struct worker_dir held;
    struct err err;
    assert_int_equal(worker_dir_make(&held, base, &err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chmod(base, i == 2 ? 02777 : 0777), 0); /* which what is made in there inherits */
        expect_in_child(make_and_leave, "");
    }
    assert_int_equal(count_in(base), 4);
    worker_dir_sweep(base, confine);
    assert_int_equal(count_in(base), 1);
    assert_int_equal(access(held.path, F_OK), 0);
    assert_int_equal(count_in(held.path), 2);
    worker_dir_remove(&held, confine);
    worker_dir_sweep(base, confine);
    worker_dir_sweep("/nowhere/at/all", confine);
    assert_int_equal(count_in(base), 0);
}

/* What anybody may lay there under such a name. */
static void sweeps_nothing_else(void **state)
{
    (void)state;
    static const char *const made[] = {
        "mkdir precious && touch precious/f && chmod 0700 precious",
        "ln -s precious abxd-worker-link11",
        "mkdir -m 0755 abxd-worker-mode22",
        "mkdir -m 1700 abxd-worker-mode33",
        "touch abxd-worker-file44",
        "mkfifo abxd-worker-fifo55",
        "mkdir -m 0700 abxd-66 other-abxd-worker-77",
        "[ \"$(id -u)\" != 0 ] || { mkdir -m 0700 abxd-worker-user88 && chown 65534 abxd-worker-user88; }",
    };
    char command[512];
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        snprintf(command, sizeof(command), "cd %s && %s", base, made[i]);
        assert_int_equal(system(command), 0);
    }
    size_t before = count_in(base);
    worker_dir_sweep(base, confine);
    assert_int_equal(count_in(base), before);
    snprintf(command, sizeof(command), "%s/precious/f", base);
    assert_int_equal(access(command, F_OK), 0);
    snprintf(command, sizeof(command), "rm -r %s/*", base);
    assert_int_equal(system(command), 0);
}

static void make_in(const struct worker_dir *dir, const char *name, const char *content)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(content, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static bool has(const struct worker_dir *dir, const char *name)
{
    char path[PATH_MAX + 64];
    struct stat found;
    snprintf(path, sizeof(path), "%s/%s", dir->path, name);
    return lstat(path, &found) == 0;
}

static bool takes(const struct worker_dir *dir, const char *name, uint64_t size)
{
    struct stat found;
    struct err err;
    int fd = worker_dir_take(dir, name, strlen(name), size, &found, &err);
    if (fd >= 0)
        close(fd);
    else
        assert_int_equal(err.code, ERR_INTERNAL);
    return fd >= 0;
}

static void gives_files_away(void **state)
{
    (void)state;
    struct worker_dir dir;
    struct err err;
    assert_int_equal(worker_dir_make(&dir, base, &err), 0);
    for (int held = 1; held >= 0; held--) {
        struct stat found;
        char text[16] = "";
        struct worker_dir other = dir;
        if (!held)
            other.held_fd = -1; /* as where there are no locks */
        make_in(&dir, "tmp/picture-1", "hello");
        int fd = worker_dir_take(&other, "picture-1", 9, 5, &found, &err);
        assert_true(fd >= 0);
        assert_int_equal(found.st_size, 5);
        assert_int_equal(read(fd, text, sizeof(text)), 5);
        assert_string_equal(text, "hello");
        assert_int_equal(write(fd, "x", 1), -1);
        close(fd);
        assert_false(has(&dir, "tmp/picture-1"));
        assert_false(takes(&other, "picture-1", 5));
    }
    make_in(&dir, "tmp/empty", "");
    assert_true(takes(&dir, "empty", 0));
    worker_dir_remove(&dir, confine);
}

static void gives_nothing_else_away(void **state)
{
    (void)state;
    static const char *const names[] = {"",    ".",      "..",      "/etc/passwd", "../home/f", "sub/f", "./f",
                                        "sub", "to_out", "to_file", "fifo",        "hard",      "none"};
    struct worker_dir dir;
    struct stat found;
    struct err err;
    char command[3 * PATH_MAX];
    assert_int_equal(worker_dir_make(&dir, base, &err), 0);
    make_in(&dir, "home/f", "hello");
    make_in(&dir, "tmp/f", "hello");
    make_in(&dir, "tmp/hard", "hello");
    snprintf(command, sizeof(command),
             "cd %s/tmp && mkdir sub && echo -n hello >sub/f && ln -s ../home/f to_out && ln -s f to_file && "
             "mkfifo fifo && ln hard sub/hard",
             dir.path);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (uint64_t size = 0; size <= 5; size += 5)
            assert_false(takes(&dir, names[i], size));
    assert_int_equal(worker_dir_take(&dir, "f\0g", 3, 5, &found, &err), -1);
    assert_false(takes(&dir, "f", 4));
    assert_false(takes(&dir, "f", 6));
    static const char *const kept[] = {"home/f", "tmp/f", "tmp/sub/f", "tmp/to_out", "tmp/fifo", "tmp/hard"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        assert_true(has(&dir, kept[i]));
    snprintf(command, sizeof(command), "cd %s && mv tmp gone && ln -s gone tmp", dir.path);
    assert_int_equal(system(command), 0);
    assert_false(takes(&dir, "f", 5));
    worker_dir_remove(&dir, confine);
}

static void gives_no_files_of_others_away(void **state)
{
    (void)state;
    struct worker_dir dir;
    struct err err;
    char path[PATH_MAX + 64];
    if (geteuid() != 0) {
        print_message("NOT RUN: gives_no_files_of_others_away: not root\n");
        return;
    }
    assert_int_equal(worker_dir_make(&dir, base, &err), 0);
    make_in(&dir, "tmp/f", "hello");
    snprintf(path, sizeof(path), "%s/tmp/f", dir.path);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_false(takes(&dir, "f", 5));
    assert_int_equal(chown(path, 0, 65534), 0);
    assert_true(takes(&dir, "f", 5));
    worker_dir_remove(&dir, confine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_and_removes),
        cmocka_unit_test(falls_back_to_tmp),
        cmocka_unit_test(a_closed_tmp_is_nothing_of_the_clients),
        cmocka_unit_test(sets_the_environment),
        cmocka_unit_test(removes_what_even_its_owner_may_not_enter),
        cmocka_unit_test(sweeps_what_nobody_holds),
        cmocka_unit_test(sweeps_nothing_else),
        cmocka_unit_test(gives_files_away),
        cmocka_unit_test(gives_nothing_else_away),
        cmocka_unit_test(gives_no_files_of_others_away),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
