/* Tests that hold with control groups and without: the program runs itself again where none may be made. */
#ifndef ABX_TEST_WITHOUT_CGROUPS_H
#define ABX_TEST_WITHOUT_CGROUPS_H

#include "prim/process_cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITHOUT_CGROUPS "--without-cgroups"
#define UNSHARE_CGROUPS                                                                                                \
    "unshare -m sh -c 'for dir in $(awk \"\\$3 == \\\"cgroup2\\\" { print \\$2 }\" /proc/mounts); do "                 \
    "mount -o remount,bind,ro $dir || exit 1; done; exec \"$@\"' sh "

static const char *self_path;

static inline bool has_cgroups(void)
{
    struct process_cgroups *cgroups = process_cgroups_new();
    process_cgroups_free(cgroups);
    return cgroups != NULL;
}

static inline void the_same_without_cgroups(void **state)
{
    (void)state;
    char command[4600];
    if (!has_cgroups()) { /* those before ran without them already */
        printf("NOT RUN: processes with control groups: this machine lets none be made\n");
        skip();
    }
    if (system(UNSHARE_CGROUPS "true 2>/dev/null") != 0) {
        printf("NOT RUN: processes without control groups: this machine refuses a mount namespace\n");
        skip();
    }
    snprintf(command, sizeof(command), UNSHARE_CGROUPS "'%s' " WITHOUT_CGROUPS, self_path);
    assert_int_equal(system(command), 0);
}

static inline bool is_without_cgroups(int argc, char **argv)
{
    self_path = argv[0];
    return argc > 1 && strcmp(argv[1], WITHOUT_CGROUPS) == 0;
}

/* For main: the tests, and then all of them again without control groups. */
#define RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv)                                                                \
    (is_without_cgroups(argc, argv)                                                                                    \
         ? has_cgroups() || cmocka_run_group_tests(tests, NULL, NULL)                                                  \
         : cmocka_run_group_tests(tests, NULL, NULL) ||                                                                \
               cmocka_run_group_tests(((const struct CMUnitTest[]){cmocka_unit_test(the_same_without_cgroups)}), NULL, \
                                      NULL))

#endif
