/* prim/process as PID 1 of a container: orphans of all kinds come to it, and every exit code is still right. The test
 * runs itself again in a pid namespace of its own. */
#include "process_fixture.h"

static const char *self;

static void every_code_is_right_and_no_zombie_is_left(void **state)
{
    (void)state;
    enum { COUNT = 300, AT_ONCE = 50 };
    struct fixture fixture;
    assert_int_equal(getpid(), 1);
    fixture_open(&fixture, 512);
    for (int begin = 0; begin < COUNT; begin += AT_ONCE) {
        struct process *processes[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            char command[96];
            /* one child that outlives its parent in a session of its own, and one that forks twice */
            snprintf(command, sizeof(command), "(setsid sleep 0.1 &) ; ( (sleep 0.02 & exit 1) & ) ; exit %d",
                     (begin + i) % 256);
            struct process_spec spec = spec_of(&fixture, command);
            processes[i] = start(&fixture, &spec);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            assert_int_equal(run_to_end(&fixture, processes[i]).exit_code, (begin + i) % 256);
            process_unref(processes[i]);
        }
    }
    turn_for_ms(&fixture, 500);
    assert_int_equal(count_zombies(), 0);
    fixture_close(&fixture);
}

static void runs_as_pid_1(void **state)
{
    (void)state;
    char command[4200];
    if (system("unshare -fp --mount-proc true 2>/dev/null") != 0) {
        printf("NOT RUN: process table as PID 1: this machine refuses a pid namespace\n");
        skip();
    }
    snprintf(command, sizeof(command), "unshare -fp --mount-proc '%s' --as-pid-1", self);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest outer[] = {cmocka_unit_test(runs_as_pid_1)};
    const struct CMUnitTest inner[] = {cmocka_unit_test(every_code_is_right_and_no_zombie_is_left)};
    self = argv[0];
    return argc > 1 ? cmocka_run_group_tests(inner, NULL, NULL) : cmocka_run_group_tests(outer, NULL, NULL);
}
