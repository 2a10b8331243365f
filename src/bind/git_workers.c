/* Git's processes and the remains of failed clones; see the header. Made by server, used by bind_git. */
#include "bind/git_workers.h"

#include "bind/host.h"
#include "prim/worker_pool.h"

#include <signal.h>
#include <stdlib.h>

enum {
    LOCAL_WORKERS_MAX = 2,
    GRACE_MS = 2000,
    LEAVE_MARGIN_MS = 100,
};

static const size_t MEMORY_MAX_BYTES = (size_t)2 * 1024 * 1024 * 1024;

struct git_workers {
    struct host *host;
    struct worker_pool *pool; /* NULL until the first call */
    struct list waiting;      /* struct leftover, whose process has not ended yet */
    struct list leaving;      /* struct leaving */
};

struct leaving {
    struct list node;
    struct worker *worker;
    struct loop_timer timer;
};

struct leftover {
    struct list node;
    const struct confine *confine;
    struct pool *threads;
    struct clone_target target;
    struct process *process;
    struct process_wait wait;
    bool removed;
};

struct git_workers *git_workers_new(struct host *host)
{
    struct git_workers *git = calloc(1, sizeof(*git));
    if (!git)
        return NULL;
    git->host = host;
    list_init(&git->waiting);
    list_init(&git->leaving);
    return git;
}

/* HELPER git BASE_DIR GUARD…; NULL out of memory. The words follow the list in the same memory. */
static char **helper_argv(const struct host *host)
{
    const struct confine_guard *guards;
    size_t count = confine_guards(host->confine, &guards), places = 3 + count + 1;
    char **argv = calloc(1, places * sizeof(*argv) + count * CONFINE_GUARD_WORD_MAX);
    if (!argv)
        return NULL;
    argv[0] = (char *)host->helper_path;
    argv[1] = "git";
    argv[2] = (char *)confine_base_dir(host->confine);
    for (size_t i = 0; i < count; i++) {
        argv[3 + i] = (char *)(argv + places) + i * CONFINE_GUARD_WORD_MAX;
        confine_guard_word(&guards[i], argv[3 + i]);
    }
    return argv;
}

static struct worker_pool *make_pool(const struct host *host)
{
    char **argv = helper_argv(host);
    if (!argv)
        return NULL;
    struct worker_spec spec = {
        .name = "git",
        .kind = PROCESS_GIT,
        .argv = argv,
        .calls_at_once = 1,
        .memory_max_bytes = MEMORY_MAX_BYTES,
        .grace_ms = GRACE_MS,
    };
    struct worker_pool *pool = worker_pool_new(host->workers, &spec, LOCAL_WORKERS_MAX);
    free(argv);
    return pool;
}

struct worker *git_workers_pick(struct git_workers *git, bool single)
{
    if (!git->pool)
        git->pool = make_pool(git->host);
    if (!git->pool)
        return NULL;
    return single ? worker_pool_single(git->pool) : worker_pool_pick(git->pool);
}

static void on_left(void *ctx)
{
    struct leaving *leaving = ctx;
    loop_timer_stop(&leaving->timer);
    list_remove(&leaving->node);
    worker_retire(leaving->worker);
    free(leaving);
}

void git_workers_let_go(struct git_workers *git, struct worker *worker)
{
    struct leaving *leaving = calloc(1, sizeof(*leaving));
    if (!leaving) {
        worker_retire(worker);
        return;
    }
    leaving->worker = worker;
    list_append(&git->leaving, &leaving->node);
    loop_timer_start(git->host->loop, &leaving->timer, GRACE_MS + LEAVE_MARGIN_MS, on_left, leaving);
}

static void remove_it(void *ctx)
{
    struct leftover *left = ctx;
    clone_target_undo(left->confine, &left->target);
    left->removed = true;
}

static void on_removed(void *ctx)
{
    struct leftover *left = ctx;
    if (!left->removed) /* the server stops, and no thread came to it */
        remove_it(left);
    free(left);
}

static void start_removal(struct leftover *left)
{
    if (pool_run(left->threads, remove_it, on_removed, left) != 0)
        on_removed(left);
}

static void stop_waiting(struct leftover *left)
{
    process_wait_stop(&left->wait);
    process_unref(left->process);
    list_remove(&left->node);
}

static void on_ended(void *ctx)
{
    struct leftover *left = ctx;
    stop_waiting(left);
    start_removal(left);
}

void git_workers_undo(struct git_workers *git, const struct clone_target *target, struct process *process)
{
    struct leftover *left = calloc(1, sizeof(*left));
    if (!left) { /* better late for the others than a tree that stays */
        struct clone_target copy = *target;
        clone_target_undo(git->host->confine, &copy);
        return;
    }
    left->confine = git->host->confine;
    left->threads = git->host->long_jobs;
    left->target = *target;
    if (!process || process_state(process) == PROCESS_DRAINED) {
        start_removal(left);
        return;
    }
    left->process = process_ref(process);
    list_append(&git->waiting, &left->node);
    process_wait_start(process, &left->wait, on_ended, left);
}

void git_workers_free(struct git_workers *git)
{
    if (!git)
        return;
    while (!list_empty(&git->waiting)) {
        struct leftover *left = LIST_ENTRY(git->waiting.next, struct leftover, node);
        struct err ignored;
        if (process_state(left->process) == PROCESS_RUNNING && process_signal(left->process, SIGKILL, true, &ignored))
            ignored.code = ERR_NONE; /* it has just ended */
        stop_waiting(left);
        on_removed(left);
    }
    while (!list_empty(&git->leaving))
        on_left(LIST_ENTRY(git->leaving.next, struct leaving, node));
    if (git->pool)
        worker_pool_free(git->pool);
    free(git);
}
