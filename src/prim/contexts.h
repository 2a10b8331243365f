/* Named contexts: interpreters whose state lives on from one cell of code to the next. One worker each (prim/worker),
 * at most CONTEXTS_MAX of them, where the longest idle one gives way to a new one; cells of a context run one after
 * another. Main thread only; nothing blocks but the start of a process. */
#ifndef ABX_PRIM_CONTEXTS_H
#define ABX_PRIM_CONTEXTS_H

#include "prim/worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONTEXTS_MAX = 8,
    CONTEXT_NAME_MAX = 64, /* of [A-Za-z0-9._-] */
    CONTEXT_WAITING_MAX = 64,
    CONTEXT_KILL_MS = 5000, /* from a cell's time-out, which its worker sees to, to the end of the process */
};

struct contexts;
struct context;

/* The languages, by the name of their spec; copied. cwd, where contexts begin, is borrowed for as long as they live.
 * NULL out of memory. */
struct contexts *contexts_new(struct loop *loop, struct workers *workers, struct process_table *processes,
                              const char *cwd, const struct worker_spec *languages, size_t count);
/* Ends all; no cell may be left. Before workers_free. NULL is allowed. */
void contexts_free(struct contexts *contexts);

/* One cell; embedded by its user. Zero it, and fill in the first part. */
struct context_cell {
    const char *params; /* of the worker's `execute`, JSON; borrowed until on_begin or on_done */
    size_t params_len;
    uint64_t timeout_ms; /* as it stands in params; 0: none */
    bool reset;          /* with a new interpreter, once its turn has come */
    void *ctx;
    /* Its turn has come, and nothing of it runs yet: process, engine and restarted are set. */
    void (*on_begin)(struct context_cell *cell);
    /* A result: the JSON of its bundle (an object), borrowed. */
    void (*on_result)(struct context_cell *cell, const char *bundle, size_t len);
    /* Once, unless it is left before; without on_begin only where it is WORKER_FAILED. It keeps its turn until
     * contexts_leave. */
    void (*on_done)(struct context_cell *cell);

    struct process *process; /* borrowed until contexts_leave */
    char engine[16];
    bool restarted; /* the context had a state, which was lost; told once */
    /* in on_done, as a worker_call has them: */
    enum worker_outcome outcome;
    const char *answer;
    size_t answer_len;
    struct process_exit exit;
    struct err err;

    struct list node; /* private from here */
    struct context *context;
    struct worker_call call;
    bool sent, done;
};

/* Queues a cell in the context of that name, which is made where there is none. Callbacks come from the loop. -1 with
 * *err: ERR_INVALID_REQUEST (with field: language or context), ERR_TOO_MANY_REQUESTS (all contexts are busy, or too
 * many wait for this one). */
int contexts_run(struct contexts *contexts, const char *language, const char *name, struct context_cell *cell,
                 struct err *err) ABX_MUST_USE;
/* No callback comes any more, and the next cell may have its turn. One that runs is interrupted, and its context is
 * usable again when the worker has answered. Harmless on one that was left. */
void contexts_leave(struct context_cell *cell);

/* That there are; for tests. */
size_t contexts_count(const struct contexts *contexts);

#endif
