/* Signals to programs and their trees, time-outs, and the end of all; part of the process table.
 *
 * A look for trees reads all of /proc, so stops are gathered: those asked for in one turn of the loop share one look.
 */
#include "prim/process_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum {
    KILL_AFTER_MS = 2000,
    KILL_AGAIN_MS = 50, /* what was forked while it was being killed */
    KILL_TRIES_MAX = 100,
    END_LOOK_MS = 50,
    REAP_MS = 1000,
    END_GIVE_UP_MS = 3000, /* after the kill: what does not die now sleeps in the kernel */
};

struct process_tree process_tree_of(const struct process *process)
{
    return (struct process_tree){.leader = process->pid,
                                 .reaped_ticks = process->reaped_ticks,
                                 .id = process->id,
                                 .cgroups = process->contained ? process->table->cgroups : NULL,
                                 .cgroup = process->cgroup,
                                 .started = &process->table->running};
}

static struct process *stopping(struct list *node)
{
    return LIST_ENTRY(node, struct process, stop_node);
}

int process_signal(struct process *process, int signal, bool tree, struct err *err)
{
    if (tree) {
        struct process_tree of = process_tree_of(process);
        if (process_tree_signal(&of, 1, signal) > 0)
            return 0;
    } else if (process->state == PROCESS_RUNNING) {
        if (pidfd_send_signal(process->pidfd, signal, NULL, 0) == 0)
            return 0;
        if (errno != ESRCH) {
            return err_set_errno(err, errno == EPERM ? ERR_PERMISSION_DENIED : ERR_INTERNAL, errno,
                                 "cannot signal the process");
        }
    }
    return err_set(err, ERR_ALREADY_EXITED, "%s has ended already", process->id);
}

static void run_stops(void *ctx);

static void forget(struct process *process)
{
    list_remove(&process->stop_node);
    process->asked = false;
    process->kill_at_ms = 0;
    process->kill_tries = 0;
    process_unref(process);
}

/* One signal to the trees of all that are due; answers how many processes got it. */
static size_t signal_due(struct process_table *table, int signal, uint64_t now_ms)
{
    size_t max = 0, count = 0;
    LIST_EACH (&table->stopping, node)
        max++;
    struct process_tree *trees = malloc(max * sizeof(*trees));
    if (trees == NULL)
        return 0;
    LIST_EACH (&table->stopping, node) {
        struct process *process = stopping(node);
        bool due = signal == SIGKILL ? process->asked && process->kill_at_ms <= now_ms
                                     : !process->asked && process->stop_signal == signal;
        if (due)
            trees[count++] = process_tree_of(process);
    }
    size_t signalled = process_tree_signal(trees, count, signal);
    free(trees);
    return signalled;
}

static void run_stops(void *ctx)
{
    struct process_table *table = ctx;
    uint64_t now_ms = loop_now_ms(table->loop);
    uint64_t next_ms = UINT64_MAX;
    size_t killed = signal_due(table, SIGKILL, now_ms);
    signal_due(table, SIGTERM, now_ms);
    signal_due(table, SIGHUP, now_ms);
    LIST_EACH (&table->stopping, node) {
        struct process *process = stopping(node);
        if (!process->asked) {
            process->asked = true;
            if (process->kill_at_ms == 0)
                process->kill_at_ms = now_ms + KILL_AFTER_MS;
        } else if (process->kill_at_ms <= now_ms) {
            process->kill_at_ms = now_ms + KILL_AGAIN_MS;
            if (killed == 0 || ++process->kill_tries > KILL_TRIES_MAX) {
                forget(process);
                continue;
            }
        }
        next_ms = process->kill_at_ms < next_ms ? process->kill_at_ms : next_ms;
    }
    if (next_ms != UINT64_MAX)
        loop_timer_start(table->loop, &table->stop_timer, next_ms > now_ms ? next_ms - now_ms : 0, run_stops, table);
}

/* One that is being stopped already may be asked in another way, too; its time stays what it was. */
static void ask(struct process *process, int signal)
{
    struct process_table *table = process->table;
    if (list_empty(&process->stop_node)) {
        process_ref(process);
        list_append(&table->stopping, &process->stop_node);
    } else if (process->stop_signal == signal) {
        return;
    }
    process->stop_signal = signal;
    process->asked = false;
    loop_defer_start(table->loop, &table->stop_defer, run_stops, table);
}

