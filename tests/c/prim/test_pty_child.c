/* prim/pty_child: what a program on a terminal finds, how it ends, and what cannot be started. */
#include "pty_fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* --- what the program finds */

static void it_is_the_controlling_terminal(void **state)
{
    (void)state;
    char expected[256], pid[16];
    struct process_exit exit;
    struct screen *screen = run_screen("tty; echo $(ps -o sid=,pgid=,tpgid=,pid= -p $$); stty size", &exit);
    assert_int_equal(exit.exit_code, 0);
    snprintf(pid, sizeof(pid), "%d", (int)process_pid(screen->process));
    unsigned number;
    assert_int_equal(sscanf(screen->text, "/dev/pts/%u\r\n", &number), 1);
    snprintf(expected, sizeof(expected), "/dev/pts/%u\r\n%s %s %s %s\r\n37 133\r\n", number, pid, pid, pid, pid);
    assert_string_equal(screen->text, expected);
    close_screen(screen);
}

static void it_is_set_up_as_terminals_are(void **state)
{
    (void)state;
    struct process_exit exit;
    const char *command = "stty -a | tr ' ;' '\\n\\n' | grep -xE -- '-?(iutf8|icanon|echo|isig|icrnl|opost|onlcr)' "
                          "| sort | tr '\\n' ' '";
    struct screen *screen = run_screen(command, &exit);
    assert_string_equal(screen->text, "echo icanon icrnl isig iutf8 onlcr opost ");
    close_screen(screen);
}

/* While others are open, whose descriptors and signals are none of its business. */
static void it_has_three_descriptors_and_default_signals(void **state)
{
    (void)state;
    struct screen *others[3];
    struct process_exit exit;
    struct process_spec piped = spec_of(&fixture, "sleep 77");
    struct process *program = start(&fixture, &piped);
    for (int i = 0; i < 3; i++)
        others[i] = open_screen("sleep 78");
    struct screen *screen = run_screen("ls -m /proc/$$/fd; echo $(grep -E 'Sig(Blk|Ign)' /proc/self/status)", &exit);
    assert_string_equal(screen->text, "0, 1, 2\r\nSigBlk: 0000000000000000 SigIgn: 0000000000000000\r\n");
    close_screen(screen);
    screen = run_screen("yes | head -n1; echo ${PIPESTATUS[0]}", &exit);
    assert_string_equal(screen->text, "y\r\n141\r\n");
    close_screen(screen);
    for (int i = 0; i < 3; i++) {
        process_hang_up(others[i]->process);
        assert_int_equal(run_to_end(&fixture, others[i]->process).signal, SIGHUP);
        close_screen(others[i]);
    }
    process_unref(program);
}

/* Nothing of the server's own: what was given, and by what its tree is known. */
static void its_environment_is_what_was_given(void **state)
{
    (void)state;
    char *argv[] = {"env", NULL}, expected[128];
    struct process_spec spec = terminal_spec(&fixture, NULL);
    spec.argv = argv;
    setenv("ABX_SERVER_TOKEN", "secret", 1);
    struct screen *screen = open_on(&fixture, &spec);
    unsetenv("ABX_SERVER_TOKEN");
    run_to_end(&fixture, screen->process);
    snprintf(expected, sizeof(expected), "ABX_PROCESS_ID=%s\r\nPATH=/usr/local/bin:/usr/bin:/bin\r\n",
             process_id(screen->process));
    assert_string_equal(screen->text, expected);
    close_screen(screen);
}

static void a_shell_has_job_control(void **state)
{
    (void)state;
    struct screen *screen = open_shell();
    assert_null(strstr(screen->text, "no job control"));
    type(screen, "sh -c 'echo ready; exec sleep 79'\n");
    wait_for(screen, "\r\nready");
    type(screen, "\x03");
    wait_for_prompt(screen);
    type(screen, "echo status=$?\n");
    wait_for(screen, "\r\nstatus=130");
    type(screen, "sh -c 'echo again; exec sleep 80'\n");
    wait_for(screen, "\r\nagain");
    type(screen, "\x1a");
    wait_for(screen, "Stopped");
    type(screen, "kill %1; fg; exit 7\n");
    assert_int_equal(run_to_end(&fixture, screen->process).exit_code, 7);
    close_screen(screen);
}

