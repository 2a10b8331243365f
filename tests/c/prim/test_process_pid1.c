/* prim/process as PID 1 of a container: orphans of all kinds come to it, and every exit code is still right. The test
 * runs itself again in a pid namespace of its own. */
#include "process_fixture.h"

#include "prim/process_signal.h"
#include "without_cgroups.h"

#include <sys/wait.h>

static const char *self;

static void every_code_is_right_and_no_zombie_is_left(void **state)
{
    (void)state;
    enum { AT_ONCE = 50 };
    int count = getpid() == 1 ? 300 : 100; /* all codes there, and elsewhere what orphans do */
    struct fixture fixture;
    fixture_open(&fixture, 512);
    for (int begin = 0; begin < count; begin += AT_ONCE) {
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

/* The number of an ended entry is given to a newcomer: neither the entry's tree nor the entry by its number reaches it.
 */
static void a_recycled_pid_is_not_hit(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 512);
    struct process_spec spec = spec_of(&fixture, "exit 0");
    struct process *process = start(&fixture, &spec);
    run_to_end(&fixture, process);
    pid_t wanted = process_pid(process), newcomer = 0;
    char text[16];
    snprintf(text, sizeof(text), "%d", (int)wanted);
    for (int tries = 0; tries < 50 && newcomer != wanted; tries++) {
        int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_true(dprintf(fd, "%d", (int)wanted - 1) > 0);
        close(fd);
        newcomer = fork();
        if (newcomer == 0) {
            setsid(); /* leader of a session and a group of that number, as the entry was */
            for (;;)
                pause();
        }
        if (newcomer != wanted) {
            kill(newcomer, SIGKILL);
            turn_for_ms(&fixture, 20);
        }
    }
    assert_int_equal(newcomer, wanted);
    turn_for_ms(&fixture, 50);
    static const bool scopes[] = {true, false};
    for (size_t i = 0; i < 2; i++) {
        struct signal_request request = {.signal = SIGKILL, .tree = scopes[i], .escalates = true};
        const char *const names[] = {process_id(process), text};
        for (size_t n = 0; n < 2; n++) {
            struct err err = {0};
            assert_null(process_signal_ask(fixture.table, names[n], &request, &err));
            assert_int_equal(err.code, ERR_ALREADY_EXITED);
        }
    }
    process_stop(process);
    turn_for_ms(&fixture, 2300);
    assert_int_equal(waitpid(newcomer, NULL, WNOHANG), 0); /* it lives */
    assert_int_equal(kill(newcomer, SIGKILL), 0);
    turn_for_ms(&fixture, 100);
    process_unref(process);
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
    const struct CMUnitTest outer[] = {cmocka_unit_test(every_code_is_right_and_no_zombie_is_left),
                                       cmocka_unit_test(runs_as_pid_1)};
    const struct CMUnitTest inner[] = {cmocka_unit_test(every_code_is_right_and_no_zombie_is_left),
                                       cmocka_unit_test(a_recycled_pid_is_not_hit)};
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "--as-pid-1") == 0)
        return getpid() != 1 || cmocka_run_group_tests(inner, NULL, NULL);
    return RUN_WITH_AND_WITHOUT_CGROUPS(outer, argc, argv);
}
