/* What each version of Landlock is asked to watch over. */
#include "helper/git.h"

#include <linux/landlock.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_versions(void **state)
{
    (void)state;
    const uint64_t truncate = 1ULL << 14, ioctl_dev = 1ULL << 15;
    assert_int_equal(git_sandbox_access(-1), 0);
    /* It would let no object get its name: tried, each commit ends with EXDEV. */
    assert_int_equal(git_sandbox_access(1), 0);
    assert_true(git_sandbox_access(2) & LANDLOCK_ACCESS_FS_REFER);
    assert_true(git_sandbox_access(2) & LANDLOCK_ACCESS_FS_EXECUTE);
    assert_false(git_sandbox_access(2) & truncate);
    assert_true(git_sandbox_access(3) & truncate);
    assert_false(git_sandbox_access(4) & ioctl_dev);
    assert_true(git_sandbox_access(7) & ioctl_dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
