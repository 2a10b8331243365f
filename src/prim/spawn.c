/* Starting one program from a child that shares our memory until then, which costs the same however much memory the
 * server holds (fork does not); called by prim/process. */
#include "prim/spawn.h"

#include "prim/spawn_clone.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_SEARCH_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* 0, or the errno that execve would tell. */
static int executable(const char *path, int cwd_fd)
{
    struct stat st;
    if (fstatat(cwd_fd, path, &st, 0) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return faccessat(cwd_fd, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static int not_executable(struct err *err, const char *name, int errno_value)
{
    err_set_errno(err, ERR_NOT_EXECUTABLE, errno_value, "cannot be executed: %.100s", name);
    return err_field(err, "argv[0]");
}

int spawn_find(const char *name, const char *search_path, int cwd_fd, char out[PATH_MAX], struct err *err)
{
    int worst = ENOENT; /* what the best candidate failed with: one that exists beats none */
    if (strchr(name, '/') != NULL) {
        if (strlen(name) >= PATH_MAX) {
            worst = ENAMETOOLONG;
        } else {
            worst = executable(name, cwd_fd);
            if (worst == 0) {
                strcpy(out, name);
                return 0;
            }
        }
    } else if (name[0] != '\0') {
        const char *dir = search_path != NULL ? search_path : DEFAULT_SEARCH_PATH;
        for (;;) {
            size_t dir_len = strcspn(dir, ":");
            char path[PATH_MAX];
            if (dir_len + 1 + strlen(name) < sizeof(path)) {
                memcpy(path, dir_len > 0 ? dir : ".", dir_len > 0 ? dir_len : 1); /* an empty entry is the cwd */
                size_t len = dir_len > 0 ? dir_len : 1;
                path[len] = '/';
                strcpy(path + len + 1, name);
                int failed = executable(path, cwd_fd);
                if (failed == 0) {
                    strcpy(out, path);
                    return 0;
                }
                if (failed == EACCES)
                    worst = EACCES;
            }
            if (dir[dir_len] == '\0')
                break;
            dir += dir_len + 1;
        }
    }
    if (worst == EACCES)
        return not_executable(err, name, EACCES);
    err_set(err, ERR_EXECUTABLE_NOT_FOUND, "no such program: %.150s", name);
    return err_field(err, "argv[0]");
}

/* dup2 from a descriptor below 3 could overwrite one that a later dup2 still needs; so all sources go above. */
static int lift(int fd)
{
    return fd > 2 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

enum step { STEP_SESSION, STEP_CWD, STEP_STDIO, STEP_TERMINAL, STEP_LIMITS, STEP_EXEC };

static int spawn_error(const struct spawn *spawn, enum step step, int errno_value, struct err *err)
{
    if (step == STEP_CWD) {
        err_set_errno(err, ERR_BAD_CWD, errno_value, "cannot enter the working directory");
        return err_field(err, "cwd");
    }
    if (step == STEP_LIMITS)
        return err_set_errno(err, ERR_INTERNAL, errno_value, "cannot bound a program");
    if (step == STEP_TERMINAL)
        return err_set_errno(err, ERR_INTERNAL, errno_value, "cannot give a program its terminal");
    switch (errno_value) {
    case E2BIG:
        return err_set(err, ERR_PAYLOAD_TOO_LARGE,
                       "the kernel refuses arguments and environment of this size (one of them may have %d bytes)",
                       SPAWN_ARG_MAX_BYTES);
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return err_set_errno(err, ERR_TOO_MANY_PROCESSES, errno_value, "the system has no room for another process");
    default: /* EACCES; ENOEXEC; ENOENT: its interpreter is missing; ETXTBSY, ELIBBAD, ... */
        return not_executable(err, spawn->path, errno_value);
    }
}

/* --- in the child: it runs in our memory while we wait, and calls nothing but the kernel */

enum { SIGNALS = 64, STACK_BYTES = 16 * 1024, DENTS_BYTES = 1024 };

/* What the kernel takes as struct sigaction and as a set of signals: the C library's keep 32 and 33 to itself, and the
 * child would start with them ignored. */
struct kernel_sigaction {
    unsigned long fields[4];
};

struct child {
    const struct spawn *spawn;
    const int *stdio;
    int channel;    /* 0: none */
    enum step step; /* the one that failed, */
    int failed;     /* with this errno; 0: none did */
};

SPAWN_CHILD_CODE static long fail(struct child *child, enum step step)
{
    child->step = step;
    child->failed = errno;
    return syscall(SYS_exit_group, 127);
}

/* Linux before 5.9, or a filter of system calls that does not know close_range: one by one, as /proc lists them. */
SPAWN_CHILD_CODE static void close_listed(int first)
{
    struct dirent64_head {
        uint64_t ino;
        int64_t off;
        uint16_t len;
        uint8_t type;
        char name[];
    };
    char bytes[DENTS_BYTES] __attribute__((aligned(8)));
    long dir = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
    long len;
    while (dir >= 0 && (len = syscall(SYS_getdents64, dir, bytes, sizeof(bytes))) > 0) {
        for (long at = 0; at < len;) {
            const struct dirent64_head *entry = (const struct dirent64_head *)(bytes + at);
            long fd = 0;
            for (const char *digit = entry->name; *digit >= '0' && *digit <= '9'; digit++)
                fd = fd * 10 + (*digit - '0');
            if (fd >= first && fd != dir)
                syscall(SYS_close, fd);
            at += entry->len;
        }
    }
    if (dir >= 0) {
        syscall(SYS_close, dir);
        return;
    }
    struct rlimit limit = {0};
    syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
    for (long fd = first; fd < (long)limit.rlim_cur; fd++)
        syscall(SYS_close, fd);
}

SPAWN_CHILD_CODE static long bound(int resource, rlim_t max)
{
    struct rlimit limit;
    if (max == 0)
        return 0;
    if (syscall(SYS_prlimit64, 0, resource, NULL, &limit) != 0)
        return -1;
    if (limit.rlim_max > max)
        limit.rlim_max = max;
    limit.rlim_cur = limit.rlim_max;
    return syscall(SYS_prlimit64, 0, resource, &limit, NULL);
}

SPAWN_CHILD_CODE static int child_main(void *ctx)
{
    struct child *child = ctx;
    const struct spawn *spawn = child->spawn;
    const struct kernel_sigaction by_default = {{0}};
    const uint64_t none = 0;
    for (int signal = 1; signal <= SIGNALS; signal++)
        syscall(SYS_rt_sigaction, signal, &by_default, NULL, sizeof(none));
    if (syscall(SYS_setsid) < 0) /* from here on it has no terminal; one of its own would be opened next */
        return (int)fail(child, STEP_SESSION);
    if (syscall(SYS_fchdir, spawn->cwd_fd) != 0)
        return (int)fail(child, STEP_CWD);
    for (int i = 0; i < 3; i++)
        if (syscall(SYS_dup3, child->stdio[i], i, 0) < 0)
            return (int)fail(child, STEP_STDIO);
    /* The sources of 0-2 may have stood there; they are needed no more. */
    int first = 3;
    if (child->channel > 0) {
        long failed = child->channel == 3 ? syscall(SYS_fcntl, 3, F_SETFD, 0) : syscall(SYS_dup3, child->channel, 3, 0);
        if (failed < 0)
            return (int)fail(child, STEP_STDIO);
        first = 4;
    }
    /* Its group becomes the foreground one with that. */
    if (spawn->on_terminal && syscall(SYS_ioctl, 0, TIOCSCTTY, 0) != 0)
        return (int)fail(child, STEP_TERMINAL);
    if (syscall(SYS_close_range, first, ~0U, 0) != 0)
        close_listed(first);
    if (bound(RLIMIT_DATA, spawn->data_max_bytes) != 0 || bound(RLIMIT_NOFILE, spawn->fds_max) != 0)
        return (int)fail(child, STEP_LIMITS);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
    syscall(SYS_execve, spawn->path, spawn->argv, spawn->envp);
    return (int)fail(child, STEP_EXEC);
}

/* --- in the server */

/* 0, or an errno and at which step. */
static int run(const struct spawn *spawn, const int stdio[3], int channel, struct spawned *out, enum step *out_step)
{
    char stack[STACK_BYTES] __attribute__((aligned(16)));
    struct child child = {.spawn = spawn, .stdio = stdio, .channel = channel};
    const uint64_t all = UINT64_MAX;
    uint64_t before;
    *out_step = STEP_SESSION;
    /* A handler of ours must not run in the child, which would do its work on our memory. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
    *out = (struct spawned){.pidfd = -1, .placed = spawn->cgroup_fd >= 0};
    out->pid = spawn_clone(child_main, &child, stack, sizeof(stack), spawn->cgroup_fd, &out->pidfd);
    if (out->pid < 0 && out->placed) {
        out->placed = false;
        out->pid = spawn_clone(child_main, &child, stack, sizeof(stack), -1, &out->pidfd);
    }
    int failed = out->pid < 0 ? errno : 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
    if (failed == 0 && child.failed != 0) {
        siginfo_t info;
        waitid(P_PIDFD, (id_t)out->pidfd, &info, WEXITED);
        close(out->pidfd);
        *out_step = child.step;
        failed = child.failed;
    }
    return failed;
}

int spawn_start(const struct spawn *spawn, struct spawned *out, struct err *err)
{
    for (char *const *arg = spawn->argv; *arg != NULL; arg++) {
        if (strlen(*arg) > SPAWN_ARG_MAX_BYTES) {
            return err_set(err, ERR_PAYLOAD_TOO_LARGE, "one argument or command may have at most %d bytes",
                           SPAWN_ARG_MAX_BYTES);
        }
    }
    int stdio[3];
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        stdio[i] = lift(spawn->stdio[i]);
        failed = stdio[i] < 0 ? errno : failed;
    }
    int channel = spawn->channel_fd > 0 ? lift(spawn->channel_fd) : 0;
    failed = channel < 0 ? errno : failed;
    struct spawned spawned;
    enum step step = STEP_STDIO;
    if (failed == 0)
        failed = run(spawn, stdio, channel, &spawned, &step);
    for (int i = 0; i < 3; i++)
        if (stdio[i] != spawn->stdio[i] && stdio[i] >= 0)
            close(stdio[i]);
    if (channel != spawn->channel_fd && channel > 0)
        close(channel);
    if (failed != 0)
        return spawn_error(spawn, step, failed, err);
    *out = spawned;
    return 0;
}
