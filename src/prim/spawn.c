/* Starting one program with posix_spawn, which costs the same however much memory the server holds (fork does not);
 * called by prim/process. */
#include "prim/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
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

static int spawn_error(const struct spawn *spawn, int errno_value, struct err *err)
{
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
    case EACCES:
        if (faccessat(spawn->cwd_fd, ".", X_OK, AT_EACCESS) != 0) {
            err_set_errno(err, ERR_BAD_CWD, errno_value, "cannot enter the working directory");
            return err_field(err, "cwd");
        }
        return not_executable(err, spawn->path, errno_value);
    default: /* ENOEXEC; ENOENT: its interpreter is missing; ETXTBSY, ELIBBAD, ... */
        return not_executable(err, spawn->path, errno_value);
    }
}

static int run(const struct spawn *spawn, const int stdio[3], pid_t *out_pid)
{
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t actions;
    sigset_t all, none;
    memset(&all, 0xff, sizeof(all)); /* sigfillset leaves out 32 and 33, and the child would start with them ignored */
    sigemptyset(&none);
    int failed = posix_spawnattr_init(&attr);
    if (failed != 0)
        return failed;
    failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        posix_spawnattr_destroy(&attr);
        return failed;
    }
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    failed = posix_spawn_file_actions_addfchdir_np(&actions, spawn->cwd_fd);
    for (int i = 0; i < 3 && failed == 0; i++)
        failed = posix_spawn_file_actions_adddup2(&actions, stdio[i], i);
    if (failed == 0)
        failed = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (failed == 0)
        failed = posix_spawn(out_pid, spawn->path, &actions, &attr, spawn->argv, spawn->envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return failed;
}

int spawn_start(const struct spawn *spawn, pid_t *out_pid, int *out_pidfd, struct err *err)
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
    pid_t pid = 0;
    if (failed == 0)
        failed = run(spawn, stdio, &pid);
    for (int i = 0; i < 3; i++)
        if (stdio[i] != spawn->stdio[i] && stdio[i] >= 0)
            close(stdio[i]);
    if (failed != 0)
        return spawn_error(spawn, failed, err);
    int pidfd = pidfd_open(pid, 0); /* close-on-exec by itself; the pid cannot be another's: nobody has reaped it */
    if (pidfd < 0) {
        failed = errno;
        kill(pid, SIGKILL);
        siginfo_t info;
        waitid(P_PID, (id_t)pid, &info, WEXITED);
        return err_set_errno(err, ERR_TOO_MANY_PROCESSES, failed, "cannot watch the new process");
    }
    *out_pid = pid;
    *out_pidfd = pidfd;
    return 0;
}
