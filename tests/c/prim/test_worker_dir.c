/* prim/worker_dir: private directories of workers, made, used and removed whatever is in them. */
#include "prim/worker_dir.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
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
        assert_memory_equal(dir.path, "/tmp/abxd-", 10);
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

static void a_closed_tmp_is_nothing_of_the_clients(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(make_in_closed_tmp());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77) {
        printf("NOT RUN: a /tmp that takes nothing: this machine allows no namespace of mounts\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void removes_what_even_its_owner_may_not_enter(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
            _exit(77);
        _exit(fill_and_remove());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77) {
        printf("NOT RUN: removal by a user who is not root: this machine allows no change of users\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_int_equal(fill_and_remove(), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_and_removes),
        cmocka_unit_test(falls_back_to_tmp),
        cmocka_unit_test(a_closed_tmp_is_nothing_of_the_clients),
        cmocka_unit_test(sets_the_environment),
        cmocka_unit_test(removes_what_even_its_owner_may_not_enter),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
