/* Starts bash, feeds it cells and makes it leave them; for shell_main. */
#include "helper/shell_session.h"

#include "base/buf.h"
#include "helper/shell_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SETTING_MAX_BYTES = 64 * 1024 * 1024,
    TERMINATE_AFTER_MS = 500,
    KILL_AFTER_MS = 1500,
    KILL_ALL_AFTER_MS = 2500, /* what looks like a background job of this cell too */
};

/* A signal that no program has a use for, so that a cell's own trap on INT stays the cell's. */
#define INTERRUPT_SIGNAL (SIGRTMAX - 4)

/* What makes bash leave loops and functions: a DEBUG trap that calls a function with status 2 under extdebug returns
 * from the function or sourced file that is running, before each command (status 2 of anything but a function does
 * not). The depth keeps our own line, outside of the cell, unharmed. The trap's own return is for set -e:
 * bash would exit next, because of the command that was ended. A DEBUG trap of the cell's is lost by it: bash has
 * no way to read it without running it. */
static const char leave_function[] = "__abxd_leave() { [ \"${#BASH_SOURCE[@]}\" -lt 3 ] || return 2; }; ";
static const char interrupt_trap[] =
    "__abxd_flags=$-; set +e; shopt -s extdebug; set -T; "
    "builtin trap __abxd_leave DEBUG; [ \"${#BASH_SOURCE[@]}\" -lt 2 ] || builtin return 130";
static const char after_interrupt[] =
    "builtin trap - DEBUG; shopt -u extdebug; case $__abxd_flags in *E*) set -E;; esac; "
    "case $__abxd_flags in *T*) set -T;; esac; case $__abxd_flags in *e*) set -e;; esac; "
    "builtin unset -v __abxd_flags\n";

