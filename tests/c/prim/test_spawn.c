/* prim/spawn: which file a name means, and what a new program starts with. */
#include "prim/spawn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test-spawn-XXXXXX";
static int dir_fd;

static void make_file(const char *name, const char *text, mode_t mode)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(dir_fd, "bin", 0755), 0);
    assert_int_equal(mkdirat(dir_fd, "folder", 0755), 0);
    make_file("bin/tool", "#!/bin/sh\necho tool; exit 3\n", 0755);
    make_file("plain", "#!/bin/sh\n", 0644);
    make_file("garbage", "\x01\x02\x03 no program", 0755);
    make_file("orphan", "#!/no/such/interpreter\n", 0755);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[sizeof(dir) + 16];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    close(dir_fd);
    return system(command);
}

/* What `run` asks for. */
static struct bounds {
    size_t data_max_bytes;
    unsigned fds_max;
} bound;

/* Starts it with one pipe as stdout and stderr and reads all; -1 with *err. */
static int run(char *const *argv, char *const *envp, const char *path, char *out, size_t size, struct err *err)
{
    int pipe_fds[2];
    struct spawned spawned;
    siginfo_t info;
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct spawn spawn = {.path = path,
                          .argv = argv,
                          .envp = envp,
                          .cwd_fd = dir_fd,
                          .stdio = {null_fd, pipe_fds[1], pipe_fds[1]},
                          .data_max_bytes = bound.data_max_bytes,
                          .fds_max = bound.fds_max,
                          .cgroup_fd = -1};
    int failed = spawn_start(&spawn, &spawned, err);
    close(null_fd);
    close(pipe_fds[1]);
    if (failed == 0) {
        size_t len = 0;
        ssize_t n;
        while ((n = read(pipe_fds[0], out + len, size - 1 - len)) > 0)
            len += (size_t)n;
        out[len] = '\0';
        assert_int_equal(waitid(P_PIDFD, (id_t)spawned.pidfd, &info, WEXITED), 0);
        assert_int_equal(info.si_pid, spawned.pid);
        close(spawned.pidfd);
        failed = info.si_status;
    }
    close(pipe_fds[0]);
    return failed;
}

static char *no_env[] = {NULL};

static void finds_programs(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct err err;
    assert_int_equal(spawn_find("sh", "/nowhere:/bin", dir_fd, path, &err), 0);
    assert_string_equal(path, "/bin/sh");
    assert_int_equal(spawn_find("sh", NULL, dir_fd, path, &err), 0);
    assert_int_equal(spawn_find("tool", "/nowhere:bin", dir_fd, path, &err), 0);
    assert_string_equal(path, "bin/tool");
    assert_int_equal(spawn_find("./bin/tool", "", dir_fd, path, &err), 0);
    assert_string_equal(path, "./bin/tool");
}

static void expect_not_found(const char *name, const char *search_path, enum err_code code)
{
    char path[PATH_MAX];
    struct err err = {0};
    assert_int_equal(spawn_find(name, search_path, dir_fd, path, &err), -1);
    assert_string_equal(err_code_name(err.code), err_code_name(code));
    assert_string_equal(err.field, "argv[0]");
}

static void tells_missing_from_not_executable(void **state)
{
    (void)state;
    expect_not_found("nosuchcmd_x", "/bin:/usr/bin", ERR_EXECUTABLE_NOT_FOUND);
    expect_not_found("", "/bin", ERR_EXECUTABLE_NOT_FOUND);
    expect_not_found("./nothing", NULL, ERR_EXECUTABLE_NOT_FOUND);
    expect_not_found("tool", "/bin", ERR_EXECUTABLE_NOT_FOUND);
    expect_not_found("./plain", NULL, ERR_NOT_EXECUTABLE);
    expect_not_found("plain", ":/bin", ERR_NOT_EXECUTABLE);
    expect_not_found("./folder", NULL, ERR_NOT_EXECUTABLE);
    char *long_name = malloc(PATH_MAX + 10);
    memset(long_name, 'x', PATH_MAX + 9);
    long_name[PATH_MAX + 9] = '\0';
    expect_not_found(long_name, "/bin", ERR_EXECUTABLE_NOT_FOUND);
    long_name[0] = '/';
    expect_not_found(long_name, "/bin", ERR_EXECUTABLE_NOT_FOUND);
    free(long_name);
}

