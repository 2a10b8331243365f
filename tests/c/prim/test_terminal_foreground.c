/* prim/terminal_foreground, with a shell on a real pseudo-terminal. */
#include "prim/terminal_foreground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_MAX = 2000, LOOK_PAUSE_NS = 10 * 1000 * 1000 };

static int proc_fd, master;
static pid_t shell;
static struct terminal_foreground found;

static int start(const char *command)
{
    shell = forkpty(&master, NULL, NULL, NULL);
    if (shell == 0) {
        if (chdir("/usr") == 0)
            execl("/bin/bash", "bash", "--norc", "-c", command, (char *)NULL);
        _exit(127);
    }
    return shell < 0;
}

static void finish(void)
{
    close(master);
    if (shell > 0) {
        kill(shell, SIGKILL);
        waitpid(shell, NULL, 0);
    }
}

/* Looks until the program in the foreground bears that name, which takes it some time. */
static void expect_front(const char *name, const char *cwd)
{
    struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
    for (int i = 0; i < LOOKS_MAX; i++) {
        terminal_foreground_look(&found, proc_fd, shell);
        if (strcmp(found.name, name) == 0 && found.cwd_len == strlen(cwd) && memcmp(found.cwd, cwd, found.cwd_len) == 0)
            return;
        nanosleep(&pause, NULL);
    }
    fail_msg("it is \"%s\" in %.*s, not \"%s\" in %s", found.name, (int)found.cwd_len, found.cwd, name, cwd);
}

static void tells_the_job_in_the_foreground(void **state)
{
    (void)state;
    assert_int_equal(start("set -m; sleep 3000; cd /tmp; read x; (cd / && exec sleep 3001)"), 0);
    expect_front("sleep", "/usr");
    pid_t group = tcgetpgrp(master);
    assert_true(group > 0 && group != shell);
    assert_int_equal(kill(group, SIGTERM), 0);
    expect_front("bash", "/tmp");
    assert_int_equal(write(master, "\n", 1), 1);
    expect_front("sleep", "/");
    kill(tcgetpgrp(master), SIGKILL);
    finish();
}

static void a_leader_that_ended_is_stood_for(void **state)
{
    (void)state;
    assert_int_equal(start("set -m; true | (cd /tmp && exec sleep 3000)"), 0);
    expect_front("sleep", "/tmp");
    kill(-tcgetpgrp(master), SIGKILL);
    finish();
}

static void any_name_is_told_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(start("printf '(\\377 x) 1 2' >/proc/$$/comm; read x"), 0);
    expect_front("(\377 x) 1 2", "/usr");
    finish();
}

static void what_has_ended_or_is_no_child_has_none(void **state)
{
    (void)state;
    siginfo_t info;
    assert_int_equal(start("exit 3"), 0);
    assert_int_equal(waitid(P_PID, (id_t)shell, &info, WEXITED | WNOWAIT), 0);
    terminal_foreground_look(&found, proc_fd, shell); /* a zombie */
    assert_string_equal(found.name, "");
    assert_int_equal(found.cwd_len, 0);
    finish();
    pid_t others[] = {shell, 1, 0, -1, getppid()};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        terminal_foreground_look(&found, proc_fd, others[i]);
        assert_string_equal(found.name, "");
        assert_int_equal(found.cwd_len, 0);
    }
}

static void a_child_without_a_terminal_has_a_directory_only(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    shell = fork();
    if (shell == 0) {
        setsid();
        if (chdir("/tmp") == 0 && write(ends[1], "", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    terminal_foreground_look(&found, proc_fd, shell);
    assert_string_equal(found.name, "");
    assert_int_equal(found.cwd_len, 4);
    assert_memory_equal(found.cwd, "/tmp", 4);
    kill(shell, SIGKILL);
    waitpid(shell, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

static int set_up(void **state)
{
    (void)state;
    proc_fd = proc_open();
    return proc_fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    return close(proc_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_the_job_in_the_foreground),
        cmocka_unit_test(a_leader_that_ended_is_stood_for),
        cmocka_unit_test(any_name_is_told_as_it_is),
        cmocka_unit_test(what_has_ended_or_is_no_child_has_none),
        cmocka_unit_test(a_child_without_a_terminal_has_a_directory_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