static int write_all(int fd, const char *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

int shell_session_init(struct shell_session *session, struct err *err)
{
    *session = (struct shell_session){.command_fd = -1, .script_fd = -1};
    int status[2];
    if (pipe2(status, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot make a pipe");
    session->status_fd = status[0];
    session->report_fd = status[1];
    session->cell_fd = memfd_create("cell", MFD_CLOEXEC);
    session->setting_fd = memfd_create("setting", MFD_CLOEXEC);
    if (session->cell_fd < 0 || session->setting_fd < 0 || fcntl(status[0], F_SETFL, O_NONBLOCK) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot make a file in memory");
    return 0;
}

_Noreturn static void become_bash(const char *script, char *const *environment, const char *cwd, pid_t helper)
{
    /* Signals that are ignored at a shell's start stay so for all it runs. */
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY);
    if (getppid() != helper || (cwd && chdir(cwd) != 0) || null < 0 || dup2(null, 0) < 0)
        _exit(126);
    if (null > 2)
        close(null);
    char *argv[] = {"bash", "--norc", "--noprofile", (char *)script, NULL};
    execve("/bin/bash", argv, environment);
    execve("/usr/bin/bash", argv, environment);
    execve("/usr/local/bin/bash", argv, environment);
    _exit(127);
}

static void end_old(struct shell_session *session)
{
    if (session->pid == 0)
        return;
    struct shell_tree_filter all = {0};
    shell_tree_signal(SIGKILL, &all);
    waitpid(session->pid, NULL, 0);
    session->pid = 0;
    close(session->command_fd);
    close(session->script_fd);
    char rest[256];
    while (read(session->status_fd, rest, sizeof(rest)) > 0)
        continue;
    session->status_len = 0;
    session->interrupted = false;
}

static int command(struct shell_session *session, const char *text, struct err *err)
{
    if (write_all(session->command_fd, text, strlen(text)) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "bash takes no commands");
    return 0;
}

int shell_session_start(struct shell_session *session, char *const *environment, const char *cwd, struct err *err)
{
    end_old(session);
    int commands[2];
    if (pipe2(commands, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot make a pipe");
    session->script_fd = commands[0];
    session->command_fd = commands[1];
    pid_t helper = getpid();
    char text[1024];
    snprintf(text, sizeof(text), "/proc/%d/fd/%d", (int)helper, commands[0]);
    pid_t pid = fork();
    if (pid == 0)
        become_bash(text, environment, cwd, helper);
    if (pid < 0) {
        close(commands[0]);
        close(commands[1]);
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot start bash");
    }
    session->pid = pid;
    /* The trap on INT: bash kills itself by SIGINT after a command substitution that it has ended, unless there is one.
     */
    snprintf(text, sizeof(text),
             "BASH_ARGV0=bash; builtin trap : INT; %sbuiltin trap '%s' %d; builtin printf '%%s\\n' \"$BASH_VERSION\" "
             ">/proc/%d/fd/%d\n",
             leave_function, interrupt_trap, INTERRUPT_SIGNAL, (int)helper, session->report_fd);
    return command(session, text, err);
}

static int put_quoted(struct buf *out, const char *text)
{
    if (buf_append_text(out, "'") != 0)
        return -1;
    for (const char *quote; (quote = strchr(text, '\'')) != NULL; text = quote + 1)
        if (buf_append(out, text, (size_t)(quote - text)) != 0 || buf_append_text(out, "'\\''") != 0)
            return -1;
    return buf_append_text(out, text) != 0 || buf_append_text(out, "'") != 0 ? -1 : 0;
}

static int put_setting(struct buf *out, const struct shell_variable *variables, size_t count, const char *cwd)
{
    for (size_t i = 0; i < count; i++) {
        const struct shell_variable *one = &variables[i];
        if (!one->value && buf_printf(out, "builtin unset -v %s\n", one->name) != 0)
            return -1;
        if (one->value && (buf_printf(out, "builtin export %s=", one->name) != 0 || put_quoted(out, one->value) != 0 ||
                           buf_append_text(out, "\n") != 0))
            return -1;
    }
    /* The last command: its failure keeps the cell from running. */
    if (cwd &&
        (buf_append_text(out, "builtin cd -- ") != 0 || put_quoted(out, cwd) != 0 || buf_append_text(out, "\n") != 0))
        return -1;
    return 0;
}

static int fill(int fd, const char *bytes, size_t len, struct err *err)
{
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 || write_all(fd, bytes, len) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot hand the cell to bash");
    return 0;
}

/* Bash 5.2 writes beyond a buffer of its parser after a file with an open $( was read by `.`, and dies a few commands
 * later: such a cell is shown to another bash first, which prints what is wrong. extglob, as that is what a cell may
 * have switched on. True where it must not run. */
static bool has_open_substitution(const struct shell_session *session, const char *code)
{
    if (!strstr(code, "$(") && !strstr(code, "<(") && !strstr(code, ">("))
        return false;
    char script[64];
    snprintf(script, sizeof(script), "/proc/%d/fd/%d", (int)getpid(), session->cell_fd);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {"bash", "--norc", "--noprofile", "-n", "-O", "extglob", script, NULL};
        char *environment[] = {"LC_ALL=C.UTF-8", NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execve("/bin/bash", argv, environment);
        execve("/usr/bin/bash", argv, environment);
        execve("/usr/local/bin/bash", argv, environment);
        _exit(0);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 0;
}

int shell_session_run(struct shell_session *session, const char *code, const struct shell_variable *variables,
                      size_t variable_count, const char *cwd, struct err *err)
{
    struct buf setting;
    buf_init(&setting, SETTING_MAX_BYTES);
    int rc = put_setting(&setting, variables, variable_count, cwd);
    if (rc != 0)
        err_set(err, ERR_INVALID_REQUEST, "env is too long");
    else
        rc = fill(session->setting_fd, setting.data, setting.len, err);
    bool any_setting = setting.len > 0;
    buf_deinit(&setting);
    if (rc != 0 || fill(session->cell_fd, code, strlen(code), err) != 0 || write_all(session->cell_fd, "\n", 1) != 0)
        return -1;
    if (has_open_substitution(session, code))
        return 1;
    if (session->interrupted && command(session, after_interrupt, err) != 0)
        return -1;
    session->interrupted = false;
    session->cell_began_ticks = shell_tree_now_ticks();
    int helper = (int)getpid();
    char before[64] = "", line[256];
    if (any_setting)
        snprintf(before, sizeof(before), ". /proc/%d/fd/%d && ", helper, session->setting_fd);
    snprintf(line, sizeof(line),
             "%s. /proc/%d/fd/%d; { builtin printf '%%s\\n' \"$?\" >/proc/%d/fd/%d; } 2>/dev/null\n", before, helper,
             session->cell_fd, helper, session->report_fd);
    return command(session, line, err);
}

bool shell_session_report(struct shell_session *session)
{
    for (char byte; read(session->status_fd, &byte, 1) == 1;) {
        if (byte == '\n') {
            session->status[session->status_len] = '\0';
            session->status_len = 0;
            return true;
        }
        if (session->status_len + 1 < sizeof(session->status))
            session->status[session->status_len++] = byte;
    }
    return false;
}

void shell_session_interrupt(struct shell_session *session, uint64_t since_ms)
{
    if (!session->interrupted)
        kill(session->pid, INTERRUPT_SIGNAL);
    session->interrupted = true;
    int signal_number = since_ms < TERMINATE_AFTER_MS ? SIGINT : since_ms < KILL_AFTER_MS ? SIGTERM : SIGKILL;
    /* A tick of tolerance would reach into the cell before; a child that is younger than its cell has a later one. */
    struct shell_tree_filter filter = {
        .began_ticks = session->cell_began_ticks, .but = session->pid, .foreground = since_ms < KILL_ALL_AFTER_MS};
    shell_tree_signal(signal_number, &filter);
}
