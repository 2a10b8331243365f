/* Calls to helper processes: their queue, their answers, and every way in which they get none; see the header. Called
 * by bind_worker, prim/worker_pool and prim/contexts. */
#include "prim/worker.h"

#include "prim/worker_end.h"
#include "prim/worker_line.h"
#include "prim/worker_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVELOPE_MAX_BYTES = 256, METHOD_MAX_BYTES = 64 };

/* A call that its process has. */
struct worker_slot {
    struct worker *worker;
    uint64_t id;              /* 0: free */
    struct worker_call *call; /* NULL: it was cancelled; its answer is awaited all the same */
    struct loop_timer timer;  /* its deadline, or the end of the grace for a cancelled one */
    bool late;
};

struct worker {
    struct list node;
    struct workers *workers;
    struct worker_spec spec; /* its texts are owned */
    struct worker_run *run;  /* NULL: no process lives */
    struct list waiting;     /* worker_call */
    size_t waiting_count;
    size_t slots_taken;
    uint64_t last_id;
    uint64_t calls_answered;
    bool lost; /* a process that had answered is gone, and no call was told that yet */
    bool retired;
    struct loop_defer pump; /* or, of a retired one, its release */
    struct worker_slot slots[];
};

static void schedule(struct worker *worker);

/* --- the end of a call */

static void free_slot(struct worker_slot *slot)
{
    struct worker *worker = slot->worker;
    loop_timer_stop(&slot->timer);
    slot->id = 0;
    slot->call = NULL;
    worker->slots_taken--;
    schedule(worker);
}

/* The call may be freed in there, and the worker retired. */
static void finish(struct worker_call *call, enum worker_outcome outcome)
{
    struct process *process = call->process;
    call->outcome = outcome;
    call->worker = NULL;
    call->slot = NULL;
    if (process != NULL)
        process_ref(process);
    call->on_done(call);
    process_unref(process);
}

static void fail_call(struct worker_call *call, const struct err *err)
{
    call->err = *err;
    finish(call, WORKER_FAILED);
}

static void on_line(void *ctx, const char *line, size_t len)
{
    struct worker *worker = ctx;
    struct worker_line message;
    struct err err;
    if (worker_line_parse(line, len, &message, &err) != 0) {
        worker_run_kill(worker->run, "it broke the protocol");
        worker_channel_close(&worker->run->channel); /* nothing that follows is believed */
        return;
    }
    struct worker_slot *slot = NULL;
    for (size_t i = 0; i < worker->spec.calls_at_once; i++)
        if (worker->slots[i].id == message.id)
            slot = &worker->slots[i];
    if (slot == NULL)
        return; /* the end of one that is done; or what a client's code made up */
    struct worker_call *call = slot->call;
    if (message.kind == WORKER_LINE_NOTICE) {
        if (call != NULL && call->on_notice != NULL)
            call->on_notice(call, message.method, message.method_len, message.body, message.body_len);
        return;
    }
    worker->run->answered = true;
    worker->calls_answered++;
    free_slot(slot);
    if (call == NULL)
        return;
    call->answer = message.body;
    call->answer_len = message.body_len;
    finish(call, message.kind == WORKER_LINE_RESULT ? WORKER_ANSWERED : WORKER_REFUSED);
}

/* Those that the process has. */
static void end_calls(struct worker *worker, enum worker_outcome outcome, const struct process_exit *exit,
                      const struct err *err)
{
    for (size_t i = 0; i < worker->spec.calls_at_once; i++) {
        struct worker_slot *slot = &worker->slots[i];
        struct worker_call *call = slot->call;
        bool late = slot->late;
        if (slot->id == 0)
            continue;
        free_slot(slot);
        if (call == NULL)
            continue;
        call->exit = *exit;
        call->err = *err;
        if (late)
            err_set(&call->err, ERR_UPSTREAM_TIMEOUT, "%.40s had not answered %.64s after %" PRIu64 " ms",
                    worker->spec.name, call->method, call->deadline_ms);
        finish(call, late ? WORKER_LATE : outcome);
    }
}

static void on_gone(void *ctx)
{
    struct worker *worker = ctx;
    struct worker_run *run = worker->run;
    struct process_exit exit;
    struct err err;
    worker_end_tell(run, worker->spec.name, &exit, &err);
    worker->run = NULL;
    worker->lost |= run->answered;
    end_calls(worker, WORKER_ENDED, &exit, &err);
    schedule(worker);
}

