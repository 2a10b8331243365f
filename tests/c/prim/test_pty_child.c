/* prim/pty_child, and what the process table does with programs on a terminal. The master is read here as the terminal
 * thread would. */
#include "prim/pty_child.h"

#include "process_fixture.h"
#include "without_cgroups.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { SCREEN_BYTES = 32 * 1024, SCREENS_MAX = 256 };

/* One program's terminal. They outlive their programs' entries, which tell when they are dropped. */
struct screen {
    struct loop *loop;
    struct process *process; /* a reference */
    int master;
    struct loop_fd *watch; /* NULL: read to EIO */
    struct loop_defer drained;
    char text[SCREEN_BYTES];
    size_t len;
    unsigned reaped, released, dropped;
};

static struct fixture fixture;
static struct screen screens[SCREENS_MAX];
static size_t screen_count;

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture, 512);
    screen_count = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static void drained_if_so(void *ctx)
{
    struct screen *screen = ctx;
    if (screen->reaped == 1 && screen->watch == NULL && process_state(screen->process) == PROCESS_EXITED)
        process_terminal_drained(screen->process);
}

static void on_readable(void *ctx, int events)
{
    struct screen *screen = ctx;
    (void)events;
    for (;;) {
        ssize_t len = read(screen->master, screen->text + screen->len, SCREEN_BYTES - 1 - screen->len);
        if (len < 0 && errno == EAGAIN)
            return;
        if (len < 0) {
            assert_int_equal(errno, EIO);
            loop_fd_free(screen->watch);
            screen->watch = NULL;
            drained_if_so(screen);
            return;
        }
        assert_true(len > 0);
        screen->len += (size_t)len;
        screen->text[screen->len] = '\0';
    }
}

static void on_reaped(void *ctx)
{
    struct screen *screen = ctx;
    screen->reaped++;
    loop_defer_start(screen->loop, &screen->drained, drained_if_so, screen);
}

static size_t kept_bytes(const void *ctx)
{
    return ((const struct screen *)ctx)->len;
}

static void on_release(void *ctx)
{
    ((struct screen *)ctx)->released++;
}

static void on_dropped(void *ctx)
{
    ((struct screen *)ctx)->dropped++;
}

static struct screen *screen_new(const struct fixture *on)
{
    assert_true(screen_count < SCREENS_MAX);
    struct screen *screen = &screens[screen_count++];
    memset(screen, 0, sizeof(*screen));
    screen->loop = on->loop;
    screen->master = -1;
    return screen;
}

static struct process *try_on(struct fixture *on, struct screen *screen, const struct process_spec *spec,
                              struct err *err)
{
    const struct terminal_size size = {.cols = 133, .rows = 37};
    const struct process_terminal hooks = {.slave = -1,
                                           .ctx = screen,
                                           .on_reaped = on_reaped,
                                           .kept_bytes = kept_bytes,
                                           .on_release = on_release,
                                           .on_dropped = on_dropped};
    return pty_child_start(on->table, spec, &hooks, size, &screen->master, err);
}

static struct screen *open_on(struct fixture *on, const struct process_spec *spec)
{
    struct err err = {0};
    struct screen *screen = screen_new(on);
    struct process *process = try_on(on, screen, spec, &err);
    if (process == NULL)
        fail_msg("%s", err.text);
    screen->process = process_ref(process);
    assert_true(fcntl(screen->master, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(screen->master, F_GETFD) & FD_CLOEXEC);
    screen->watch = loop_fd_new(on->loop, screen->master, LOOP_READABLE, on_readable, screen);
    assert_non_null(screen->watch);
    return screen;
}

static struct process_spec terminal_spec(struct fixture *of, const char *command)
{
    struct process_spec spec = spec_of(of, command);
    spec.kind = PROCESS_TERMINAL;
    spec.capture_bytes = 0;
    return spec;
}

static struct screen *open_screen(const char *command)
{
    struct process_spec spec = terminal_spec(&fixture, command);
    return open_on(&fixture, &spec);
}

static void close_screen(struct screen *screen)
{
    loop_fd_free(screen->watch);
    loop_defer_stop(&screen->drained);
    close(screen->master);
    process_unref(screen->process);
}

/* The program's own end is the terminal's, as nothing else holds the slave. */
static struct screen *run_screen(const char *command, struct process_exit *out_exit)
{
    struct screen *screen = open_screen(command);
    *out_exit = run_to_end(&fixture, screen->process);
    return screen;
}

static void wait_for(struct screen *screen, const char *text)
{
    while (strstr(screen->text, text) == NULL)
        loop_turn(screen->loop, true);
}

static void type(struct screen *screen, const char *text)
{
    screen->len = 0;
    screen->text[0] = '\0';
    assert_int_equal(write(screen->master, text, strlen(text)), strlen(text));
}

/* Whether the program sleeps until a key comes; also where the kernel does not tell. */
static bool waits_for_key(const struct process *process)
{
    char path[64];
    long number = -1;
    unsigned long first = 1;
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)process_pid(process));
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fscanf(file, "%ld %lx", &number, &first) < 1)
        number = -1;
    fclose(file);
    return number == SYS_pselect6 || (number == SYS_read && first == 0);
}

