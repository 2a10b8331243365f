/* Signals that clients ask for, and what is promised with them; part of the process table. */
#include "prim/process_signal.h"

#include "prim/process_internal.h"
#include "prim/stranger.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_FIRST_MS = 10,
    LOOK_LAST_MS = 200,     /* between looks for what a process left behind: they grow from the first to this */
    KILL_GIVE_UP_MS = 5000, /* what does not die by then sleeps in the kernel */
};

struct signalling {
    struct list node;     /* in table->signallings */
    struct list due_node; /* in table->due */
    struct process_table *table;
    struct process *process;  /* a reference; NULL: it was not started here, */
    struct stranger stranger; /* and is this */
    struct process_tree_known known;
    struct signal_request request;
    size_t signalled;
    bool escalated, ended;
    bool lives, kills; /* at the last look: something of it did, and it was time */
    uint64_t ended_ns; /* of a stranger */

    bool owned;    /* the client is there */
    bool promised; /* SIGKILL may still be needed */
    uint64_t escalate_at_ms, give_up_at_ms;
    unsigned look_ms;
    struct loop_timer timer;

    struct process_wait wait; /* for the end of the process, */
    struct loop_fd *watch;    /* or of the stranger */

    loop_fn fn; /* NULL: nobody waits */
    void *ctx;
    bool wait_over;
    struct loop_timer wait_timer;
};

static void run_due(void *ctx);

/* --- who is meant */

static int refuse(struct err *err)
{
    err_set(err, ERR_SIGNAL_NOT_ALLOWED,
            "pid 1, the server, its ancestors, their sessions and trees that hold one of "
            "them get no signals from here");
    return err_field(err, "id");
}

/* "0", "-1" and the like mean many processes to kill(2). */
static bool means_many(const char *id)
{
    const char *digits = id + (id[0] == '-');
    return strspn(digits, "0123456789") == strlen(digits) && digits[0] != '\0' &&
           (id[0] == '-' || strspn(digits, "0") == strlen(digits));
}

