/* One entry of the process table: how it is started and what it tells; called by bind_proc, bind_stream and sessions.
 */
#include "prim/process_internal.h"

#include "prim/process_marker.h"
#include "prim/secret.h"
#include "prim/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

enum { HOLD_MS = 30 * 1000 };

/* What process_start has in hand until all of it is done. */
struct start {
    char *command, *argv_of_shell[5];
    char **envp;
    char path[PATH_MAX];
    struct spawn spawn;
    int out_pipes[2][2], in_pipe[2];
};

static void start_deinit(struct start *start)
{
    free(start->command);
    free(start->envp);
    for (int i = 0; i < 2; i++) {
        const int fds[] = {start->out_pipes[0][i], start->out_pipes[1][i], start->in_pipe[i]};
        for (size_t f = 0; f < 3; f++)
            if (fds[f] >= 0)
                close(fds[f]);
    }
}

/* Without a control group it is found by the walk. */
static int spawn(struct process *process, struct start *start, struct err *err)
{
    struct process_table *table = process->table;
    struct spawned spawned;
    process->cgroup = table->cgroups != NULL ? process_cgroup_take(table->cgroups) : NULL;
    start->spawn.cgroup_fd = process->cgroup != NULL ? process_cgroup_open(process->cgroup) : -1;
    int failed = spawn_start(&start->spawn, &spawned, err);
    if (process->cgroup != NULL)
        process_cgroup_close(process->cgroup, start->spawn.cgroup_fd);
    process->contained = failed == 0 && spawned.placed;
    if (process->cgroup != NULL && !process->contained) {
        process_cgroup_abandon(process->cgroup);
        process->cgroup = NULL;
    }
    if (failed != 0)
        return -1;
    process->pid = spawned.pid;
    process->pidfd = spawned.pidfd;
    return 0;
}

