/* All entries of the process table: reaping, finding, and what is kept of ended ones; server makes the one table. */
#include "prim/process_internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

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

static void on_child_signal(uv_signal_t *handle, int signal)
{
    (void)signal;
    reap_all(handle->data);
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
    process->reaped_ticks = process_tree_now();
    process->state = PROCESS_EXITED;
    loop_timer_stop(&process->timeout);
    loop_fd_free(process->exit_watch);
    process->exit_watch = NULL;
    close(process->pidfd);
    process->pidfd = -1;
    process_input_close(process);
    process_output_drain(process);
    process_unref(process);
}

/* --- the lists */

void process_table_add(struct process_table *table, struct process *process)
{
    list_append(&table->living, &process->node);
    table->living_count++;
}

/* Nobody finds it any more. Users and open pipes may still hold it: a left-over writer must not die of SIGPIPE. */
static void drop(struct process *process)
{
    list_remove(&process->node);
    list_append(&process->table->dropped, &process->node);
    process->dropped = true;
    process_unref(process);
}

static size_t memory_of(const struct process *process)
{
    return process->outputs[0].ring.cap + process->outputs[1].ring.cap;
}

void process_table_trim(struct process_table *table)
{
    size_t shells = 0, others = 0, bytes = 0;
    LIST_EACH (&table->ended, node) {
        *(entry(node)->kind == PROCESS_SHELL ? &shells : &others) += 1;
        bytes += memory_of(entry(node));
    }
    LIST_EACH (&table->ended, node) {
        struct process *process = entry(node);
        bool shell = process->kind == PROCESS_SHELL;
        bool over = shell ? shells > table->limits.ended_shells_max : others > table->limits.ended_processes_max;
        if ((over || bytes > table->limits.ended_output_max_bytes) && list_empty(&process->readers)) {
            bytes -= memory_of(process);
            ring_deinit(&process->outputs[0].ring);
            ring_deinit(&process->outputs[1].ring);
        }
        if (over) {
            *(shell ? &shells : &others) -= 1;
            drop(process);
        }
    }
}

void process_table_ended(struct process_table *table, struct process *process)
{
    process_ref(process);
    list_remove(&process->node);
    table->living_count--;
    if (process->on_exit != NULL)
        process->on_exit(process, process->on_exit_ctx);
    LIST_EACH (&process->waits, node) {
        struct process_wait *wait = LIST_ENTRY(node, struct process_wait, node);
        list_remove(node);
        loop_defer_start(table->loop, &wait->defer, wait->fn, wait->ctx);
    }
    bool kept = process->kind == PROCESS_SHELL || process->kind == PROCESS_PROCESS || process->kind == PROCESS_TERMINAL;
    if (kept) {
        list_append(&table->ended, &process->node);
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

size_t process_table_living(const struct process_table *table)
{
    return table->living_count;
}

const struct env_block *process_table_env(const struct process_table *table)
{
    return &table->env;
}

/* --- the table itself */

static void on_signal_closed(uv_handle_t *handle)
{
    free(handle);
}

static int watch_children(struct process_table *table, struct err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot become subreaper");
    table->child_signal = malloc(sizeof(*table->child_signal));
    if (table->child_signal == NULL || uv_signal_init(loop_uv(table->loop), table->child_signal) != 0) {
        free(table->child_signal);
        table->child_signal = NULL;
        return err_set(err, ERR_INTERNAL, "cannot watch SIGCHLD");
    }
    table->child_signal->data = table;
    if (uv_signal_start(table->child_signal, on_child_signal, SIGCHLD) != 0)
        return err_set(err, ERR_INTERNAL, "cannot watch SIGCHLD");
    return 0;
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
    list_init(&table->dropped);
    list_init(&table->stopping);
    env_block_init(&table->env);
    table->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int failed = 0;
    if (table->null_fd < 0)
        failed = err_set_errno(err, ERR_INTERNAL, errno, "cannot open /dev/null");
    else if (env_block_inherit(&table->env, envp) != 0)
        failed = err_set(err, ERR_INTERNAL, "out of memory for the environment");
    else
        failed = watch_children(table, err);
    if (failed != 0) {
        process_table_free(table);
        return NULL;
    }
    env_block_unset(&table->env, PROCESS_TREE_MARKER);
    return table;
}

void process_table_free(struct process_table *table)
{
    if (table == NULL)
        return;
    process_stop_all_now(table);
    struct list *lists[] = {&table->living, &table->ended, &table->dropped};
    for (size_t i = 0; i < 3; i++) {
        LIST_EACH (lists[i], node) {
            struct process *process = process_ref(entry(node));
            process_on_exit(process, NULL, NULL);
            process_output_close(&process->outputs[0]);
            process_output_close(&process->outputs[1]);
            if (!process->dropped)
                drop(process);
            process_unref(process);
        }
    }
    loop_defer_stop(&table->reap_defer);
    if (table->child_signal != NULL)
        uv_close((uv_handle_t *)table->child_signal, on_signal_closed);
    if (table->null_fd >= 0)
        close(table->null_fd);
    env_block_deinit(&table->env);
    free(table);
}
