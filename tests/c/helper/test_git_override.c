/* Files that a repository's configuration names count where they are inside the base, and no others; without Landlock.
 */
#include "git_fixture.h"

static int without_landlock;

/* Untracked files, with those that the configured patterns hide. */
static const char *untracked(void)
{
    return column(ask("status", "r", " "), "files", "path");
}

static void test_excludes_file(void **state)
{
    (void)state;
    sh("git init -q -b main r; touch r/x.log; echo '*.log' >mine; cp mine $OUT/mine");
    assert_string_equal(untracked(), "x.log");
    sh("git -C r config core.excludesFile $(pwd)/mine");
    assert_string_equal(untracked(), "");
    sh("git -C r config core.excludesFile $OUT/mine");
    assert_string_equal(untracked(), "x.log");
    sh("git -C r config core.excludesFile '~/mine'; cp mine $HOME/mine");
    assert_string_equal(untracked(), "x.log");
}

/* A relative path begins at the working tree. */
static void test_relative_path(void **state)
{
    (void)state;
    sh("git init -q -b main r; touch r/x.log; echo '*.log' >mine; git -C r config core.excludesFile ../mine");
    assert_string_equal(untracked(), "");
    sh("mkdir outside; cp mine outside/mine; git -C r config core.excludesFile ../../outside/mine");
    assert_string_equal(untracked(), "x.log");
}

/* Without a working tree libgit2 takes it from where the helper stands: from the repository this one leads to a file
 * inside the base, from there to one outside. */
static void test_relative_path_of_a_bare_repository(void **state)
{
    (void)state;
    sh("git init -q -b main r; echo x >r/x; git -C r add x; git -C r commit -qm one; git clone -q --bare r b.git; "
       "mkdir outside; touch outside/attributes; echo '* -diff' >$OUT/attributes; "
       "git -C b.git config core.attributesFile ../outside/attributes");
    assert_false(is_true(ask("show", "b.git", " "), "files.0.binary"));
    sh("git -C b.git config core.attributesFile $(pwd)/outside/attributes; cp $OUT/attributes outside");
    assert_true(is_true(ask("show", "b.git", " "), "files.0.binary"));
}

#define plain_test(function)                                                                                           \
    {                                                                                                                  \
#function, function, git_set_up, git_tear_down, &without_landlock                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        plain_test(test_excludes_file),
        plain_test(test_relative_path),
        plain_test(test_relative_path_of_a_bare_repository),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
