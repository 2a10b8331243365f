/* prim/process_signal: signals by trees among many others, whatever left its control group, and what is promised. */
#include "prim/process_signal.h"

#include "prim/cgroup.h"
#include "process_fixture.h"
#include "without_cgroups.h"

#include <limits.h>

enum { OTHERS = 8, MANY = 20 };

static char own_dir[PATH_MAX]; /* the server's own group, which programs move themselves to */
static struct fixture fixture;
static struct process *others[OTHERS];

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture, MANY);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static int set_up_among_others(void **state)
{
    set_up(state);
    struct process_spec spec = spec_of(&fixture, "exec sleep 6101");
    for (int i = 0; i < OTHERS; i++)
        others[i] = start(&fixture, &spec);
    return 0;
}

/* They were not hit. */
static int tear_down_others(void **state)
{
    for (int i = 0; i < OTHERS; i++) {
        assert_int_equal(process_state(others[i]), PROCESS_RUNNING);
        process_stop(others[i]);
    }
    for (int i = 0; i < OTHERS; i++) {
        assert_int_equal(run_to_end(&fixture, others[i]).signal, SIGTERM);
        process_unref(others[i]);
    }
    return tear_down(state);
}

/* Runs a command; it says "ready" when it is. */
static struct process *start_ready(const char *command)
{
    struct process_spec spec = spec_of(&fixture, command);
    struct process *process = start(&fixture, &spec);
    for (int i = 0; i < 500; i++) {
        char *text = captured(process, PROCESS_STDOUT);
        bool ready = strcmp(text, "ready\n") == 0;
        free(text);
        if (ready)
            return process;
        turn_for_ms(&fixture, 20);
    }
    fail_msg("not ready: %s", command);
    return NULL;
}

static struct signalling *ask(struct process *process, const struct signal_request *request)
{
    struct err err = {0};
    struct signalling *signalling = process_signal_ask(fixture.table, process_id(process), request, &err);
    if (signalling == NULL)
        fail_msg("%s", err.text);
    return signalling;
}

/* Asks, waits for the end and whatever was promised, and tells. */
static struct signalling_report ask_and_wait(struct process *process, const struct signal_request *request)
{
    struct signalling_report report;
    bool over = false;
    struct signalling *signalling = ask(process, request);
    if (signalling_wait(signalling, 20000, set_true, &over))
        while (!over)
            loop_turn(fixture.loop, true);
    signalling_tell(signalling, &report);
    signalling_free(signalling);
    return report;
}

static void one_that_moved_itself_out_is_found(void **state)
{
    (void)state;
    char command[PATH_MAX + 100];
    snprintf(command, sizeof(command), "echo $$ >'%s/cgroup.procs'; sleep 6102 & echo ready; wait", own_dir);
    struct process *process = start_ready(command);
    struct signal_request request = {.signal = SIGTERM, .tree = true};
    struct signalling_report report = ask_and_wait(process, &request);
    assert_int_equal(report.signalled, 2);
    assert_int_equal(report.exit_signal, SIGTERM);
    process_unref(process);
}

/* Into the group of a program that is none of its tree. */
static void one_that_moved_in_with_another_is_found(void **state)
{
    (void)state;
    char command[PATH_MAX + 200];
    snprintf(command, sizeof(command), "echo $$ >'%s'/\"$(sed -n s/^0:://p /proc/%d/cgroup | grep -o 'abxd-.*')\"/%s",
             own_dir, (int)process_pid(others[0]), "cgroup.procs; echo ready; exec sleep 6103");
    struct process *process = start_ready(command);
    struct signal_request request = {.signal = SIGTERM, .tree = true};
    struct signalling_report report = ask_and_wait(process, &request);
    assert_int_equal(report.signalled, 1);
    assert_int_equal(report.exit_signal, SIGTERM);
    process_unref(process);
}

static void an_orphan_outside_of_all_groups_is_found(void **state)
{
    (void)state;
    char command[PATH_MAX + 100];
    snprintf(command, sizeof(command),
             "(setsid sh -c 'echo $$ >\"%s/cgroup.procs\"; echo ready; exec sleep 6104' &) ; exec sleep 6105", own_dir);
    struct process *process = start_ready(command);
    struct signal_request request = {.signal = SIGTERM, .tree = true};
    struct signalling_report report = ask_and_wait(process, &request);
    assert_int_equal(report.signalled, 2);
    process_unref(process);
}

