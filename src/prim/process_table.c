/* All entries of the process table: reaping, finding, and what is kept of ended ones; server makes the one table. */
#include "prim/process_internal.h"

#include "base/log.h"
#include "prim/proc_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REAPS_PER_TURN = 256 }; /* a storm of orphans starves nobody */

static struct process *entry(struct list *node)
{
    return LIST_ENTRY(node, struct process, node);
}

static struct process *find_pid(struct process_table *table, pid_t pid)
{
    LIST_EACH (&table->living, node)
        if (entry(node)->pid == pid && entry(node)->state == PROCESS_RUNNING)
            return entry(node);
    return NULL;
}

/* --- reaping */

/* SIGCHLD tells of any number of ends, ours and those of orphans that came to us. Each is looked at first and then
 * taken by its own pid: a waitpid(-1) would take the status of an entry from its pidfd's watcher. */
static void reap_all(void *ctx)
{
    struct process_table *table = ctx;
    for (int i = 0; i < REAPS_PER_TURN; i++) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        struct process *process = find_pid(table, info.si_pid);
        if (process != NULL)
            process_reap(process);
        else if (waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG) != 0)
            return;
    }
    loop_defer_start(table->loop, &table->reap_defer, reap_all, table);
}

static void on_child_signal(void *ctx, int events)
{
    struct process_table *table = ctx;
    struct signalfd_siginfo info;
    (void)events;
    while (read(table->child_signal_fd, &info, sizeof(info)) < 0 && errno == EINTR)
        continue;
    reap_all(table);
}

void process_give_back(void *ctx)
{
    struct process *process = ctx;
    loop_defer_stop(&process->give_back);
    if (process_cgroup_return(process->cgroup, process->exit_signal == SIGKILL))
        process->cgroup = NULL;
}

/* One turn later than those who wait are told: their answers go out first. */
static void give_back_soon(void *ctx)
{
    struct process *process = ctx;
    loop_defer_start(process->table->loop, &process->give_back, process_give_back, process);
}

void process_reap(struct process *process)
{
    siginfo_t info = {0};
    if (process->state != PROCESS_RUNNING)
        return;
    if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) != 0) {
        /* Can only be ECHILD, and only if somebody else reaps in this process. */
        log_error("process", "the exit status of pid %d is lost: %s", (int)process->pid, strerror(errno));
        info = (siginfo_t){.si_code = CLD_EXITED};
        info.si_status = 255;
    } else if (info.si_pid == 0) {
        return;
    }
    process_ref(process);
    bool exited = info.si_code == CLD_EXITED;
    process->exit_code = exited ? info.si_status : 128 + info.si_status;
    process->exit_signal = exited ? 0 : info.si_status;
    process->ended_ns = loop_clock_ns();
    process->reaped_ticks = proc_ticks_now();
    process->state = PROCESS_EXITED;
    process_pids_remove(&process->table->running, process->pid);
    loop_timer_stop(&process->timeout);
    loop_fd_free(process->exit_watch);
    process->exit_watch = NULL;
    close(process->pidfd);
    process->pidfd = -1;
    if (process->cgroup != NULL)
        loop_defer_start(process->table->loop, &process->give_back, give_back_soon, process);
    process_input_close(process);
    if (process->terminal.on_dropped != NULL)
        process->terminal.on_reaped(process->terminal.ctx);
    else
        process_output_drain(process);
    process_unref(process);
}

/* --- the lists */

static size_t *living_of(struct process *process)
{
    struct process_table *table = process->table;
    return process->kind == PROCESS_TERMINAL ? &table->terminals_count : &table->living_count;
}

void process_table_add(struct process_table *table, struct process *process)
{
    list_append(&table->living, &process->node);
    ++*living_of(process);
    process_pids_insert(&table->running, process->pid);
}

/* Nobody finds it any more. Users and open pipes may still hold it: a left-over writer must not die of SIGPIPE. */
static void drop(struct process *process)
{
    list_remove(&process->node);
    list_append(&process->table->dropped, &process->node);
    process->dropped = true;
    struct process_terminal terminal = process->terminal;
    process->terminal = (struct process_terminal){0};
    if (terminal.on_dropped != NULL)
        terminal.on_dropped(terminal.ctx);
    process_unref(process);
}

static size_t memory_of(const struct process *process)
{
    const struct process_terminal *terminal = &process->terminal;
    return process->outputs[0].ring.cap + process->outputs[1].ring.cap +
           (terminal->on_dropped != NULL ? terminal->kept_bytes(terminal->ctx) : 0);
}

static struct process_ended *ended_of(struct process *process)
{
    return &process->table->ended_by[process->kind == PROCESS_SHELL];
}

/* What was counted, not what there is now: a terminal's thread gives its memory back later. */
static void uncount_output(struct process *process)
{
    process->table->ended_bytes -= process->ended_bytes;
    process->ended_bytes = 0;
}

static void release_output(struct process *process)
{
    if (!list_empty(&process->readers) || process->ended_bytes == 0)
        return;
    uncount_output(process);
    ring_deinit(&process->outputs[0].ring);
    ring_deinit(&process->outputs[1].ring);
    if (process->terminal.on_dropped != NULL)
        process->terminal.on_release(process->terminal.ctx);
}

static void drop_ended(struct process *process)
{
    release_output(process);
    uncount_output(process); /* what readers still hold */
    ended_of(process)->count--;
    list_remove(&process->kind_node);
    drop(process);
}

static void keep_ended(struct process *process)
{
    struct process_table *table = process->table;
    list_append(&table->ended, &process->node);
    list_append(&ended_of(process)->list, &process->kind_node);
    ended_of(process)->count++;
    process->ended_bytes = memory_of(process);
    table->ended_bytes += process->ended_bytes;
}

