/* prim/login_shell: which of the candidates is taken. */
#include "prim/login_shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY_HAS_THIS ((uid_t)4000000001)

static char folder[] = "/tmp/abx-login-shell-XXXXXX";

static const char *found_with(const char *preferred, uid_t user)
{
    static char path[PATH_MAX];
    login_shell_find(preferred, user, path);
    return path;
}

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static const char *make(const char *name, mode_t mode)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void takes_what_is_preferred(void **state)
{
    (void)state;
    assert_string_equal(found_with("/bin/sh", NOBODY_HAS_THIS), "/bin/sh");
    const char *path = make("my-shell", 0755);
    assert_string_equal(found_with(path, NOBODY_HAS_THIS), path);
    unlink(path);
}

static void leaves_out_what_is_no_shell(void **state)
{
    (void)state;
    static const char *const none[] = {NULL,         "",           "bash",       "/",         "/tmp",
                                       "./sh",       "sh -c",      "/bin/sh -l", "/dev/null", "/usr/sbin/nologin",
                                       "/bin/false", "/nowhere/sh"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_string_equal(found_with(none[i], NOBODY_HAS_THIS), "/bin/bash");
    static const char *const refusals[] = {"nologin", "false"};
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(found_with(make(refusals[i], 0755), NOBODY_HAS_THIS), "/bin/bash");
        unlink(in_folder(refusals[i]));
    }
    assert_string_equal(found_with(make("not-executable", 0644), NOBODY_HAS_THIS), "/bin/bash");
    unlink(in_folder("not-executable"));
    char *long_path = malloc(2 * PATH_MAX);
    memset(long_path, '/', 2 * PATH_MAX - 1);
    strcpy(long_path + 2 * PATH_MAX - 8, "bin/sh");
    assert_string_equal(found_with(long_path, NOBODY_HAS_THIS), "/bin/bash");
    free(long_path);
}

/* For each user that this system has. */
static void takes_that_of_the_user(void **state)
{
    (void)state;
    size_t with_shell = 0, without = 0;
    struct passwd *entry;
    setpwent();
    while ((entry = getpwent()) != NULL) {
        const char *name = strrchr(entry->pw_shell, '/');
        bool usable = name != NULL && strcmp(name, "/nologin") != 0 && strcmp(name, "/false") != 0 &&
                      access(entry->pw_shell, X_OK) == 0;
        struct passwd *first = NULL, space;
        char text[16 * 1024];
        assert_int_equal(getpwuid_r(entry->pw_uid, &space, text, sizeof(text), &first), 0);
        if (first == NULL || strcmp(first->pw_name, entry->pw_name) != 0)
            continue; /* another one has this number, too */
        assert_string_equal(found_with(NULL, entry->pw_uid), usable ? entry->pw_shell : "/bin/bash");
        assert_string_equal(found_with("/bin/sh", entry->pw_uid), "/bin/sh");
        *(usable ? &with_shell : &without) += 1;
    }
    endpwent();
    assert_true(with_shell > 0);
    assert_true(without > 0);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || access("/bin/bash", X_OK) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_preferred),
        cmocka_unit_test(leaves_out_what_is_no_shell),
        cmocka_unit_test(takes_that_of_the_user),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