static void runs_in_its_directory(void **state)
{
    (void)state;
    char out[256];
    struct err err;
    char *argv[] = {"tool", NULL};
    assert_int_equal(run(argv, no_env, "bin/tool", out, sizeof(out), &err), 3);
    assert_string_equal(out, "tool\n");
}

static void exec_failures_have_codes(void **state)
{
    (void)state;
    char out[256];
    struct err err = {0};
    char *argv[] = {"x", NULL};
    assert_int_equal(run(argv, no_env, "./garbage", out, sizeof(out), &err), -1);
    assert_int_equal(err.code, ERR_NOT_EXECUTABLE);
    assert_int_equal(err.saved_errno, ENOEXEC);
    assert_int_equal(run(argv, no_env, "./orphan", out, sizeof(out), &err), -1);
    assert_int_equal(err.code, ERR_NOT_EXECUTABLE);
}

static void too_large_is_told_beforehand_and_by_the_kernel(void **state)
{
    (void)state;
    char out[256];
    struct err err = {0};
    char *big = malloc(SPAWN_ARG_MAX_BYTES + 2);
    memset(big, 'a', SPAWN_ARG_MAX_BYTES + 1);
    big[SPAWN_ARG_MAX_BYTES + 1] = '\0';
    char *argv[64] = {"true", big, NULL};
    assert_int_equal(run(argv, no_env, "/bin/true", out, sizeof(out), &err), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    assert_non_null(strstr(err.text, "131071"));
    big[SPAWN_ARG_MAX_BYTES] = '\0';
    assert_int_equal(run(argv, no_env, "/bin/true", out, sizeof(out), &err), 0);
    for (int i = 1; i < 63; i++)
        argv[i] = big;
    argv[63] = NULL;
    assert_int_equal(run(argv, no_env, "/bin/true", out, sizeof(out), &err), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    assert_int_equal(err.saved_errno, 0);
    free(big);
}

static void child_starts_clean(void **state)
{
    (void)state;
    char out[1024];
    struct err err;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    int leaky = open("/dev/null", O_RDONLY); /* not close-on-exec */
    char *argv[] = {
        "sh", "-c",
        "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; [ $(ps -o sid= -p $$) = $$ ] && echo leader",
        NULL};
    assert_int_equal(run(argv, no_env, "/bin/sh", out, sizeof(out), &err), 0);
    assert_string_equal(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n1\n2\n3\nleader\n");
    close(leaky);
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
}

/* With 0, 1 and 2 closed in the server, pipes get those numbers. */
static void low_descriptors_do_not_mix(void **state)
{
    (void)state;
    int saved[3];
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 20);
        close(i);
    }
    char out[256] = "";
    struct err err;
    char *argv[] = {"sh", "-c", "cat; echo to-out; echo to-err >&2", NULL};
    int status = run(argv, no_env, "/bin/sh", out, sizeof(out), &err);
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    assert_int_equal(status, 0);
    assert_string_equal(out, "to-out\nto-err\n");
}

/* Both ends of a pair, ours under the number that is asked for; what the program says there comes back to the other. */
static void expect_channel(int number, bool at_stdin_too)
{
    int pair[2], saved = fcntl(number, F_DUPFD_CLOEXEC, 40);
    struct spawned spawned;
    struct err err;
    siginfo_t info;
    char out[256] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int ours = fcntl(pair[0], F_DUPFD_CLOEXEC, 50), theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, 60);
    close(pair[0]);
    close(pair[1]);
    int cwd_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 70), null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int stdio = fcntl(null_fd, F_DUPFD_CLOEXEC, 80);
    close(null_fd);
    int channel = dup3(theirs, number, O_CLOEXEC);
    char *argv[] = {"sh", "-c", "read x <&3; echo \"$x\" >&3; ls /proc/self/fd >&3; ulimit -n >&3", NULL};
    struct spawn spawn = {.path = "/bin/sh",
                          .argv = argv,
                          .envp = no_env,
                          .cwd_fd = cwd_fd,
                          .stdio = {at_stdin_too ? theirs : stdio, stdio, stdio},
                          .channel_fd = channel,
                          .data_max_bytes = 1 << 30,
                          .fds_max = 55,
                          .cgroup_fd = -1};
    int failed = spawn_start(&spawn, &spawned, &err);
    close(theirs);
    if (saved >= 0)
        dup3(saved, number, number > 2 ? O_CLOEXEC : 0);
    else
        close(number);
    if (saved >= 0)
        close(saved);
    assert_int_equal(failed, 0);
    assert_int_equal(write(ours, "hello\n", 6), 6);
    size_t len = 0;
    for (ssize_t n; (n = read(ours, out + len, sizeof(out) - 1 - len)) > 0;)
        len += (size_t)n;
    assert_int_equal(waitid(P_PIDFD, (id_t)spawned.pidfd, &info, WEXITED), 0);
    assert_string_equal(out, "hello\n0\n1\n2\n3\n4\n55\n"); /* 4: what ls reads */
    close(spawned.pidfd);
    close(stdio);
    close(cwd_fd);
    close(ours);
}

