/* What a worker says of a cell, made into results and an outcome. A worker runs what clients send, which can answer in
 * its name: only what has the agreed shape gets through. Called by bind_code. */
#include "base/json.h"
#include "base/json_member.h"
#include "bind/bind_code.h"
#include "prim/process_part.h"
#include "prim/signals.h"
#include "prim/worker_refusal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CAPTURE_BYTES = 2 * 1024 * 1024,
    RESULTS_MAX = 1000,
    RESULTS_MAX_BYTES = 16 * 1024 * 1024,
    ERROR_MAX_BYTES = 34 * 1024 * 1024, /* what one line of a worker can hold */
    LAST_WORDS_BYTES = 4096,
};

static void wake(struct cell *cell)
{
    struct task *waiter = cell->waiter;
    cell->waiter = NULL;
    if (waiter != NULL)
        task_resume(waiter);
}

/* --- its turn */

static void on_begin(struct context_cell *run)
{
    struct cell *cell = run->ctx;
    struct err err;
    cell->state = CELL_RUNNING;
    cell->process = process_ref(run->process);
    cell->began_ns = loop_clock_ns();
    for (int i = 0; i < 2; i++)
        cell->began_at[i] = process_output_ahead(cell->process, i);
    buf_deinit(&cell->params);
    if (cell->streams) {
        bind_code_stream_begin(cell);
    } else {
        process_output_catch_up(cell->process); /* what came between two cells belongs to none */
        cell->output.captures = process_capture_restart(cell->process, CAPTURE_BYTES, &err) == 0;
    }
    if (!cell->waits_for_end)
        wake(cell);
}

static void on_result(struct context_cell *run, const char *bundle, size_t len)
{
    struct cell *cell = run->ctx;
    if (cell->result_count == RESULTS_MAX || len > RESULTS_MAX_BYTES - cell->result_bytes) {
        cell->truncated = true;
        return;
    }
    cell->result_bytes += len;
    if (cell->streams) {
        bind_code_stream_result(cell, bundle, len);
    } else if (buf_reserve(&cell->results, len + 1) != 0 || /* or a comma would stay without its result */
               buf_append(&cell->results, cell->result_count > 0 ? "," : "[", 1) != 0 ||
               buf_append(&cell->results, bundle, len) != 0) {
        cell->truncated = true;
        return;
    }
    cell->result_count++;
}

/* --- its end */

static int write_error(struct cell *cell, const char *name, const char *value, const char *traceback, size_t len)
{
    struct buf *out = &cell->error;
    buf_reset(out);
    int failed = json_write_text(out, "{\"name\":", name);
    failed |= json_write_text(out, ",\"value\":", value);
    failed |= buf_append_text(out, ",\"traceback\":");
    failed |= json_write_string(out, traceback, len);
    failed |= buf_append(out, "}", 1);
    return failed;
}

/* A member of the worker's error as it stands, where it is a string. */
static int copy_member(struct buf *out, struct json_span error, const char *name)
{
    struct json_span member = json_member(error.text, error.len, name);
    if (json_span_kind(member) != '"')
        member = (struct json_span){"\"\"", 2};
    return buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", name) | buf_append(out, member.text, member.len);
}

static int copy_error(struct cell *cell, struct json_span error)
{
    struct buf *out = &cell->error;
    buf_reset(out);
    if (json_span_kind(error) != '{')
        return 0;
    int failed = buf_append(out, "{", 1);
    failed |= copy_member(out, error, "name");
    failed |= copy_member(out, error, "value");
    failed |= copy_member(out, error, "traceback");
    failed |= buf_append(out, "}", 1);
    return failed;
}

static int64_t read_count(struct json_span span)
{
    int64_t count = 0;
    if (span.text == NULL || span.len > 18)
        return -1;
    for (size_t i = 0; i < span.len; i++) {
        if (span.text[i] < '0' || span.text[i] > '9')
            return -1;
        count = count * 10 + (span.text[i] - '0');
    }
    return count;
}

/* Where the language has no word of its own for it. */
static int add_timeout(struct cell *cell)
{
    char how[64];
    if (cell->error.len > 0 || strcmp(cell->status, "timeout") != 0)
        return 0;
    snprintf(how, sizeof(how), "the time-out of %" PRIu64 " ms is over", cell->run.timeout_ms);
    return write_error(cell, "Timeout", how, "", 0);
}

static int read_answer(struct cell *cell, const char *answer, size_t len)
{
    static const char *const statuses[][2] = {{"\"ok\"", "ok"}, {"\"error\"", "error"}, {"\"timeout\"", "timeout"}};
    struct json_span status = json_member(answer, len, "status");
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (json_span_is(status, statuses[i][0]))
            cell->status = statuses[i][1];
    if (cell->status == NULL)
        return err_set(&cell->err, ERR_INTERNAL, "the interpreter's answer has no status");
    cell->execution_count = read_count(json_member(answer, len, "execution_count"));
    cell->truncated |= json_span_is(json_member(answer, len, "truncated"), "true");
    if (copy_error(cell, json_member(answer, len, "error")) != 0 || add_timeout(cell) != 0)
        return err_set(&cell->err, ERR_INTERNAL, "out of memory for an error of a cell");
    return 0;
}

