/* A worker's process, its ways to end, and what is cleared away afterwards; see the header. Called by prim/worker. */
#include "prim/worker_run.h"

#include "base/log.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum {
    GIVE_UP_MS = 5000, /* after SIGKILL: what does not end then sleeps in the kernel, and nobody waits for it */
    END_NOW_MS = 1000,
};

/* --- what it leaves behind; on threads, as trees may be large */

struct removal {
    struct workers *workers;
    struct worker_dir dir;
};

static void remove_dir(void *ctx)
{
    struct removal *removal = ctx;
    worker_dir_remove(&removal->dir, removal->workers->confine);
}

static void on_removed(void *ctx)
{
    struct removal *removal = ctx;
    removal->workers->removals--;
    free(removal);
}

static void remove_soon(struct worker_run *run)
{
    struct removal *removal = malloc(sizeof(*removal));
    if (removal != NULL) {
        *removal = (struct removal){.workers = run->workers, .dir = run->dir};
        if (loop_job(run->workers->loop, remove_dir, on_removed, removal) == 0) {
            run->workers->removals++;
            return;
        }
        free(removal);
    }
    worker_dir_remove(&run->dir, run->workers->confine);
}

struct sweep {
    struct workers *workers;
    char parent[PATH_MAX];
};

static void sweep_dirs(void *ctx)
{
    const struct sweep *sweep = ctx;
    if (sweep->parent[0] == '/')
        worker_dir_sweep(sweep->parent, sweep->workers->confine);
    worker_dir_sweep("/tmp", sweep->workers->confine);
}

static void on_swept(void *ctx)
{
    struct sweep *sweep = ctx;
    sweep->workers->removals--;
    free(sweep);
}

static const char *private_parent(const struct workers *workers)
{
    return env_block_get(process_table_own_env(workers->processes), "TMPDIR");
}

void worker_run_sweep(struct workers *workers)
{
    struct sweep *sweep = malloc(sizeof(*sweep));
    const char *parent = private_parent(workers);
    if (sweep == NULL)
        return;
    sweep->workers = workers;
    snprintf(sweep->parent, sizeof(sweep->parent), "%s", parent != NULL ? parent : "");
    if (loop_job(workers->loop, sweep_dirs, on_swept, sweep) == 0)
        workers->removals++;
    else
        free(sweep); /* the next start will do it */
}

/* --- the end */

static void release(struct worker_run *run)
{
    list_remove(&run->node);
    loop_timer_stop(&run->timer);
    process_wait_stop(&run->wait);
    worker_channel_deinit(&run->channel);
    process_unref(run->process);
    free(run);
}

static void tell_gone(struct worker_run *run)
{
    void *ctx = run->ctx;
    run->ctx = NULL;
    if (ctx != NULL)
        run->on_gone(ctx);
}

static void on_drained(void *ctx)
{
    struct worker_run *run = ctx;
    run->ended = true;
    worker_channel_finish(&run->channel);
    worker_channel_close(&run->channel);
    tell_gone(run);
    process_stop(run->process); /* what it left behind has no directories any more */
    remove_soon(run);
    release(run);
}

static void on_given_up(void *ctx)
{
    struct worker_run *run = ctx;
    log_error("worker", "process %d does not end, although it was killed", (int)process_pid(run->process));
    worker_channel_close(&run->channel);
    tell_gone(run);
}

static void kill_tree(struct worker_run *run)
{
    struct err err;
    if (process_signal(run->process, SIGKILL, true, &err) != 0 && err.code != ERR_ALREADY_EXITED)
        log_warn("worker", "cannot kill process %d: %s", (int)process_pid(run->process), err.text);
}

void worker_run_kill(struct worker_run *run, const char *why)
{
    if (run->dying || run->ended)
        return;
    run->dying = true;
    run->why = why;
    kill_tree(run);
    loop_timer_start(run->workers->loop, &run->timer, GIVE_UP_MS, on_given_up, run);
}

static void on_grace_over(void *ctx)
{
    worker_run_kill(ctx, "it closed its channel");
}

static void wait_for_end(struct worker_run *run)
{
    if (!run->dying && !run->ended)
        loop_timer_start(run->workers->loop, &run->timer, run->grace_ms, on_grace_over, run);
}

void worker_run_leave(struct worker_run *run)
{
    run->ctx = NULL;
    worker_channel_close(&run->channel);
    wait_for_end(run);
}