static pid_t as_pid(const char *id)
{
    char *end;
    errno = 0;
    long pid = strtol(id, &end, 10);
    return id[0] >= '1' && id[0] <= '9' && *end == '\0' && errno == 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* The newest ended entry of that pid. */
static struct process *find_ended(struct process_table *table, pid_t pid)
{
    struct process *found = NULL;
    LIST_EACH (&table->ended, node)
        if (LIST_ENTRY(node, struct process, node)->pid == pid)
            found = LIST_ENTRY(node, struct process, node);
    return found;
}

static int find(struct signalling *signalling, const char *id, struct err *err)
{
    pid_t pid = as_pid(id);
    if (means_many(id) || pid == 1 || pid == getpid())
        return refuse(err);
    struct process *process = process_find(signalling->table, id);
    if (process == NULL && pid > 0)
        process = find_ended(signalling->table, pid);
    if (process != NULL) {
        signalling->process = process_ref(process);
        process_reap(process);
        signalling->ended = process->state != PROCESS_RUNNING;
        return 0;
    }
    if (stranger_open(&signalling->stranger, id, err) != 0)
        return -1;
    if (process_tree_protects(pid, signalling->stranger.stat.session))
        return refuse(err);
    signalling->ended = proc_is_zombie(&signalling->stranger.stat);
    return 0;
}

static struct process_tree tree_of(struct signalling *signalling)
{
    if (signalling->process != NULL)
        return process_tree_of(signalling->process);
    return (struct process_tree){.leader = signalling->stranger.stat.pid,
                                 .start_ticks = signalling->stranger.stat.start_ticks,
                                 .known = &signalling->known};
}

/* --- sending */

static int pidfd_of(const struct signalling *signalling)
{
    return signalling->process != NULL ? signalling->process->pidfd : signalling->stranger.pidfd;
}

/* 0, or an errno. */
static int send_to_itself(struct signalling *signalling, int signal)
{
    if (signalling->ended || pidfd_of(signalling) < 0)
        return ESRCH;
    return pidfd_send_signal(pidfd_of(signalling), signal, NULL, 0) == 0 ? 0 : errno;
}

static int send_first(struct signalling *signalling, struct err *err)
{
    const struct signal_request *request = &signalling->request;
    struct process_tree tree = tree_of(signalling);
    enum process_tree_outcome outcome =
        process_tree_ask(&tree, 1, request->tree ? request->signal : 0, &signalling->signalled);
    if (outcome == PROCESS_TREE_REFUSED)
        return refuse(err);
    int failed = outcome == PROCESS_TREE_DENIED ? EPERM : signalling->signalled == 0 ? ESRCH : 0;
    /* Also where a look at /proc failed: the process itself is always within reach. */
    if (!request->tree || failed == ESRCH) {
        failed = send_to_itself(signalling, request->signal);
        signalling->signalled = failed == 0;
    }
    if (failed == EPERM)
        return err_set(err, ERR_PERMISSION_DENIED, "the kernel does not let the server signal this process");
    if (failed != 0) {
        err_set(err, ERR_ALREADY_EXITED, "it has ended already%s",
                request->tree ? ", and nothing that it started lives" : "; scope tree reaches what it left behind");
        return err_field(err, "id");
    }
    return 0;
}

static size_t kill_all(struct signalling *signalling)
{
    size_t killed = 0;
    struct process_tree tree = tree_of(signalling);
    if (signalling->request.tree)
        process_tree_ask(&tree, 1, SIGKILL, &killed);
    return killed + (killed == 0 && send_to_itself(signalling, SIGKILL) == 0);
}

/* --- the course of it */

static void destroy(struct signalling *signalling)
{
    list_remove(&signalling->node);
    list_remove(&signalling->due_node);
    loop_timer_stop(&signalling->timer);
    loop_timer_stop(&signalling->wait_timer);
    process_wait_stop(&signalling->wait);
    loop_fd_free(signalling->watch);
    process_unref(signalling->process);
    stranger_close(&signalling->stranger);
    free(signalling->known.items);
    free(signalling);
}

static bool is_over(const struct signalling *signalling)
{
    return !signalling->promised && (signalling->ended || signalling->wait_over);
}

/* Something changed; may free it. */
static void go_on(struct signalling *signalling)
{
    if (!signalling->owned) {
        if (!signalling->promised)
            destroy(signalling);
        return;
    }
    if (signalling->fn == NULL || !is_over(signalling))
        return;
    loop_fn fn = signalling->fn;
    signalling->fn = NULL;
    loop_timer_stop(&signalling->wait_timer);
    fn(signalling->ctx);
}

/* --- looks and kills: those of one turn of the loop together, as each may read all of /proc */

static void look_and_kill(void *ctx)
{
    struct signalling *signalling = ctx;
    struct process_table *table = signalling->table;
    if (list_empty(&signalling->due_node))
        list_append(&table->due, &signalling->due_node);
    loop_defer_start(table->loop, &table->due_defer, run_due, table);
}

static struct signalling *due(struct list *node)
{
    return LIST_ENTRY(node, struct signalling, due_node);
}

/* Only once the process itself has ended: before, its end will tell. */
static bool looks(const struct signalling *signalling)
{
    return signalling->ended && signalling->request.tree;
}

/* Its tree is found by a walk, and it needs no list of what was seen. In a control group it is cheaper, and told more
 * exactly, alone. */
static bool kills_with_others(const struct signalling *signalling)
{
    return signalling->kills && signalling->request.tree && signalling->process != NULL &&
           !signalling->process->contained;
}

/* The trees of some of those that are due; NULL where there are none, or memory is out. */
static struct process_tree *trees_of(struct list *all, bool (*which)(const struct signalling *), size_t *out_count)
{
    size_t max = 0;
    LIST_EACH (all, node)
        max += which(due(node));
    struct process_tree *trees = max > 0 ? malloc(max * sizeof(*trees)) : NULL;
    *out_count = 0;
    LIST_EACH (all, node)
        if (trees != NULL && which(due(node)))
            trees[(*out_count)++] = tree_of(due(node));
    return trees;
}

/* Where memory is out everything lives, until the next look. */
static void look_at_all(struct list *all)
{
    size_t count, at = 0;
    struct process_tree *trees = trees_of(all, looks, &count);
    bool *lives = trees != NULL ? malloc(count * sizeof(*lives)) : NULL;
    if (lives != NULL)
        process_tree_look(trees, count, lives);
    LIST_EACH (all, node) {
        struct signalling *signalling = due(node);
        if (looks(signalling))
            signalling->lives = lives == NULL || lives[at++];
        else
            signalling->lives = !signalling->ended;
        signalling->kills = signalling->lives && loop_now_ms(signalling->table->loop) >= signalling->escalate_at_ms;
    }
    free(lives);
    free(trees);
}

/* Whether SIGKILL went to those that need not be killed alone: not where one of the trees is refused. */
static bool kill_together(struct list *all)
{
    size_t count, killed = 0;
    struct process_tree *trees = trees_of(all, kills_with_others, &count);
    if (count > 1)
        process_tree_ask(trees, count, SIGKILL, &killed);
    free(trees);
    return killed > 0;
}

static void tick_in(struct signalling *signalling, uint64_t ms)
{
    loop_timer_start(signalling->table->loop, &signalling->timer, ms, look_and_kill, signalling);
}

static void kill_it(struct signalling *signalling, bool killed_together)
{
    uint64_t now_ms = loop_now_ms(signalling->table->loop);
    if (!signalling->escalated) {
        signalling->give_up_at_ms = now_ms + KILL_GIVE_UP_MS;
        signalling->look_ms = LOOK_FIRST_MS;
    }
    signalling->escalated |= (killed_together && kills_with_others(signalling)) || kill_all(signalling) > 0;
    signalling->promised = now_ms < signalling->give_up_at_ms;
}

static void tick_again(struct signalling *signalling)
{
    uint64_t now_ms = loop_now_ms(signalling->table->loop), next_ms = signalling->look_ms;
    bool soon = signalling->escalated || signalling->ended;
    signalling->look_ms = next_ms * 2 < LOOK_LAST_MS ? (unsigned)next_ms * 2 : LOOK_LAST_MS;
    if (now_ms < signalling->escalate_at_ms && (!soon || now_ms + next_ms > signalling->escalate_at_ms))
        next_ms = signalling->escalate_at_ms - now_ms;
    tick_in(signalling, next_ms);
}

/* Kills those for whom it is time, where a look tells that it is needed at all. */
static void run_due(void *ctx)
{
    struct process_table *table = ctx;
    struct list all;
    list_init(&all);
    LIST_EACH (&table->due, node) {
        list_remove(node);
        list_append(&all, node);
    }
    look_at_all(&all);
    bool killed_together = kill_together(&all);
    while (!list_empty(&all)) { /* whoever is told may end others */
        struct signalling *signalling = due(all.next);
        list_remove(&signalling->due_node);
        if (!signalling->lives)
            signalling->promised = false;
        else if (signalling->kills)
            kill_it(signalling, killed_together);
        if (signalling->promised)
            tick_again(signalling);
        go_on(signalling);
    }
}

static void on_end(struct signalling *signalling)
{
    signalling->ended = true;
    signalling->ended_ns = loop_clock_ns();
    if (signalling->promised) {
        signalling->look_ms = LOOK_FIRST_MS;
        look_and_kill(signalling);
    } else {
        go_on(signalling);
    }
}

static void on_process_end(void *ctx)
{
    on_end(ctx);
}

static void on_stranger_end(void *ctx, int events)
{
    struct signalling *signalling = ctx;
    (void)events;
    loop_fd_free(signalling->watch);
    signalling->watch = NULL;
    on_end(signalling);
}

/* An entry is told when all of its output is there, as everywhere. */
static int watch_end(struct signalling *signalling, struct err *err)
{
    if (signalling->process != NULL) {
        if (signalling->process->state == PROCESS_DRAINED)
            return 0;
        signalling->ended = false;
        process_wait_start(signalling->process, &signalling->wait, on_process_end, signalling);
        return 0;
    }
    signalling->watch =
        loop_fd_new(signalling->table->loop, signalling->stranger.pidfd, LOOP_READABLE, on_stranger_end, signalling);
    return signalling->watch != NULL ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "cannot watch a process");
}