static void a_channel_becomes_descriptor_three(void **state)
{
    (void)state;
    for (int number = 1; number < 6; number++)
        if (fcntl(number, F_GETFD) < 0 || number < 4)
            expect_channel(number, false);
    expect_channel(30, true);
    expect_channel(3, true);
}

static void limits_are_never_above_those_of_the_server(void **state)
{
    (void)state;
    char out[256];
    struct err err;
    struct rlimit before, lower = {.rlim_cur = 200, .rlim_max = 200};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_NOFILE, &lower);
        char *argv[] = {"sh", "-c", "ulimit -n; ulimit -Hn; ulimit -d", NULL};
        bound = (struct bounds){.data_max_bytes = 1 << 30, .fds_max = 4096};
        int status = run(argv, no_env, "/bin/sh", out, sizeof(out), &err);
        _exit(status == 0 && strcmp(out, "200\n200\n1048576\n") == 0 ? 42 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* Linux before 5.9, and filters of system calls that do not know it. */
static void descriptors_are_closed_without_close_range(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        char out[256];
        struct err err;
        for (int fd = 100; fd < 400; fd++)
            dup2(0, fd); /* more than one read of the directory */
        char *argv[] = {"ls", "/proc/self/fd", NULL};
        int status = run(argv, no_env, "/bin/ls", out, sizeof(out), &err);
        _exit(status == 0 && strcmp(out, "0\n1\n2\n3\n") == 0 ? 42 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77) {
        printf("NOT RUN: spawn without close_range: this machine allows no filters\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void a_group_that_refuses_is_done_without(void **state)
{
    (void)state;
    struct spawned spawned;
    struct err err;
    siginfo_t info;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *argv[] = {"true", NULL};
    struct spawn spawn = {.path = "/bin/true",
                          .argv = argv,
                          .envp = no_env,
                          .cwd_fd = dir_fd,
                          .stdio = {null_fd, null_fd, null_fd},
                          .cgroup_fd = dir_fd}; /* no control group at all */
    assert_int_equal(spawn_start(&spawn, &spawned, &err), 0);
    assert_false(spawned.placed);
    assert_int_equal(waitid(P_PIDFD, (id_t)spawned.pidfd, &info, WEXITED), 0);
    assert_int_equal(info.si_status, 0);
    close(spawned.pidfd);
    close(null_fd);
}

static void what_is_no_terminal_cannot_be_one(void **state)
{
    (void)state;
    struct spawned spawned;
    struct err err = {0};
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *argv[] = {"true", NULL};
    struct spawn spawn = {.path = "/bin/true",
                          .argv = argv,
                          .envp = no_env,
                          .cwd_fd = dir_fd,
                          .stdio = {null_fd, null_fd, null_fd},
                          .on_terminal = true,
                          .cgroup_fd = -1};
    assert_int_equal(spawn_start(&spawn, &spawned, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_int_equal(err.saved_errno, ENOTTY);
    close(null_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_programs),
        cmocka_unit_test(tells_missing_from_not_executable),
        cmocka_unit_test(runs_in_its_directory),
        cmocka_unit_test(exec_failures_have_codes),
        cmocka_unit_test(too_large_is_told_beforehand_and_by_the_kernel),
        cmocka_unit_test(child_starts_clean),
        cmocka_unit_test(low_descriptors_do_not_mix),
        cmocka_unit_test(a_channel_becomes_descriptor_three),
        cmocka_unit_test(limits_are_never_above_those_of_the_server),
        cmocka_unit_test(descriptors_are_closed_without_close_range),
        cmocka_unit_test(a_group_that_refuses_is_done_without),
        cmocka_unit_test(what_is_no_terminal_cannot_be_one),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
