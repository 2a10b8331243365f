/* The loop of `abxd-helper shell`: JSON-RPC lines on descriptor 3, cells for bash, answers. One cell at a time. */
#include "helper/shell_main.h"

#include "base/buf.h"
#include "base/loop.h"
#include "helper/shell_answer.h"
#include "helper/shell_session.h"
#include "helper/shell_tree.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 32 * 1024 * 1024,
    CHUNK_BYTES = 64 * 1024,
    HOUR_MS = 60 * 60 * 1000,
    STEP_MS = 100,     /* between two steps of an interrupt */
    GIVE_UP_MS = 4500, /* from then on it is the parent's to kill us */
};

enum state { IDLE, STARTING, OPENING, RUNNING }; /* STARTING: a cell waits for the bash that it needs */

struct shell {
    struct shell_session session;
    enum state state;
    int64_t id;     /* of the call that runs */
    cJSON *message; /* the call itself */
    int64_t execution_count;
    uint64_t deadline_ns, interrupted_ns; /* 0: none */
    struct buf lines;
};

/* The call is answered. */
static void finish(struct shell *shell)
{
    cJSON_Delete(shell->message);
    shell->message = NULL;
    shell->state = IDLE;
    shell->deadline_ns = shell->interrupted_ns = 0;
}

static void fail(struct shell *shell, const struct err *err)
{
    shell_answer_refuse(shell->id, err);
    finish(shell);
}

static void answer_opened(struct shell *shell, const char *version)
{
    shell_answer_opened(shell->id, version);
    finish(shell);
}

static void answer_cell(struct shell *shell, const char *exit_status)
{
    shell_answer_cell(shell->id, shell->execution_count, exit_status, shell->interrupted_ns != 0);
    finish(shell);
}

/* --- calls */

static const cJSON *param(const struct shell *shell, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(shell->message, "params"), name);
}

static const char *text_param(const struct shell *shell, const char *name)
{
    const cJSON *item = param(shell, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static bool kept_variable(const char *name)
{
    return strcmp(name, "HOME") == 0 || strcmp(name, "TMPDIR") == 0 || strcmp(name, "ABX_PROCESS_ID") == 0;
}

/* NAME=value of each variable of `open`, with what is ours. Freed by the caller: each, and the array. */
static char **open_environment(const cJSON *env)
{
    size_t count = 0;
    char **out = calloc((size_t)cJSON_GetArraySize(env) + 4, sizeof(*out));
    if (!out)
        return NULL;
    for (const cJSON *item = env ? env->child : NULL; item; item = item->next) {
        if (!cJSON_IsString(item) || kept_variable(item->string))
            continue;
        size_t size = strlen(item->string) + strlen(item->valuestring) + 2;
        char *text = malloc(size);
        if (!text)
            _exit(70);
        stpcpy(stpcpy(stpcpy(text, item->string), "="), item->valuestring);
        out[count++] = text;
    }
    static const char *const own[] = {"HOME", "TMPDIR", "ABX_PROCESS_ID"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        const char *value = getenv(own[i]);
        char *text = value ? malloc(strlen(own[i]) + strlen(value) + 2) : NULL;
        if (!text)
            continue;
        stpcpy(stpcpy(stpcpy(text, own[i]), "="), value);
        out[count++] = text;
    }
    return out;
}

static void open_shell(struct shell *shell)
{
    struct err err;
    char **environment = open_environment(param(shell, "env"));
    if (!environment)
        _exit(70);
    shell->execution_count = 0;
    shell->state = OPENING;
    int rc = shell_session_start(&shell->session, environment, text_param(shell, "cwd"), &err);
    for (size_t i = 0; environment[i]; i++)
        free(environment[i]);
    free(environment);
    if (rc != 0)
        fail(shell, &err);
}

static void run_cell(struct shell *shell)
{
    const cJSON *env = param(shell, "env");
    size_t count = 0;
    struct shell_variable *variables = calloc((size_t)cJSON_GetArraySize(env) + 1, sizeof(*variables));
    if (!variables)
        _exit(70);
    for (const cJSON *item = env ? env->child : NULL; item; item = item->next)
        variables[count++] = (struct shell_variable){item->string, cJSON_IsString(item) ? item->valuestring : NULL};
    struct err err;
    shell->state = RUNNING;
    shell->execution_count++;
    int rc =
        shell_session_run(&shell->session, text_param(shell, "code"), variables, count, text_param(shell, "cwd"), &err);
    free(variables);
    if (rc > 0)
        answer_cell(shell, "2"); /* as bash says it of a syntax error */
    else if (rc != 0)
        fail(shell, &err);
}

static void execute(struct shell *shell)
{
    const cJSON *timeout = param(shell, "timeout_ms");
    if (cJSON_IsNumber(timeout) && timeout->valuedouble > 0)
        shell->deadline_ns = loop_clock_ns() + (uint64_t)(timeout->valuedouble * 1e6);
    if (shell->session.pid != 0) {
        run_cell(shell);
        return;
    }
    struct err err;
    shell->state = STARTING;
    if (shell_session_start(&shell->session, environ, NULL, &err) != 0)
        fail(shell, &err);
}

/* cJSON cuts a text at \u0000: seen in the line itself. */
static bool has_nul_escape(const char *line, size_t len)
{
    for (const char *at = line; (at = memmem(at, len - (size_t)(at - line), "\\u0000", 6)) != NULL; at += 6) {
        const char *first = at;
        while (first > line && first[-1] == '\\')
            first--;
        if ((at - first) % 2 == 0)
            return true;
    }
    return false;
}

static void cancel(struct shell *shell, const cJSON *params)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(params, "id");
    bool cell = shell->state == RUNNING || shell->state == STARTING; /* what is starting is left once it runs */
    if (cell && cJSON_IsNumber(id) && (int64_t)id->valuedouble == shell->id)
        shell->deadline_ns = 1;
}

static void take_line(struct shell *shell, const char *line, size_t len)
{
    cJSON *message = cJSON_ParseWithLength(line, len);
    const char *method = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "method"));
    if (!method)
        _exit(2); /* no JSON-RPC: the parent is not what we know */
    if (strcmp(method, "cancel") == 0) {
        cancel(shell, cJSON_GetObjectItemCaseSensitive(message, "params"));
        cJSON_Delete(message);
        return;
    }
    struct err err;
    int64_t id = (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(message, "id"));
    if (shell->state != IDLE) {
        err_set(&err, ERR_BUSY, "a cell is running");
        shell_answer_refuse(id, &err);
        cJSON_Delete(message);
        return;
    }
    shell->id = id;
    shell->message = message;
    if (has_nul_escape(line, len)) {
        err_set(&err, ERR_INVALID_REQUEST, "bash takes no NUL character");
        err_field(&err, "code");
        fail(shell, &err);
    } else if (strcmp(method, "open") == 0) {
        open_shell(shell);
    } else if (strcmp(method, "execute") == 0 && text_param(shell, "code")) {
        execute(shell);
    } else {
        err_set(&err, ERR_INVALID_REQUEST, "no such method, or a parameter is missing");
        fail(shell, &err);
    }
}