/* --- from the queue to the process */

static void on_deadline(void *ctx)
{
    struct worker_slot *slot = ctx;
    slot->late = true;
    if (slot->worker->run != NULL)
        worker_run_kill(slot->worker->run, "another call of it took too long");
}

static void on_cancel_grace_over(void *ctx)
{
    struct worker_slot *slot = ctx;
    if (slot->worker->run != NULL)
        worker_run_kill(slot->worker->run, "a call of it that was cancelled did not stop");
}

static int start_run(struct worker *worker, struct err *err)
{
    worker->run = worker_run_start(worker->workers, &worker->spec, err);
    if (worker->run == NULL)
        return -1;
    worker->run->ctx = worker;
    worker->run->on_line = on_line;
    worker->run->on_gone = on_gone;
    return 0;
}

static struct worker_call *take_waiting(struct worker *worker)
{
    struct list *node = worker->waiting.next;
    list_remove(node);
    worker->waiting_count--;
    return LIST_ENTRY(node, struct worker_call, node);
}

static void send_next(struct worker *worker)
{
    struct worker_call *call = take_waiting(worker);
    struct worker_slot *slot = worker->slots;
    while (slot->id != 0)
        slot++;
    struct buf *out = &worker->run->channel.out;
    if (worker_line_call(out, worker->last_id + 1, call->method, call->params, call->params_len) != 0) {
        struct err err;
        err_set(&err, ERR_INTERNAL, "out of memory for a call");
        fail_call(call, &err);
        return;
    }
    *slot = (struct worker_slot){.worker = worker, .id = ++worker->last_id, .call = call};
    worker->slots_taken++;
    call->slot = slot;
    call->process = worker->run->process;
    call->fresh = worker->lost;
    worker->lost = false;
    if (call->deadline_ms > 0)
        loop_timer_start(worker->workers->loop, &slot->timer, call->deadline_ms, on_deadline, slot);
    if (call->on_sent != NULL)
        call->on_sent(call); /* nothing was sent yet: what the process prints from here on is by this call */
    if (worker->run != NULL)
        worker_channel_send(&worker->run->channel);
}

/* Every callback in here may start, cancel and retire. */
static void pump(void *ctx)
{
    struct worker *worker = ctx;
    while (!worker->retired && worker->waiting_count > 0 && worker->slots_taken < worker->spec.calls_at_once) {
        struct err err;
        if (worker->run != NULL && (worker->run->dying || worker->run->channel.fd < 0))
            return; /* the next one begins when this one is gone */
        if (worker->run == NULL && start_run(worker, &err) != 0)
            fail_call(take_waiting(worker), &err);
        else
            send_next(worker);
    }
}

static void schedule(struct worker *worker)
{
    if (!worker->retired)
        loop_defer_start(worker->workers->loop, &worker->pump, pump, worker);
}

int worker_call_start(struct worker *worker, struct worker_call *call, struct err *err)
{
    call->worker = NULL;
    if (worker->workers->ending)
        return err_set(err, ERR_SHUTTING_DOWN, "the server is shutting down");
    if (worker->waiting_count >= WORKER_WAITING_MAX)
        return err_set(err, ERR_TOO_MANY_REQUESTS, "%d calls wait for %.40s already", WORKER_WAITING_MAX,
                       worker->spec.name);
    if (strlen(call->method) > METHOD_MAX_BYTES || call->params_len > WORKER_LINE_MAX_BYTES - ENVELOPE_MAX_BYTES)
        return err_set(err, ERR_PAYLOAD_TOO_LARGE, "a call of %.40s may have %d bytes at most", worker->spec.name,
                       WORKER_LINE_MAX_BYTES - ENVELOPE_MAX_BYTES);
    call->worker = worker;
    call->slot = NULL;
    call->process = NULL;
    call->answer = NULL;
    call->answer_len = 0;
    list_append(&worker->waiting, &call->node);
    worker->waiting_count++;
    schedule(worker);
    return 0;
}

void worker_call_cancel(struct worker_call *call)
{
    struct worker *worker = call->worker;
    struct worker_slot *slot = call->slot;
    if (worker == NULL)
        return;
    call->worker = NULL;
    call->slot = NULL;
    if (slot == NULL) {
        list_remove(&call->node);
        worker->waiting_count--;
        return;
    }
    slot->call = NULL;
    slot->late = false;
    struct worker_run *run = worker->run;
    if (run == NULL || run->dying || worker_line_cancel(&run->channel.out, slot->id) != 0) {
        if (run != NULL)
            worker_run_kill(run, "a call of it could not be cancelled");
        return;
    }
    worker_channel_send(&run->channel);
    loop_timer_start(worker->workers->loop, &slot->timer, worker->spec.grace_ms, on_cancel_grace_over, slot);
}