/* GNU readline overlooks a signal that comes after its prompt and just before it waits. */
static void wait_for_prompt(struct screen *screen)
{
    wait_for(screen, "# ");
    while (!waits_for_key(screen->process))
        turn_for_ms(&fixture, 1);
}

static struct screen *open_shell(void)
{
    static char *argv[] = {"bash", "--norc", "-i", NULL};
    struct process_spec spec = terminal_spec(&fixture, NULL);
    spec.argv = argv;
    struct screen *screen = open_on(&fixture, &spec);
    wait_for_prompt(screen);
    return screen;
}

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
    wait_for(screen, "# ");
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

static void living_ones_are_limited_apart(void **state)
{
    (void)state;
    struct fixture small;
    struct screen *two[2], *none;
    struct err err = {0};
    fixture_open(&small, 2);
    struct process_spec spec = terminal_spec(&small, "sleep 83"), piped = spec_of(&small, "sleep 84");
    for (int i = 0; i < 2; i++)
        two[i] = open_on(&small, &spec);
    none = screen_new(&small);
    assert_null(try_on(&small, none, &spec, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_TERMINALS);
    assert_int_equal(none->dropped, 0);
    for (int i = 0; i < 2; i++)
        process_unref(start(&small, &piped));
    assert_null(process_start(small.table, &piped, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_PROCESSES);
    assert_int_equal(process_table_living(small.table), 2);
    assert_int_equal(process_table_living_terminals(small.table), 2);
    process_hang_up(two[0]->process);
    run_to_end(&small, two[0]->process);
    assert_int_equal(process_table_living_terminals(small.table), 1);
    close_screen(two[0]);
    two[0] = open_on(&small, &spec);
    for (int i = 0; i < 2; i++) { /* the table goes with both alive: it kills them */
        loop_fd_free(two[i]->watch);
        two[i]->watch = NULL;
        process_unref(two[i]->process);
        two[i]->process = NULL;
        close(two[i]->master);
    }
    fixture_close(&small);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(two[i]->dropped, 1);
        assert_int_equal(two[i]->reaped, 0);
    }
}

/* --- what is kept of ended ones */

static void ended_output_is_counted_and_given_up(void **state)
{
    (void)state;
    struct process_limits limits = {.living_max = 8,
                                    .terminals_max = 8,
                                    .ended_processes_max = 3,
                                    .ended_shells_max = 8,
                                    .ended_output_max_bytes = 1000};
    struct err err;
    struct screen *five[5];
    struct process_exit exit;
    process_table_free(fixture.table); /* of two, each would reap the other's */
    fixture.table = process_table_new(fixture.loop, &limits, environ, &err);
    assert_non_null(fixture.table);
    const unsigned released[5][5] = {{0}, {1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1}};
    const unsigned dropped[5][5] = {{0}, {0}, {0}, {1}, {1, 1}};
    for (int i = 0; i < 5; i++) {
        five[i] = run_screen("printf '%600s' x", &exit);
        assert_int_equal(five[i]->len, 600);
        for (int j = 0; j <= i; j++) {
            assert_int_equal(five[j]->released, released[i][j]);
            assert_int_equal(five[j]->dropped, dropped[i][j]);
            assert_int_equal(process_find(fixture.table, process_id(five[j]->process)) == NULL, dropped[i][j]);
        }
    }
    process_table_free(fixture.table);
    fixture.table = NULL;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(five[i]->reaped, 1);
        assert_int_equal(five[i]->released, i < 4);
        assert_int_equal(five[i]->dropped, 1);
        close_screen(five[i]);
    }
}

static void nothing_of_it_is_in_the_tables_rings(void **state)
{
    (void)state;
    struct process_reader reader = {0};
    bool told = false;
    struct screen *screen = open_screen("echo it; read line");
    wait_for(screen, "it\r\n");
    process_reader_attach(screen->process, &reader, set_true, &told);
    type(screen, "\n");
    run_to_end(&fixture, screen->process);
    turn_for_ms(&fixture, 1);
    assert_true(told);
    assert_true(process_stream_closed(screen->process, PROCESS_STDOUT));
    assert_int_equal(process_ring(screen->process, PROCESS_STDOUT)->end, 0);
    assert_int_equal(process_exit_end(screen->process, PROCESS_STDOUT), 0);
    assert_int_equal(process_stdin(screen->process), PROCESS_STDIN_NOT_KEPT);
    expect_output(screen->process, PROCESS_STDOUT, "");
    process_reader_detach(&reader);
    close_screen(screen);
}

/* --- hanging up */