void process_stop(struct process *process)
{
    ask(process, SIGTERM);
}

void process_hang_up(struct process *process)
{
    ask(process, SIGHUP);
}

void process_on_timeout(void *ctx)
{
    struct process *process = ctx;
    process->timed_out = true;
    process_stop(process);
}

/* --- the end of all */

enum which { TERMINALS = 1, OTHERS = 2, ALL = TERMINALS | OTHERS };

static size_t of_all(struct process_table *table, enum which which,
                     size_t (*fn)(const struct process_tree *, size_t, int), int signal)
{
    struct list *lists[] = {&table->living, &table->ended};
    size_t max = 0, count = 0;
    for (size_t i = 0; i < 2; i++)
        LIST_EACH (lists[i], node)
            max++;
    struct process_tree *trees = max > 0 ? malloc(max * sizeof(*trees)) : NULL;
    if (trees == NULL)
        return 0;
    for (size_t i = 0; i < 2; i++)
        LIST_EACH (lists[i], node) {
            const struct process *process = LIST_ENTRY(node, struct process, node);
            if ((process->kind == PROCESS_TERMINAL ? TERMINALS : OTHERS) & which)
                trees[count++] = process_tree_of(process);
        }
    size_t answer = fn(trees, count, signal);
    free(trees);
    return answer;
}

static size_t count_living(const struct process_tree *trees, size_t count, int signal)
{
    (void)signal;
    return process_tree_living(trees, count);
}

static size_t living(const struct process_table *table)
{
    return table->living_count + table->terminals_count;
}

static void on_end_look(void *ctx)
{
    struct process_table *table = ctx;
    uint64_t now_ms = loop_now_ms(table->loop);
    bool over = living(table) == 0 && of_all(table, ALL, count_living, 0) == 0;
    if (over || now_ms >= table->end_kill_at_ms + END_GIVE_UP_MS) {
        table->end_done(table->end_ctx);
        return;
    }
    if (now_ms >= table->end_kill_at_ms) {
        of_all(table, ALL, process_tree_signal, SIGKILL);
    } else if (table->end_term_at_ms != 0 && now_ms >= table->end_term_at_ms) {
        table->end_term_at_ms = 0;
        of_all(table, TERMINALS, process_tree_signal, SIGTERM);
        of_all(table, TERMINALS, process_tree_signal, SIGHUP);
    }
    loop_timer_start(table->loop, &table->end_timer, END_LOOK_MS, on_end_look, table);
}

/* What is on a terminal is hung up on, as interactive shells ignore SIGTERM. Who ignores that gets SIGTERM, too, but
 * later: of two signals at once GNU readline forgets the first, and vim does not save its swap file. Then SIGHUP comes
 * once more, as readline overlooks one that comes just before it begins to wait for a key. */
void process_table_end_all(struct process_table *table, unsigned grace_ms, loop_fn done, void *ctx)
{
    table->ending = true;
    table->end_done = done;
    table->end_ctx = ctx;
    table->end_kill_at_ms = loop_now_ms(table->loop) + grace_ms;
    table->end_term_at_ms = loop_now_ms(table->loop) + grace_ms / 4;
    size_t asked =
        of_all(table, TERMINALS, process_tree_signal, SIGHUP) + of_all(table, OTHERS, process_tree_signal, SIGTERM);
    bool any = asked > 0 || living(table) > 0;
    loop_timer_start(table->loop, &table->end_timer, any ? END_LOOK_MS : 0, on_end_look, table);
}

void process_stop_all_now(struct process_table *table)
{
    LIST_EACH (&table->stopping, node) {
        struct process_tree tree = process_tree_of(stopping(node));
        process_tree_signal(&tree, 1, SIGKILL);
        forget(stopping(node));
    }
    LIST_EACH (&table->living, node) {
        struct process *process = LIST_ENTRY(node, struct process, node);
        struct process_tree tree = process_tree_of(process);
        struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
        siginfo_t info;
        process_tree_signal(&tree, 1, SIGKILL);
        if (process->state == PROCESS_RUNNING && poll(&ended, 1, REAP_MS) > 0)
            waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG);
    }
    loop_defer_stop(&table->stop_defer);
    loop_timer_stop(&table->stop_timer);
    loop_timer_stop(&table->end_timer);
}
