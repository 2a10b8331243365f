/* The one supervisor for every helper process (git, code contexts, the browser): a program that is started when it is
 * first needed, talks JSON-RPC 2.0 in lines over a descriptor of its own (3), and may die without taking anybody along.
 * Main thread only; nothing blocks but the start of a process.
 *
 * A worker is an entry of the process table while its process lives: standard output and error go into the rings there,
 * and the end of standard error goes into what a failed call tells. Each process has a private HOME and TMPDIR (mode
 * 0700, outside the base), which are removed after its end. It must end by itself when descriptor 3 closes; what does
 * not is killed. */
#ifndef ABX_PRIM_WORKER_H
#define ABX_PRIM_WORKER_H

#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "prim/confine.h"
#include "prim/worker_spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workers; /* all of a server */
struct worker;
struct worker_dir;

enum {
    WORKER_LINE_MAX_BYTES = 32 * 1024 * 1024, /* of a message, both ways; a worker that sends more is ended */
    WORKER_WAITING_MAX = 64,                  /* calls that wait for one worker; past it ERR_TOO_MANY_REQUESTS */
};

/* The confine tells the base directory, where workers start, and guards the removal of private directories. Those that
 * a server left which was killed are removed now, on a thread. NULL with *err. */
struct workers *workers_new(struct loop *loop, struct process_table *processes, const struct confine *confine,
                            struct err *err);
/* Fails all calls with ERR_SHUTTING_DOWN (on_done is called from here), frees all workers, kills the processes that
 * still live, and removes the private directories. Blocks for that. Before process_table_free. */
void workers_free(struct workers *workers);

/* Nothing is started yet. The spec is copied. NULL out of memory. */
struct worker *worker_new(struct workers *workers, const struct worker_spec *spec);
/* No call may be waiting or running any more (cancelled ones may). Closes the channel; the process has grace_ms to end;
 * the worker frees itself afterwards. NULL is allowed. */
void worker_retire(struct worker *worker);
/* Starts the process now, if none lives: for one that is to be ready. */
int worker_warm(struct worker *worker, struct err *err) ABX_MUST_USE;
/* Ends the process (SIGKILL to its tree), as if it had crashed; the next call starts another. */
void worker_kill(struct worker *worker);

enum worker_outcome {
    WORKER_ANSWERED, /* answer is the JSON of `result` */
    WORKER_REFUSED,  /* answer is the JSON of `error` */
    WORKER_ENDED,    /* the process ended first (or broke the protocol, and was ended): exit tells how */
    WORKER_LATE,     /* it was killed at the deadline */
    WORKER_FAILED,   /* it could not be started, or the server stops: err has the code to pass on */
};

/* One call; embedded by its user. Zero it, and fill in the first part. Times are milliseconds. */
struct worker_call {
    const char *method; /* a name without quotes in it */
    const char *params; /* JSON text; borrowed until on_sent or on_done */
    size_t params_len;
    uint64_t deadline_ms; /* from on_sent to SIGKILL; 0: none */
    void *ctx;
    void (*on_sent)(struct worker_call *call); /* its turn has come, and its bytes go next; process is set. May be
                                                * NULL */
    /* A notification of the worker with this call's id in its params. Borrowed. May be NULL */
    void (*on_notice)(struct worker_call *call, const char *method, size_t method_len, const char *params, size_t len);
    void (*on_done)(struct worker_call *call); /* once, unless it is cancelled before; from the loop */

    struct process *process; /* from on_sent on, until on_done returned; take a reference to keep it */
    bool fresh;              /* from on_sent on: an earlier process of this worker, which had answered, is gone */
    /* in on_done: */
    enum worker_outcome outcome;
    const char *answer; /* borrowed while on_done runs; valid JSON, UTF-8 */
    size_t answer_len;
    struct process_exit exit;
    struct err err; /* where it neither answered nor refused: ERR_UNAVAILABLE, ERR_UPSTREAM_TIMEOUT (late),
                     * ERR_INTERNAL (ended; with the end of its standard error), ERR_SHUTTING_DOWN, what process_start
                     * tells */

    struct list node;         /* private from here */
    struct worker *worker;    /* NULL: it neither waits nor runs */
    struct worker_slot *slot; /* NULL: it waits */
};

/* Queues the call and starts what has to be started. Callbacks come from the loop, never from inside. -1 with *err
 * (ERR_TOO_MANY_REQUESTS, ERR_PAYLOAD_TOO_LARGE, ERR_SHUTTING_DOWN): then nothing is called. */
int worker_call_start(struct worker *worker, struct worker_call *call, struct err *err) ABX_MUST_USE;
/* No callback comes any more. One that was sent is asked to stop by the notification {"method":"cancel","params":
 * {"id":N}}; where it has not answered after grace_ms, the process is killed. Harmless on one that is done. */
void worker_call_cancel(struct worker_call *call);

/* For those who choose among workers, and for /capabilities. */
const struct worker_spec *worker_spec(const struct worker *worker); /* borrowed */
size_t worker_load(const struct worker *worker);                    /* calls that wait or run, cancelled ones too */
uint64_t worker_calls(const struct worker *worker);                 /* answered, ever */
struct process *worker_process(const struct worker *worker);        /* NULL: none lives. Borrowed */
/* Its private directories, in on_done those of the process that answered. NULL: none lives. Borrowed */
const struct worker_dir *worker_private(const struct worker *worker);
/* Those that are not retired, in the order of their making. */
void workers_each(struct workers *workers, void (*fn)(const struct worker *worker, void *ctx), void *ctx);

#endif