void process_table_trim(struct process_table *table)
{
    const size_t max[] = {table->limits.ended_processes_max, table->limits.ended_shells_max};
    for (int i = 0; i < 2; i++)
        while (table->ended_by[i].count > max[i])
            drop_ended(LIST_ENTRY(table->ended_by[i].list.next, struct process, kind_node));
    if (table->ended_bytes <= table->limits.ended_output_max_bytes)
        return;
    LIST_EACH (&table->ended, node) {
        release_output(entry(node));
        if (table->ended_bytes <= table->limits.ended_output_max_bytes)
            return;
    }
}

void process_table_ended(struct process_table *table, struct process *process)
{
    process_ref(process);
    list_remove(&process->node);
    --*living_of(process);
    if (process->on_exit != NULL)
        process->on_exit(process, process->on_exit_ctx);
    LIST_EACH (&process->waits, node) {
        struct process_wait *wait = LIST_ENTRY(node, struct process_wait, node);
        list_remove(node);
        loop_defer_start(table->loop, &wait->defer, wait->fn, wait->ctx);
    }
    bool kept = process->kind == PROCESS_SHELL || process->kind == PROCESS_PROCESS || process->kind == PROCESS_TERMINAL;
    if (kept) {
        keep_ended(process);
        process_table_trim(table);
    } else {
        drop(process);
    }
    process_unref(process);
}

struct process *process_find(struct process_table *table, const char *id)
{
    struct list *lists[] = {&table->living, &table->ended};
    for (size_t i = 0; i < 2; i++) {
        LIST_EACH (lists[i], node)
            if (strcmp(entry(node)->id, id) == 0)
                return entry(node);
    }
    char *end;
    errno = 0;
    long pid = strtol(id, &end, 10);
    bool decimal = id[0] >= '1' && id[0] <= '9' && *end == '\0' && errno == 0 && pid <= INT32_MAX;
    return decimal ? find_pid(table, (pid_t)pid) : NULL;
}

void process_table_each(struct process_table *table, void (*fn)(struct process *process, void *ctx), void *ctx)
{
    LIST_EACH (&table->living, living)
        fn(entry(living), ctx);
    LIST_EACH (&table->ended, ended)
        fn(entry(ended), ctx);
}

size_t process_table_living(const struct process_table *table)
{
    return table->living_count;
}

size_t process_table_living_terminals(const struct process_table *table)
{
    return table->terminals_count;
}

bool process_table_has_cgroups(const struct process_table *table)
{
    return table->cgroups != NULL;
}

const struct env_block *process_table_env(const struct process_table *table)
{
    return &table->env.effective;
}

const struct env_block *process_table_own_env(const struct process_table *table)
{
    return &table->env.own;
}

struct env_overrides *process_table_overrides(struct process_table *table)
{
    return &table->env;
}

/* --- the table itself */

/* By descriptor: a handler would interrupt us at each end, only to write that down for the loop. */
static int watch_children(struct process_table *table, struct err *err)
{
    sigset_t child;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot become subreaper");
    signal(SIGCHLD, SIG_DFL); /* whoever started us may ignore it, and then no exit status is kept */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, NULL); /* threads that begin later have it blocked, too */
    table->child_signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (table->child_signal_fd >= 0)
        table->child_signal = loop_fd_new(table->loop, table->child_signal_fd, LOOP_READABLE, on_child_signal, table);
    return table->child_signal != NULL ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "cannot watch SIGCHLD");
}

struct process_table *process_table_new(struct loop *loop, const struct process_limits *limits, char *const *envp,
                                        struct err *err)
{
    struct process_table *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for the process table");
        return NULL;
    }
    table->loop = loop;
    table->limits = *limits;
    list_init(&table->living);
    list_init(&table->ended);
    list_init(&table->ended_by[0].list);
    list_init(&table->ended_by[1].list);
    list_init(&table->dropped);
    list_init(&table->stopping);
    list_init(&table->signallings);
    list_init(&table->due);
    env_overrides_init(&table->env);
    table->child_signal_fd = -1;
    table->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int failed = 0;
    if (table->null_fd < 0)
        failed = err_set_errno(err, ERR_INTERNAL, errno, "cannot open /dev/null");
    else if (env_overrides_inherit(&table->env, envp) != 0)
        failed = err_set(err, ERR_INTERNAL, "out of memory for the environment");
    else
        failed = watch_children(table, err);
    if (failed != 0) {
        process_table_free(table);
        return NULL;
    }
    table->cgroups = process_cgroups_new();
    return table;
}

void process_table_free(struct process_table *table)
{
    if (table == NULL)
        return;
    process_signal_forget_all(table);
    process_stop_all_now(table);
    struct list *lists[] = {&table->living, &table->ended, &table->dropped};
    for (size_t i = 0; i < 3; i++) {
        LIST_EACH (lists[i], node) {
            struct process *process = process_ref(entry(node));
            process_on_exit(process, NULL, NULL);
            process_output_close(&process->outputs[0]);
            process_output_close(&process->outputs[1]);
            loop_defer_stop(&process->give_back);
            if (process->cgroup != NULL)
                process_cgroup_abandon(process->cgroup);
            process->cgroup = NULL;
            list_remove(&process->kind_node);
            if (!process->dropped)
                drop(process);
            process_detach(process); /* one that somebody still holds outlives the table */
            process_unref(process);
        }
    }
    process_cgroups_free(table->cgroups);
    loop_defer_stop(&table->reap_defer);
    loop_fd_free(table->child_signal);
    if (table->child_signal_fd >= 0)
        close(table->child_signal_fd);
    if (table->null_fd >= 0)
        close(table->null_fd);
    env_overrides_deinit(&table->env);
    process_pids_deinit(&table->running);
    free(table);
}