/* --- events */

_Noreturn static void end_with_channel(void)
{
    /* Again, as what is killed may have started something meanwhile; what cannot be killed keeps nobody waiting. */
    struct shell_tree_filter all = {0};
    for (int round = 0; round < 20 && shell_tree_signal(SIGKILL, &all) > 0; round++) {
        poll(NULL, 0, 5);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
    _exit(0);
}

static void read_channel(struct shell *shell)
{
    struct buf *lines = &shell->lines;
    if (buf_reserve(lines, CHUNK_BYTES) != 0)
        _exit(2);
    ssize_t got = read(SHELL_CHANNEL_FD, lines->data + lines->len, CHUNK_BYTES);
    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0)
        end_with_channel();
    size_t begin = 0, seen = lines->len;
    lines->len += (size_t)got;
    for (char *end; (end = memchr(lines->data + seen, '\n', lines->len - seen)) != NULL;) {
        size_t after = (size_t)(end - lines->data) + 1;
        take_line(shell, lines->data + begin, after - begin - 1);
        begin = seen = after;
    }
    buf_consume(lines, begin);
}

/* Ends as bash did, so that whoever waits for us sees it. */
_Noreturn static void end_as(int status)
{
    if (!WIFSIGNALED(status))
        _exit(WEXITSTATUS(status));
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    sigset_t mask;
    sigfillset(&mask);
    signal(WTERMSIG(status), SIG_DFL);
    sigdelset(&mask, WTERMSIG(status));
    sigprocmask(SIG_SETMASK, &mask, NULL);
    kill(getpid(), WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

static void reap(struct shell *shell, int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
        continue;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != shell->session.pid)
            continue;
        if (shell->state == OPENING && WIFEXITED(status) && WEXITSTATUS(status) >= 126) {
            struct err err;
            shell->session.pid = 0;
            err_set(&err, WEXITSTATUS(status) == 127 ? ERR_UNAVAILABLE : ERR_BAD_CWD,
                    WEXITSTATUS(status) == 127 ? "bash is missing: install the package bash" : "cannot enter cwd");
            shell_answer_refuse(shell->id, &err);
        } else if (shell->state == RUNNING && shell->interrupted_ns != 0) {
            answer_cell(shell, "0"); /* under set -e the command that we interrupted has ended the shell: late still */
        }
        end_as(status);
    }
}

static void on_report(struct shell *shell)
{
    while (shell_session_report(&shell->session)) {
        const char *text = shell->session.status;
        if (shell->state == OPENING)
            answer_opened(shell, text);
        else if (shell->state == STARTING)
            run_cell(shell);
        else if (shell->state == RUNNING)
            answer_cell(shell, text);
    }
}

/* Milliseconds until something is to be done; -1: nothing is. */
static int look_at_clock(struct shell *shell)
{
    if (shell->state != RUNNING || shell->deadline_ns == 0)
        return -1;
    uint64_t now = loop_clock_ns();
    if (now < shell->deadline_ns)
        return (int)MIN((shell->deadline_ns - now) / 1000000 + 1, HOUR_MS);
    if (shell->interrupted_ns == 0)
        shell->interrupted_ns = now;
    uint64_t since_ms = (now - shell->interrupted_ns) / 1000000;
    if (since_ms > GIVE_UP_MS)
        return -1;
    shell_session_interrupt(&shell->session, since_ms);
    return STEP_MS;
}

int shell_main(void)
{
    struct shell shell = {0};
    buf_init(&shell.lines, LINE_MAX_BYTES);
    struct err err;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    /* Orphans come to us, so that they end with the context. */
    if (fcntl(SHELL_CHANNEL_FD, F_SETFD, FD_CLOEXEC) != 0 || signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
        shell_session_init(&shell.session, &err) != 0)
        return 1;
    for (;;) {
        int wait_ms = look_at_clock(&shell);
        struct pollfd fds[] = {{.fd = SHELL_CHANNEL_FD, .events = POLLIN},
                               {.fd = signal_fd, .events = POLLIN},
                               {.fd = shell.session.status_fd, .events = POLLIN}};
        if (poll(fds, 3, wait_ms) < 0 && errno != EINTR)
            return 1;
        if (fds[2].revents)
            on_report(&shell);
        if (fds[1].revents)
            reap(&shell, signal_fd);
        if (fds[0].revents)
            read_channel(&shell);
    }
}