struct signalling *process_signal_ask(struct process_table *table, const char *id, const struct signal_request *request,
                                      struct err *err)
{
    struct signalling *signalling = calloc(1, sizeof(*signalling));
    if (signalling == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a signal");
        return NULL;
    }
    list_append(&table->signallings, &signalling->node);
    list_init(&signalling->due_node);
    signalling->table = table;
    signalling->stranger.pidfd = -1;
    signalling->request = *request;
    signalling->owned = true;
    if (find(signalling, id, err) != 0 || send_first(signalling, err) != 0 || watch_end(signalling, err) != 0) {
        destroy(signalling);
        return NULL;
    }
    if (request->escalates) {
        signalling->promised = true;
        signalling->escalate_at_ms = loop_now_ms(table->loop) + request->escalate_ms;
        signalling->look_ms = LOOK_FIRST_MS;
        tick_in(signalling, signalling->ended ? 0 : request->escalate_ms);
    }
    return signalling;
}

void signalling_free(struct signalling *signalling)
{
    signalling->owned = false;
    signalling->fn = NULL;
    go_on(signalling);
}

static void on_wait_over(void *ctx)
{
    struct signalling *signalling = ctx;
    signalling->wait_over = true;
    go_on(signalling);
}

bool signalling_wait(struct signalling *signalling, unsigned wait_ms, loop_fn fn, void *ctx)
{
    signalling->wait_over = wait_ms == 0;
    if (is_over(signalling))
        return false;
    signalling->fn = fn;
    signalling->ctx = ctx;
    if (wait_ms > 0)
        loop_timer_start(signalling->table->loop, &signalling->wait_timer, wait_ms, on_wait_over, signalling);
    return true;
}