static void an_orphan_outside_that_outlives_the_signal_is_killed(void **state)
{
    (void)state;
    char command[PATH_MAX + 200];
    snprintf(command, sizeof(command),
             "(setsid sh -c 'trap \"\" TERM; echo $$ >\"%s/cgroup.procs\"; echo ready; exec sleep 6106' &) ; "
             "exec sleep 6107",
             own_dir);
    struct process *process = start_ready(command);
    struct signal_request request = {.signal = SIGTERM, .tree = true, .escalates = true, .escalate_ms = 100};
    struct signalling_report report = ask_and_wait(process, &request);
    assert_int_equal(report.signalled, 2);
    assert_true(report.escalated);
    assert_int_equal(report.exit_signal, SIGTERM);
    request = (struct signal_request){.signal = 0, .tree = true};
    struct err err = {0};
    assert_null(process_signal_ask(fixture.table, process_id(process), &request, &err));
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
    process_unref(process);
}

/* What runs in the session of another program that lives is of that one's tree, whatever its environment says. */
static void another_program_that_bears_the_marker_is_spared(void **state)
{
    (void)state;
    char command[100];
    struct process *process = start_ready("echo ready; exec sleep 6110");
    snprintf(command, sizeof(command), "export ABX_PROCESS_ID=%s; sleep 6111 & echo ready; wait", process_id(process));
    struct process *other = start_ready(command);
    struct signal_request request = {.signal = SIGTERM, .tree = true};
    assert_int_equal(ask_and_wait(process, &request).signalled, 1);
    assert_int_equal(process_state(other), PROCESS_RUNNING);
    assert_int_equal(ask_and_wait(other, &request).signalled, 2);
    process_unref(process);
    process_unref(other);
}

/* Those whose time comes in one turn of the loop look and kill together; each is told of its own. */
static void promises_of_one_turn_are_kept_for_each(void **state)
{
    (void)state;
    struct process *processes[MANY];
    struct signalling *signallings[MANY];
    bool over[MANY] = {false};
    for (int i = 0; i < MANY; i++)
        processes[i] =
            start_ready(i % 2 == 0 ? "trap '' TERM; echo ready; exec sleep 6108" : "echo ready; exec sleep 6109");
    struct signal_request request = {.signal = SIGTERM, .tree = true, .escalates = true, .escalate_ms = 2000};
    for (int i = 0; i < MANY; i++) {
        signallings[i] = ask(processes[i], &request);
        if (i == 4) { /* its client leaves: it is killed all the same */
            signalling_free(signallings[i]);
            over[i] = true;
        } else if (!signalling_wait(signallings[i], 20000, set_true, &over[i])) {
            over[i] = true;
        }
    }
    for (int i = 0; i < MANY; i++) {
        struct signalling_report report;
        while (!over[i])
            loop_turn(fixture.loop, true);
        assert_int_equal(run_to_end(&fixture, processes[i]).signal, i % 2 == 0 ? SIGKILL : SIGTERM);
        process_unref(processes[i]);
        if (i == 4)
            continue;
        signalling_tell(signallings[i], &report);
        assert_int_equal(report.signalled, 1);
        assert_int_equal(report.escalated, i % 2 == 0);
        signalling_free(signallings[i]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_moved_itself_out_is_found, set_up_among_others, tear_down_others),
        cmocka_unit_test_setup_teardown(one_that_moved_in_with_another_is_found, set_up_among_others, tear_down_others),
        cmocka_unit_test_setup_teardown(an_orphan_outside_of_all_groups_is_found, set_up_among_others,
                                        tear_down_others),
        cmocka_unit_test_setup_teardown(an_orphan_outside_that_outlives_the_signal_is_killed, set_up_among_others,
                                        tear_down_others),
        cmocka_unit_test_setup_teardown(another_program_that_bears_the_marker_is_spared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(promises_of_one_turn_are_kept_for_each, set_up, tear_down),
    };
    if (!cgroup_dir(NULL, own_dir))
        strcpy(own_dir, "/proc/self"); /* nothing can be made in it, so that nobody moves */
    return RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv);
}