/* --- workers */

static void worker_release(void *ctx)
{
    struct worker *worker = ctx;
    list_remove(&worker->node);
    loop_defer_stop(&worker->pump);
    for (size_t i = 0; i < worker->spec.calls_at_once; i++)
        loop_timer_stop(&worker->slots[i].timer);
    worker_spec_deinit(&worker->spec);
    free(worker);
}

struct worker *worker_new(struct workers *workers, const struct worker_spec *spec)
{
    struct worker_spec copy;
    if (worker_spec_copy(spec, &copy) != 0)
        return NULL;
    struct worker *worker = calloc(1, sizeof(*worker) + copy.calls_at_once * sizeof(worker->slots[0]));
    if (worker == NULL) {
        worker_spec_deinit(&copy);
        return NULL;
    }
    worker->workers = workers;
    worker->spec = copy;
    list_init(&worker->waiting);
    list_append(&workers->all, &worker->node);
    return worker;
}

void worker_retire(struct worker *worker)
{
    if (worker == NULL || worker->retired)
        return;
    worker->retired = true;
    for (size_t i = 0; i < worker->spec.calls_at_once; i++)
        loop_timer_stop(&worker->slots[i].timer);
    if (worker->run != NULL)
        worker_run_leave(worker->run);
    worker->run = NULL;
    /* Not now: it may have been asked to from one of its own callbacks. */
    loop_defer_stop(&worker->pump);
    loop_defer_start(worker->workers->loop, &worker->pump, worker_release, worker);
}

int worker_warm(struct worker *worker, struct err *err)
{
    return worker->run != NULL ? 0 : start_run(worker, err);
}

void worker_kill(struct worker *worker)
{
    if (worker->run != NULL)
        worker_run_kill(worker->run, NULL);
}

const struct worker_spec *worker_spec(const struct worker *worker)
{
    return &worker->spec;
}

size_t worker_load(const struct worker *worker)
{
    return worker->waiting_count + worker->slots_taken;
}

uint64_t worker_calls(const struct worker *worker)
{
    return worker->calls_answered;
}

struct process *worker_process(const struct worker *worker)
{
    return worker->run != NULL ? worker->run->process : NULL;
}

const struct worker_dir *worker_private(const struct worker *worker)
{
    return worker->run != NULL ? &worker->run->dir : NULL;
}

void workers_each(struct workers *workers, void (*fn)(const struct worker *worker, void *ctx), void *ctx)
{
    LIST_EACH (&workers->all, node) {
        const struct worker *worker = LIST_ENTRY(node, struct worker, node);
        if (!worker->retired)
            fn(worker, ctx);
    }
}

/* --- all of them */

struct workers *workers_new(struct loop *loop, struct process_table *processes, const struct confine *confine,
                            struct err *err)
{
    struct workers *workers = calloc(1, sizeof(*workers));
    if (workers == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for the workers");
        return NULL;
    }
    *workers = (struct workers){.loop = loop, .processes = processes, .confine = confine};
    list_init(&workers->all);
    list_init(&workers->runs);
    worker_run_sweep(workers);
    return workers;
}

static void fail_all(struct worker *worker, const struct err *err)
{
    end_calls(worker, WORKER_FAILED, &(const struct process_exit){0}, err);
    while (worker->waiting_count > 0)
        fail_call(take_waiting(worker), err);
}

void workers_free(struct workers *workers)
{
    struct err err;
    if (workers == NULL)
        return;
    workers->ending = true;
    err_set(&err, ERR_SHUTTING_DOWN, "the server is shutting down");
    LIST_EACH (&workers->all, node)
        fail_all(LIST_ENTRY(node, struct worker, node), &err); /* none of them is freed by that at once */
    while (!list_empty(&workers->runs))
        worker_run_free_now(LIST_ENTRY(workers->runs.next, struct worker_run, node));
    while (!list_empty(&workers->all))
        worker_release(LIST_ENTRY(workers->all.next, struct worker, node));
    while (workers->removals > 0)
        loop_turn(workers->loop, true);
    free(workers);
}