void process_signal_forget_all(struct process_table *table)
{
    LIST_EACH (&table->signallings, node)
        destroy(LIST_ENTRY(node, struct signalling, node));
    loop_defer_stop(&table->due_defer);
}

/* --- what is told */

/* Ticks since boot as milliseconds of the clocks that answers show: since 1970, and of the time that it lives. */
static void tell_stranger(const struct signalling *signalling, struct signalling_report *out)
{
    const struct proc_stat *stat = &signalling->stranger.stat;
    uint64_t age_ms = (proc_ticks_now() - stat->start_ticks) * 1000 / proc_hertz();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 - age_ms;
    process_format_time(started_ms, out->started_at);
    uint64_t since_end_ms = signalling->ended ? (loop_clock_ns() - signalling->ended_ns) / 1000000 : 0;
    out->duration_ms = age_ms > since_end_ms ? age_ms - since_end_ms : 0;
    out->pid = stat->pid;
    out->ended = signalling->ended;
    snprintf(out->id, sizeof(out->id), "%d", (int)stat->pid);
}

void signalling_tell(const struct signalling *signalling, struct signalling_report *out)
{
    *out = (struct signalling_report){.signalled = signalling->signalled, .escalated = signalling->escalated};
    const struct process *process = signalling->process;
    if (process == NULL) {
        tell_stranger(signalling, out);
        return;
    }
    struct process_exit exit;
    out->ended = out->has_exit = process_exit(process, &exit) == 0;
    out->pid = process->pid;
    out->exit_code = exit.exit_code;
    out->exit_signal = exit.signal;
    out->timed_out = exit.timed_out;
    out->duration_ms = exit.duration_ms;
    process_started_at(process, out->started_at);
    snprintf(out->id, sizeof(out->id), "%s", process->id);
}