static void expect_nothing_lives(struct process *process)
{
    struct err err;
    turn_for_ms(&fixture, 200);
    assert_int_equal(process_signal(process, SIGCONT, true, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
}

static void a_hang_up_ends_a_shell_and_its_jobs(void **state)
{
    (void)state;
    struct screen *screen = open_shell();
    type(screen, "sleep 85 &\n");
    wait_for(screen, "# ");
    type(screen, "sh -c 'echo ready; exec sleep 86'\n");
    wait_for(screen, "\r\nready");
    type(screen, "\x1a");
    wait_for(screen, "Stopped");
    wait_for_prompt(screen);
    process_hang_up(screen->process);
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGHUP);
    expect_nothing_lives(screen->process);
    close_screen(screen);
}

/* A time-out is SIGTERM, which an interactive shell ignores; a hang-up while it is being stopped still is one. */
static void a_hang_up_comes_on_top_of_a_stop(void **state)
{
    (void)state;
    struct screen *screen = open_shell();
    process_stop(screen->process);
    turn_for_ms(&fixture, 300);
    assert_int_equal(process_state(screen->process), PROCESS_RUNNING);
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGHUP);
    close_screen(screen);
}

static void a_hang_up_reaches_who_is_stopped(void **state)
{
    (void)state;
    struct screen *screen = open_screen("echo ready; kill -STOP $$; sleep 87");
    wait_for(screen, "ready\r\n");
    turn_for_ms(&fixture, 100);
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGHUP);
    close_screen(screen);
}

static void who_ignores_a_hang_up_is_killed(void **state)
{
    (void)state;
    struct screen *screen = open_screen("trap '' HUP; echo ready; while :; do sleep 1; done");
    wait_for(screen, "ready\r\n");
    uint64_t before_ns = loop_clock_ns();
    process_hang_up(screen->process);
    assert_int_equal(run_to_end(&fixture, screen->process).signal, SIGKILL);
    assert_true(loop_clock_ns() - before_ns > 1900u * 1000 * 1000);
    close_screen(screen);
}

/* The interactive shell would overlook the hang-up if SIGTERM came with it: ten times, as it does so now and then. */
static void the_end_of_all_hangs_up_on_every_shell(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    struct screen *shells[COUNT];
    bool done = false;
    for (int i = 0; i < COUNT; i++)
        shells[i] = open_shell();
    process_table_end_all(fixture.table, 120 * 1000, set_true, &done);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(run_to_end(&fixture, shells[i]->process).signal, SIGHUP);
        close_screen(shells[i]);
    }
    while (!done)
        loop_turn(fixture.loop, true);
}

static void who_ignores_that_gets_the_other_signal(void **state)
{
    (void)state;
    bool done = false;
    struct screen *screen = open_screen("trap '' HUP; trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done");
    wait_for(screen, "ready\r\n");
    process_table_end_all(fixture.table, 2000, set_true, &done);
    assert_int_equal(run_to_end(&fixture, screen->process).exit_code, 9);
    while (!done)
        loop_turn(fixture.loop, true);
    close_screen(screen);
}

/* What the table waits for is the last byte, not only the program. */
static void the_end_of_all_waits_for_the_last_byte(void **state)
{
    (void)state;
    bool done = false;
    struct screen *screen = open_screen("sleep 88");
    loop_fd_free(screen->watch);
    screen->watch = NULL;
    screen->reaped = 10; /* so that nobody says yet that it was read */
    process_table_end_all(fixture.table, 60 * 1000, set_true, &done);
    while (process_state(screen->process) != PROCESS_EXITED)
        loop_turn(fixture.loop, true);
    turn_for_ms(&fixture, 300);
    assert_false(done);
    process_terminal_drained(screen->process);
    while (!done)
        loop_turn(fixture.loop, true);
    assert_int_equal(process_state(screen->process), PROCESS_DRAINED);
    close_screen(screen);
}

static void the_table_goes_while_the_last_byte_is_awaited(void **state)
{
    (void)state;
    struct screen *screen = open_screen("exit 3");
    loop_fd_free(screen->watch);
    screen->watch = NULL;
    screen->reaped = 10;
    while (process_state(screen->process) != PROCESS_EXITED)
        loop_turn(fixture.loop, true);
    process_table_free(fixture.table);
    fixture.table = NULL;
    assert_int_equal(screen->reaped, 11);
    assert_int_equal(screen->dropped, 1);
    close_screen(screen);
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

#define PTY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
        PTY_TEST(living_ones_are_limited_apart),
        PTY_TEST(ended_output_is_counted_and_given_up),
        PTY_TEST(nothing_of_it_is_in_the_tables_rings),
        PTY_TEST(a_hang_up_ends_a_shell_and_its_jobs),
        PTY_TEST(a_hang_up_comes_on_top_of_a_stop),
        PTY_TEST(a_hang_up_reaches_who_is_stopped),
        PTY_TEST(who_ignores_a_hang_up_is_killed),
        PTY_TEST(the_end_of_all_hangs_up_on_every_shell),
        PTY_TEST(who_ignores_that_gets_the_other_signal),
        PTY_TEST(the_table_goes_while_the_last_byte_is_awaited),
        cmocka_unit_test(it_starts_on_older_kernels),
        PTY_TEST(the_end_of_all_waits_for_the_last_byte),
    };
    return RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv);
}