/* --- its end */

static size_t count_slaves(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char path[300], target[64] = "";
        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof(target) - 1) > 0) {
            unsigned number;
            count += sscanf(target, "/dev/pts/%u", &number) == 1;
        }
    }
    closedir(dir);
    return count;
}

static void nobody_else_holds_the_slave(void **state)
{
    (void)state;
    size_t before = count_slaves();
    struct screen *screen = open_screen("read line; echo got $line");
    struct screen *other = open_screen("sleep 81");
    assert_int_equal(count_slaves(), before);
    type(screen, "it\n");
    assert_int_equal(run_to_end(&fixture, screen->process).exit_code, 0);
    assert_non_null(strstr(screen->text, "got it\r\n"));
    close_screen(screen);
    close(other->master); /* the kernel hangs up */
    loop_fd_free(other->watch);
    other->watch = NULL;
    other->master = -1;
    assert_int_equal(run_to_end(&fixture, other->process).signal, SIGHUP);
    close_screen(other);
}

static void expect_end(const char *command, int exit_code, int signal)
{
    struct process_exit exit;
    struct screen *screen = run_screen(command, &exit);
    assert_int_equal(exit.exit_code, exit_code);
    assert_int_equal(exit.signal, signal);
    assert_false(exit.timed_out);
    assert_int_equal(screen->reaped, 1);
    assert_int_equal(screen->dropped, 0);
    close_screen(screen);
}

static void the_exit_is_always_a_code(void **state)
{
    (void)state;
    expect_end("true", 0, 0);
    expect_end("exit 5", 5, 0);
    expect_end("exit 259", 3, 0);
    expect_end("kill -9 $$", 137, SIGKILL);
    expect_end("kill -SEGV $$", 139, SIGSEGV);
    expect_end("nosuchcmd_x", 127, 0);
    expect_end("/etc/passwd", 126, 0);
}

static void short_programs_lose_nothing(void **state)
{
    (void)state;
    enum { AT_ONCE = 10, ROUNDS = 20, BYTES = 20480 };
    struct screen *batch[AT_ONCE];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            batch[i] = open_screen("printf 'hello%.0s' $(seq 4096); exit 5");
        for (int i = 0; i < AT_ONCE; i++) {
            assert_int_equal(run_to_end(&fixture, batch[i]->process).exit_code, 5);
            assert_int_equal(batch[i]->len, BYTES);
            assert_memory_equal(batch[i]->text + BYTES - 10, "hellohello", 10);
            close_screen(batch[i]);
        }
    }
    assert_int_equal(process_table_living_terminals(fixture.table), 0);
}

static void orphans_are_reaped_and_no_code_is_stolen(void **state)
{
    (void)state;
    enum { COUNT = 60 };
    struct screen *all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char command[64];
        snprintf(command, sizeof(command), "(setsid sleep 0.1 &) ; exit %d", i);
        all[i] = open_screen(command);
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(run_to_end(&fixture, all[i]->process).exit_code, i);
        close_screen(all[i]);
    }
    turn_for_ms(&fixture, 600);
    assert_int_equal(count_zombies(), 0);
}

static void a_time_out_ends_it(void **state)
{
    (void)state;
    struct process_spec spec = terminal_spec(&fixture, "echo before; sleep 82");
    spec.timeout_ms = 300;
    struct screen *screen = open_on(&fixture, &spec);
    struct process_exit exit = run_to_end(&fixture, screen->process);
    assert_true(exit.timed_out);
    assert_int_equal(exit.signal, SIGTERM);
    assert_string_equal(screen->text, "before\r\n");
    close_screen(screen);
}

/* --- what cannot be started */

static void expect_refused(const struct process_spec *spec, enum err_code code)
{
    struct screen *screen = screen_new(&fixture);
    struct err err = {0};
    size_t fds = count_fds();
    assert_null(try_on(&fixture, screen, spec, &err));
    assert_string_equal(err_code_name(err.code), err_code_name(code));
    assert_int_equal(screen->master, -1);
    assert_int_equal(screen->reaped + screen->released + screen->dropped, 0);
    assert_int_equal(count_fds(), fds);
    assert_int_equal(process_table_living_terminals(fixture.table), 0);
}