/* --- an end without an answer */

/* The end of what it said on standard error while the cell ran; borrowed, main thread only. */
static const char *last_words(const struct cell *cell, size_t *out_len)
{
    static char words[LAST_WORDS_BYTES];
    uint64_t end = process_part_end(cell->process, PROCESS_STDERR), from = cell->began_at[PROCESS_STDERR];
    if (end > from && end - from > sizeof(words))
        from = end - sizeof(words);
    *out_len =
        end > from ? ring_copy(process_ring(cell->process, PROCESS_STDERR), from, words, (size_t)(end - from)) : 0;
    return words;
}

static int tell_crash(struct cell *cell, const struct process_exit *exit)
{
    char how[96], signal[SIGNALS_NAME_MAX];
    size_t len;
    const char *words = last_words(cell, &len);
    cell->status = "crashed";
    if (exit->signal != 0) {
        signals_name(exit->signal, signal);
        snprintf(how, sizeof(how), "the interpreter was ended by %s", signal);
    } else {
        snprintf(how, sizeof(how), "the interpreter ended with exit code %d", exit->exit_code);
    }
    return write_error(cell, "Crashed", how, words, len);
}

static int tell_late(struct cell *cell)
{
    char how[128];
    cell->status = "timeout";
    snprintf(how, sizeof(how), "not interrupted after %" PRIu64 " ms: the interpreter was ended, its state is lost",
             cell->run.timeout_ms);
    return write_error(cell, "Timeout", how, "", 0);
}

static void on_done(struct context_cell *run)
{
    struct cell *cell = run->ctx;
    int failed = 0;
    cell->ended_ns = loop_clock_ns();
    if (cell->process != NULL && !cell->streams)
        process_output_catch_up(cell->process);
    switch (run->outcome) {
    case WORKER_ANSWERED:
        failed = read_answer(cell, run->answer, run->answer_len);
        break;
    case WORKER_REFUSED:
        worker_refusal_read(run->answer, run->answer_len, &cell->err);
        failed = -1;
        break;
    case WORKER_ENDED:
    case WORKER_LATE:
        failed = run->outcome == WORKER_LATE ? tell_late(cell) : tell_crash(cell, &run->exit);
        if (failed)
            err_set(&cell->err, ERR_INTERNAL, "out of memory for the end of a cell");
        break;
    case WORKER_FAILED:
        cell->err = run->err;
        failed = -1;
        break;
    }
    cell->state = failed ? CELL_FAILED : CELL_DONE;
    if (cell->streams && cell->process != NULL)
        bind_code_stream_done(cell);
    wake(cell);
}

int bind_code_cell_write(const struct cell *cell, struct buf *out)
{
    int failed = json_write_text(out, "{\"status\":", cell->status);
    failed |= buf_append_text(out, ",\"execution_count\":");
    failed |= cell->execution_count >= 0 ? json_write_int(out, cell->execution_count) : buf_append_text(out, "null");
    failed |= json_write_text(out, ",\"engine\":", cell->run.engine);
    failed |= buf_printf(out, ",\"restarted\":%s,\"truncated\":%s,\"duration_ms\":%" PRIu64 "}",
                         cell->run.restarted ? "true" : "false", cell->truncated ? "true" : "false",
                         (cell->ended_ns - cell->began_ns) / 1000000);
    return failed;
}

/* --- its life */

void bind_code_cell_init(struct cell *cell)
{
    cell->run.ctx = cell;
    cell->run.on_begin = on_begin;
    cell->run.on_result = on_result;
    cell->run.on_done = on_done;
    cell->execution_count = -1;
    bind_output_init(&cell->output);
    buf_init(&cell->params, WORKER_LINE_MAX_BYTES);
    buf_init(&cell->error, ERROR_MAX_BYTES);
    buf_init(&cell->results, RESULTS_MAX_BYTES + RESULTS_MAX + 2);
    list_init(&cell->events);
}

void bind_code_cell_close(struct cell *cell)
{
    task_disown(&cell->owned);
    cell->state = CELL_CLOSED;
    cell->waiter = NULL;
    contexts_leave(&cell->run);
    bind_code_stream_close(cell);
    bind_output_deinit(&cell->output);
    buf_deinit(&cell->params);
    buf_deinit(&cell->error);
    buf_deinit(&cell->results);
    if (cell->process != NULL) {
        if (!cell->streams)
            process_capture_free(cell->process);
        process_unref(cell->process);
    }
    cell->process = NULL;
}
