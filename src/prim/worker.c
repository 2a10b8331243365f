/* Calls to helper processes: their queue, their answers, and every way in which they get none; see the header. Called
 * by bind_worker, prim/worker_pool and prim/contexts. */
#include "prim/worker.h"

#include "prim/argv.h"
#include "prim/worker_line.h"
#include "prim/worker_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVELOPE_MAX_BYTES = 256, METHOD_MAX_BYTES = 64, STDERR_MAX_BYTES = 400, STDERR_TOLD_BYTES = 150 };

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
    uint64_t idle_since_ms;
    bool lost; /* a process that had answered is gone, and no call was told that yet */
    bool retired;
    struct loop_defer pump; /* or, of a retired one, its release */
    struct worker_slot slots[];
};

static void schedule(struct worker *worker);

/* --- the end of a call */

static void fill_slot(struct worker *worker, struct worker_slot *slot, struct worker_call *call)
{
    *slot = (struct worker_slot){.worker = worker, .id = ++worker->last_id, .call = call};
    worker->slots_taken++;
}

static void free_slot(struct worker_slot *slot)
{
    struct worker *worker = slot->worker;
    loop_timer_stop(&slot->timer);
    slot->id = 0;
    slot->call = NULL;
    worker->slots_taken--;
    if (worker->slots_taken == 0)
        worker->idle_since_ms = loop_now_ms(worker->workers->loop);
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

/* The last line of what it said on standard error, as far as it is of use to somebody who reads it. */
static size_t last_words(const struct process *process, char out[STDERR_MAX_BYTES])
{
    const struct ring *ring = process_ring(process, PROCESS_STDERR);
    uint64_t from = ring->end > STDERR_MAX_BYTES ? ring->end - STDERR_MAX_BYTES : 0;
    size_t len = ring_copy(ring, from, out, STDERR_MAX_BYTES);
    while (len > 0 && (unsigned char)out[len - 1] <= ' ')
        len--;
    size_t start = len;
    while (start > 0 && out[start - 1] != '\n')
        start--;
    if (len - start > STDERR_TOLD_BYTES)
        start = len - STDERR_TOLD_BYTES;
    memmove(out, out + start, len - start);
    return len - start;
}

static void tell_end(const struct worker *worker, const struct worker_run *run, const struct process_exit *exit,
                     struct err *err)
{
    char how[64], words[STDERR_MAX_BYTES];
    size_t len = last_words(run->process, words);
    if (!run->ended)
        snprintf(how, sizeof(how), "does not end");
    else if (exit->signal != 0)
        snprintf(how, sizeof(how), "was ended by signal %d", exit->signal);
    else
        snprintf(how, sizeof(how), "ended with exit code %d", exit->exit_code);
    err_set(err, ERR_INTERNAL, "%.40s %s%s%s%s%.*s", worker->spec.name, how, run->why != NULL ? " as " : "",
            run->why != NULL ? run->why : "", len > 0 ? ": " : "", (int)len, words);
}

static void on_gone(void *ctx)
{
    struct worker *worker = ctx;
    struct worker_run *run = worker->run;
    struct process_exit exit = {0};
    struct err err;
    if (run->ended && process_exit(run->process, &exit) != 0)
        exit = (struct process_exit){0};
    tell_end(worker, run, &exit, &err);
    worker->run = NULL;
    worker->lost |= run->answered;
    for (size_t i = 0; i < worker->spec.calls_at_once; i++) {
        struct worker_slot *slot = &worker->slots[i];
        struct worker_call *call = slot->call;
        bool late = slot->late;
        if (slot->id == 0)
            continue;
        free_slot(slot);
        if (call == NULL)
            continue;
        call->exit = exit;
        call->err = err;
        if (late)
            err_set(&call->err, ERR_UPSTREAM_TIMEOUT, "%.40s had not answered %.64s after %" PRIu64 " ms",
                    worker->spec.name, call->method, call->deadline_ms);
        finish(call, late ? WORKER_LATE : WORKER_ENDED);
    }
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
    worker->idle_since_ms = loop_now_ms(worker->workers->loop);
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
    fill_slot(worker, slot, call);
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
    argv_free(worker->spec.argv);
    free((char *)worker->spec.name);
    free((char *)worker->spec.package);
    free(worker);
}

struct worker *worker_new(struct workers *workers, const struct worker_spec *spec)
{
    size_t slots = spec->calls_at_once > 0 ? spec->calls_at_once : 1;
    struct worker *worker = calloc(1, sizeof(*worker) + slots * sizeof(worker->slots[0]));
    if (worker == NULL)
        return NULL;
    worker->workers = workers;
    worker->spec = *spec;
    worker->spec.calls_at_once = (unsigned)slots;
    worker->spec.name = strdup(spec->name);
    worker->spec.package = spec->package != NULL ? strdup(spec->package) : NULL;
    worker->spec.argv = argv_copy(spec->argv);
    worker->idle_since_ms = loop_now_ms(workers->loop);
    list_init(&worker->waiting);
    list_append(&workers->all, &worker->node);
    if (worker->spec.name == NULL || (spec->package != NULL && worker->spec.package == NULL) ||
        worker->spec.argv == NULL) {
        worker_release(worker);
        return NULL;
    }
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

const char *worker_name(const struct worker *worker)
{
    return worker->spec.name;
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

uint64_t worker_idle_since_ms(const struct worker *worker)
{
    return worker->idle_since_ms;
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
    return workers;
}

static void fail_all(struct worker *worker, const struct err *err)
{
    for (size_t i = 0; i < worker->spec.calls_at_once; i++) {
        struct worker_slot *slot = &worker->slots[i];
        struct worker_call *call = slot->call;
        if (slot->id == 0)
            continue;
        free_slot(slot);
        if (call != NULL)
            fail_call(call, err);
    }
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