static void what_cannot_be_started_leaves_nothing(void **state)
{
    (void)state;
    static char long_arg[SCREEN_BYTES * 2 - 1];
    char *missing[] = {"nosuchcmd_x", NULL}, *plain[] = {"/etc/passwd", NULL}, *many[100] = {"true"};
    struct process_spec spec = terminal_spec(&fixture, NULL);
    spec.argv = missing;
    expect_refused(&spec, ERR_EXECUTABLE_NOT_FOUND);
    spec.argv = plain;
    expect_refused(&spec, ERR_NOT_EXECUTABLE);
    memset(long_arg, 'x', sizeof(long_arg) - 1);
    for (int i = 1; i < 99; i++)
        many[i] = long_arg;
    spec.argv = many;
    expect_refused(&spec, ERR_PAYLOAD_TOO_LARGE);
    spec = terminal_spec(&fixture, "true");
    spec.cwd_fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    expect_refused(&spec, ERR_BAD_CWD);
    close(spec.cwd_fd);
    spec = terminal_spec(&fixture, "a\0b");
    spec.command_len = 3;
    expect_refused(&spec, ERR_INVALID_REQUEST);
}

/* With no descriptor left, one, two ... until it starts: nothing leaks at whatever step it fails. */
static void without_descriptors_it_is_refused(void **state)
{
    (void)state;
    struct rlimit before;
    unsigned refused = 0;
    getrlimit(RLIMIT_NOFILE, &before);
    int highest = dup(0);
    close(highest);
    for (int left = 0; left < 16; left++) {
        struct screen *screen = screen_new(&fixture);
        struct err err = {0};
        struct process_spec spec = terminal_spec(&fixture, "exit 4");
        struct rlimit small = {.rlim_cur = (rlim_t)(highest + left), .rlim_max = before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &small);
        struct process *process = try_on(&fixture, screen, &spec, &err);
        setrlimit(RLIMIT_NOFILE, &before);
        if (process == NULL) {
            assert_int_equal(err_code_status(err.code), 429);
            assert_int_equal(screen->reaped + screen->dropped, 0);
            refused++;
            continue;
        }
        screen->process = process_ref(process);
        screen->watch = loop_fd_new(fixture.loop, screen->master, LOOP_READABLE, on_readable, screen);
        assert_int_equal(run_to_end(&fixture, process).exit_code, 4);
        close_screen(screen);
    }
    assert_in_range(refused, 2, 12);
}

/* --- where the slave can be opened by its name only */

#define BY_NAME "--by-name"

static int refuse_peer_calls(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGPTPEER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -1 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void it_starts_on_older_kernels(void **state)
{
    (void)state;
    char command[4200];
    snprintf(command, sizeof(command), "'%s' " BY_NAME, self_path);
    int status = system(command);
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static int run_by_name(void)
{
    const struct CMUnitTest tests[] = {
        PTY_TEST(it_is_the_controlling_terminal),
        PTY_TEST(nobody_else_holds_the_slave),
        PTY_TEST(without_descriptors_it_is_refused),
    };
    if (refuse_peer_calls() != 0) {
        printf("NOT RUN: terminals without TIOCGPTPEER: this machine allows no filters\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], BY_NAME) == 0)
        return run_by_name();
    const struct CMUnitTest tests[] = {
        PTY_TEST(it_is_the_controlling_terminal),
        PTY_TEST(it_is_set_up_as_terminals_are),
        PTY_TEST(it_has_three_descriptors_and_default_signals),
        PTY_TEST(its_environment_is_what_was_given),
        PTY_TEST(a_shell_has_job_control),
        PTY_TEST(nobody_else_holds_the_slave),
        PTY_TEST(the_exit_is_always_a_code),
        PTY_TEST(short_programs_lose_nothing),
        PTY_TEST(orphans_are_reaped_and_no_code_is_stolen),
        PTY_TEST(a_time_out_ends_it),
        PTY_TEST(what_cannot_be_started_leaves_nothing),
        PTY_TEST(without_descriptors_it_is_refused),
        cmocka_unit_test(it_starts_on_older_kernels),
    };
    return RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv);
}