void worker_run_free_now(struct worker_run *run)
{
    run->ctx = NULL;
    kill_tree(run);
    int pidfd = process_state(run->process) == PROCESS_RUNNING ? pidfd_open(process_pid(run->process), 0) : -1;
    if (pidfd >= 0) {
        struct pollfd ended = {.fd = pidfd, .events = POLLIN};
        poll(&ended, 1, END_NOW_MS);
        close(pidfd);
    }
    worker_dir_remove(&run->dir, run->workers->confine);
    release(run);
}

/* --- its channel */

static void on_channel_line(void *ctx, const char *line, size_t len)
{
    struct worker_run *run = ctx;
    if (run->ctx != NULL)
        run->on_line(run->ctx, line, len);
}

static void on_channel_closed(void *ctx, const char *why)
{
    struct worker_run *run = ctx;
    if (why != NULL)
        worker_run_kill(run, why);
    else
        wait_for_end(run);
}

/* --- the start */

static int unavailable(const struct worker_spec *spec, const struct err *why, struct err *err)
{
    if (why->code != ERR_EXECUTABLE_NOT_FOUND && why->code != ERR_NOT_EXECUTABLE) {
        *err = *why;
        return -1;
    }
    if (spec->package == NULL)
        return err_set(err, ERR_UNAVAILABLE, "%s cannot be started: %.150s", spec->name, why->text);
    return err_set(err, ERR_UNAVAILABLE, "%s needs the program %.80s, which is not here; the package %.80s brings it",
                   spec->name, spec->argv[0], spec->package);
}

/* Sanitizers reserve more private memory than any machine has: what was built with one cannot be bounded. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static size_t memory_max(const struct worker_spec *spec)
{
    bool ours = spec->package == NULL;
    return SANITIZED && ours ? 0 : spec->memory_max_bytes;
}

static int start_process(struct worker_run *run, const struct worker_spec *spec, int channel_fd, struct err *err)
{
    struct workers *workers = run->workers;
    struct env_block env;
    struct err why;
    const struct env_block *from =
        spec->client_env ? process_table_env(workers->processes) : process_table_own_env(workers->processes);
    if (worker_dir_env(&run->dir, from, &env) != 0) {
        env_block_deinit(&env);
        return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    }
    struct process_spec process = {
        .kind = spec->kind,
        .argv = spec->argv,
        .cwd_fd = confine_base_fd(workers->confine),
        .cwd = confine_base_dir(workers->confine),
        .env = &env,
        .stdin_fd = -1,
        .tag = spec->name,
        .channel_fd = channel_fd,
        .data_max_bytes = memory_max(spec),
        .fds_max = spec->fds_max,
    };
    run->process = process_start(workers->processes, &process, &why);
    env_block_deinit(&env);
    if (run->process == NULL)
        return unavailable(spec, &why, err);
    process_ref(run->process);
    return 0;
}

struct worker_run *worker_run_start(struct workers *workers, const struct worker_spec *spec, struct err *err)
{
    struct worker_run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a worker");
        return NULL;
    }
    list_init(&run->node);
    run->workers = workers;
    run->grace_ms = spec->grace_ms;
    run->channel.fd = -1;
    int theirs = -1;
    int failed = worker_dir_make(&run->dir, private_parent(workers), err);
    if (failed == 0) /* each call that runs may be large, and the notices that ask to stop them are not */
        failed = worker_channel_open(&run->channel, workers->loop, WORKER_LINE_MAX_BYTES,
                                     (spec->calls_at_once + (size_t)1) * WORKER_LINE_MAX_BYTES, &theirs, err);
    if (failed == 0)
        failed = start_process(run, spec, theirs, err);
    if (theirs >= 0)
        close(theirs);
    if (failed != 0) {
        worker_channel_deinit(&run->channel);
        worker_dir_remove(&run->dir, workers->confine);
        free(run);
        return NULL;
    }
    list_append(&workers->runs, &run->node);
    run->channel.ctx = run;
    run->channel.on_line = on_channel_line;
    run->channel.on_closed = on_channel_closed;
    worker_channel_send(&run->channel); /* begins to read, too */
    if (run->channel.watch == NULL)
        worker_run_kill(run, "its channel cannot be watched");
    process_wait_start(run->process, &run->wait, on_drained, run);
    return run;
}