static int steal_fd(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

static int prepare_command(struct start *start, const struct process_spec *spec, struct err *err)
{
    const char *prefix = spec->command_prefix != NULL ? spec->command_prefix : "";
    size_t prefix_len = strlen(prefix);
    if (memchr(spec->command, '\0', spec->command_len) != NULL) {
        err_set(err, ERR_INVALID_REQUEST, "a command cannot hold a NUL byte");
        return err_field(err, "command");
    }
    if (prefix_len + spec->command_len > SPAWN_ARG_MAX_BYTES) {
        err_set(err, ERR_PAYLOAD_TOO_LARGE,
                "a command may have at most %zu bytes here; send more through stdin or a file",
                SPAWN_ARG_MAX_BYTES - prefix_len);
        return err_field(err, "command");
    }
    start->command = malloc(prefix_len + spec->command_len + 1);
    if (start->command == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for a command");
    memcpy(start->command, prefix, prefix_len);
    memcpy(start->command + prefix_len, spec->command, spec->command_len);
    start->command[prefix_len + spec->command_len] = '\0';
    strcpy(start->path, access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
    start->argv_of_shell[0] = start->path;
    start->argv_of_shell[1] = "-c";
    start->argv_of_shell[2] = "--"; /* a command may begin with a dash */
    start->argv_of_shell[3] = start->command;
    start->spawn.argv = start->argv_of_shell;
    return 0;
}

static int prepare_env(struct start *start, const struct process_spec *spec, const char *marker, struct err *err)
{
    start->envp = malloc((spec->env->count + 2) * sizeof(*start->envp));
    if (start->envp == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    size_t count = 0;
    start->envp[count++] = (char *)marker;
    for (size_t i = 0; i < spec->env->count; i++) {
        char *var = spec->env->vars[i];
        if (strlen(var) > SPAWN_ARG_MAX_BYTES) {
            err_set(err, ERR_PAYLOAD_TOO_LARGE, "an environment variable may have at most %d bytes, its name included",
                    SPAWN_ARG_MAX_BYTES);
            return err_field(err, "env");
        }
        if (strncmp(var, PROCESS_MARKER "=", strlen(PROCESS_MARKER "=")) != 0)
            start->envp[count++] = var;
    }
    start->envp[count] = NULL;
    start->spawn.envp = start->envp;
    return 0;
}

static int prepare_stdio(struct start *start, const struct process_spec *spec, int null_fd, struct err *err)
{
    if (spec->terminal != NULL) {
        start->spawn.on_terminal = true;
        for (int i = 0; i < 3; i++)
            start->spawn.stdio[i] = spec->terminal->slave;
        return 0;
    }
    bool feeds = spec->stdin_fd < 0 && ((spec->stdin_bytes != NULL && spec->stdin_len > 0) || spec->keep_stdin);
    if (pipe2(start->out_pipes[0], O_CLOEXEC) != 0 || pipe2(start->out_pipes[1], O_CLOEXEC) != 0 ||
        (feeds && pipe2(start->in_pipe, O_CLOEXEC) != 0))
        return err_set_errno(err, ERR_TOO_MANY_PROCESSES, errno, "cannot make another pipe");
    /* Only our ends: the program's descriptors must block as it expects. */
    fcntl(start->out_pipes[0][0], F_SETFL, O_NONBLOCK);
    fcntl(start->out_pipes[1][0], F_SETFL, O_NONBLOCK);
    start->spawn.stdio[0] = feeds ? start->in_pipe[0] : spec->stdin_fd >= 0 ? spec->stdin_fd : null_fd;
    start->spawn.stdio[1] = start->out_pipes[0][1];
    start->spawn.stdio[2] = start->out_pipes[1][1];
    return 0;
}

static void on_exited(void *ctx, int events)
{
    (void)events;
    process_reap(ctx);
}

static int keep_command_line(struct process *process, const struct process_spec *spec)
{
    return spec->command != NULL ? command_line_keep_text(&process->line, spec->command, spec->command_len)
                                 : command_line_keep_argv(&process->line, spec->argv);
}

static struct process *process_new(struct process_table *table, const struct process_spec *spec)
{
    struct process *process = calloc(1, sizeof(*process));
    if (process == NULL)
        return NULL;
    process->table = table;
    process->references = 1;
    process->kind = spec->kind;
    process->pidfd = process->input.fd = -1;
    for (int i = 0; i < 2; i++) {
        struct process_output *output = &process->outputs[i];
        output->process = process;
        output->stream = (enum process_stream)i;
        output->fd = -1;
        ring_init(&output->ring, RING_MAX_BYTES);
    }
    list_init(&process->node);
    list_init(&process->kind_node);
    list_init(&process->stop_node);
    list_init(&process->waits);
    list_init(&process->readers);
    list_init(&process->input.writes);
    strcpy(process->id, "p-");
    secret_random_hex(process->id + 2, 6);
    process->cwd = strdup(spec->cwd != NULL ? spec->cwd : "");
    process->tag = spec->tag != NULL ? strdup(spec->tag) : NULL;
    process->uid = geteuid();
    if (process->cwd == NULL || (spec->tag != NULL && process->tag == NULL) || keep_command_line(process, spec) != 0) {
        process_unref(process);
        return NULL;
    }
    return process;
}

/* The program runs; from here on a failure kills it. */
static int attach(struct process *process, struct start *start, const struct process_spec *spec, struct err *err)
{
    struct loop *loop = process->table->loop;
    process->exit_watch = loop_fd_new(loop, process->pidfd, LOOP_READABLE, on_exited, process);
    if (process->exit_watch == NULL)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot watch a process");
    if (spec->terminal != NULL) {
        process->terminal = *spec->terminal;
        return 0;
    }
    for (int i = 0; i < 2; i++)
        if (process_output_open(&process->outputs[i], steal_fd(&start->out_pipes[i][0]), spec->capture_bytes, err) != 0)
            return -1;
    if (process_output_watch(process, err) != 0)
        return -1;
    if (start->in_pipe[1] >= 0) {
        close(steal_fd(&start->in_pipe[0])); /* first: else a reader's end could go unnoticed */
        return process_input_open(process, steal_fd(&start->in_pipe[1]), spec->stdin_bytes, spec->stdin_len,
                                  spec->keep_stdin, err);
    }
    return 0;
}

static int has_room(const struct process_table *table, enum process_kind kind, struct err *err)
{
    if (kind == PROCESS_TERMINAL && table->terminals_count >= table->limits.terminals_max)
        return err_set(err, ERR_TOO_MANY_TERMINALS,
                       "as many terminals live as may (limits.terminals, %zu); DELETE /pty/{id} closes one",
                       table->limits.terminals_max);
    if (kind != PROCESS_TERMINAL && table->living_count >= table->limits.living_max)
        return err_set(err, ERR_TOO_MANY_PROCESSES, "%zu processes run already", table->living_count);
    return 0;
}

struct process *process_start(struct process_table *table, const struct process_spec *spec, struct err *err)
{
    if (table->ending) {
        err_set(err, ERR_SHUTTING_DOWN, "the server is shutting down");
        return NULL;
    }
    if (has_room(table, spec->kind, err) != 0)
        return NULL;
    struct process *process = process_new(table, spec);
    if (process == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a process");
        return NULL;
    }
    char marker[64];
    snprintf(marker, sizeof(marker), PROCESS_MARKER "=%s", process->id);
    struct start start = {.spawn = {.cwd_fd = spec->cwd_fd,
                                    .argv = spec->argv,
                                    .channel_fd = spec->channel_fd,
                                    .data_max_bytes = spec->data_max_bytes,
                                    .fds_max = spec->fds_max},
                          .out_pipes = {{-1, -1}, {-1, -1}},
                          .in_pipe = {-1, -1}};
    start.spawn.path = start.path;
    int failed = spec->command != NULL
                     ? prepare_command(&start, spec, err)
                     : spawn_find(spec->argv[0], env_block_get(spec->env, "PATH"), spec->cwd_fd, start.path, err);
    if (failed == 0)
        failed = prepare_env(&start, spec, marker, err);
    if (failed == 0)
        failed = prepare_stdio(&start, spec, table->null_fd, err);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    process->started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    process->started_ns = loop_clock_ns();
    if (failed == 0)
        failed = spawn(process, &start, err);
    if (failed != 0) {
        start_deinit(&start);
        process_unref(process);
        return NULL;
    }
    process_table_add(table, process);
    if (attach(process, &start, spec, err) != 0) {
        start_deinit(&start);
        pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
        process_input_close(process);
        process_output_close(&process->outputs[0]);
        process_output_close(&process->outputs[1]);
        return NULL; /* stays in the table until it is reaped */
    }
    start_deinit(&start);
    if (spec->timeout_ms > 0)
        loop_timer_start(table->loop, &process->timeout, spec->timeout_ms, process_on_timeout, process);
    if (spec->pace && spec->terminal == NULL)
        process->held_until_ms = loop_now_ms(table->loop) + HOLD_MS;
    return process;
}

struct process *process_ref(struct process *process)
{
    process->references++;
    return process;
}

void process_detach(struct process *process)
{
    list_remove(&process->node);
    loop_defer_stop(&process->notify);
    loop_defer_stop(&process->give_back);
    loop_timer_stop(&process->stall_timer);
    loop_timer_stop(&process->timeout);
    loop_fd_free(process->exit_watch);
    process->exit_watch = NULL;
    process_input_close(process);
}

void process_unref(struct process *process)
{
    if (process == NULL)
        return;
    process->references--;
    if (process->dropped && !process->unseen &&
        process->references == (process->outputs[0].fd >= 0) + (process->outputs[1].fd >= 0)) {
        process->unseen = true;
        ring_deinit(&process->outputs[0].ring);
        ring_deinit(&process->outputs[1].ring);
    }
    if (process->references > 0)
        return;
    if (process->give_back.pending)
        process_give_back(process);
    process_detach(process);
    if (process->pidfd >= 0)
        close(process->pidfd);
    if (process->cgroup != NULL)
        process_cgroup_abandon(process->cgroup);
    process_capture_free(process);
    for (int i = 0; i < 2; i++)
        ring_deinit(&process->outputs[i].ring);
    command_line_deinit(&process->line);
    free(process->cwd);
    free(process->tag);
    free(process);
}

const char *process_id(const struct process *process)
{
    return process->id;
}

enum process_kind process_kind(const struct process *process)
{
    return process->kind;
}

const char *process_tag(const struct process *process)
{
    return process->tag;
}

pid_t process_pid(const struct process *process)
{
    return process->pid;
}

const char *process_cwd(const struct process *process)
{
    return process->cwd;
}

const struct command_line *process_command_line(const struct process *process)
{
    return &process->line;
}

uid_t process_uid(const struct process *process)
{
    return process->uid;
}

uint64_t process_started_ms(const struct process *process)
{
    return process->started_ms;
}

uint64_t process_started_ns(const struct process *process)
{
    return process->started_ns;
}

enum process_state process_state(const struct process *process)
{
    return process->state;
}

void process_format_time(uint64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + len, 32 - len, ".%03uZ", (unsigned)(ms % 1000));
}

void process_started_at(const struct process *process, char out[32])
{
    process_format_time(process->started_ms, out);
}

int process_exit(const struct process *process, struct process_exit *out)
{
    bool running = process->state == PROCESS_RUNNING;
    uint64_t until_ns = running ? loop_clock_ns() : process->ended_ns;
    *out = (struct process_exit){.exit_code = process->exit_code,
                                 .signal = process->exit_signal,
                                 .timed_out = process->timed_out,
                                 .duration_ms = (until_ns - process->started_ns) / 1000000};
    return running ? -1 : 0;
}

void process_on_exit(struct process *process, void (*fn)(struct process *process, void *ctx), void *ctx)
{
    process->on_exit = fn;
    process->on_exit_ctx = ctx;
}

void process_wait_start(struct process *process, struct process_wait *wait, loop_fn fn, void *ctx)
{
    wait->fn = fn;
    wait->ctx = ctx;
    if (process->state == PROCESS_DRAINED) {
        list_init(&wait->node);
        loop_defer_start(process->table->loop, &wait->defer, fn, ctx);
    } else {
        list_append(&process->waits, &wait->node);
    }
}

void process_wait_stop(struct process_wait *wait)
{
    if (wait->node.next != NULL)
        list_remove(&wait->node);
    loop_defer_stop(&wait->defer);
}
