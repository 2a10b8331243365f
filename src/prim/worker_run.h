/* One process of a worker, from its start until nothing of it is left: the entry in the process table, its channel and
 * its private directories. Called by prim/worker. */
#ifndef ABX_PRIM_WORKER_RUN_H
#define ABX_PRIM_WORKER_RUN_H

#include "base/list.h"
#include "prim/worker.h"
#include "prim/worker_channel.h"
#include "prim/worker_dir.h"

struct workers {
    struct loop *loop;
    struct process_table *processes;
    const struct confine *confine;
    struct list all;  /* workers */
    struct list runs; /* worker_run */
    size_t removals;  /* of private directories, on threads; a sweep is one */
    bool ending;
};

struct worker_run {
    struct list node;
    struct workers *workers;
    struct process *process; /* a reference */
    struct worker_channel channel;
    struct worker_dir dir;
    struct process_wait wait;
    struct loop_timer timer; /* until it is killed; then, until it is given up */
    unsigned grace_ms;
    bool ended;
    bool dying;      /* it was killed: it gets no more calls */
    bool answered;   /* at least once */
    const char *why; /* it was killed for that; NULL */

    void *ctx; /* its worker; NULL: nobody cares any more */
    void (*on_line)(void *ctx, const char *line, size_t len);
    void (*on_gone)(void *ctx); /* it has ended and said all that it had to; the run is freed afterwards */
};

/* NULL with *err as worker_call tells. The last three members are the caller's to fill in. */
struct worker_run *worker_run_start(struct workers *workers, const struct worker_spec *spec, struct err *err);
/* SIGKILL to its tree; on_gone follows. why: for those whose calls fail by it, static text; NULL where they know. */
void worker_run_kill(struct worker_run *run, const char *why);
/* It is to end by itself, within its grace; nothing is called any more. */
void worker_run_leave(struct worker_run *run);
/* Private directories of servers that were killed go, on a thread. */
void worker_run_sweep(struct workers *workers);
/* Kills it and waits for that, and removes its directories; blocks. Nothing is called. */
void worker_run_free_now(struct worker_run *run);

#endif
