/* From an admitted request to its running handler: rules for the body, collecting, parsing, checking. */
#include "request/exchange.h"

#include "base/log.h"
#include "request/validate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A body that is parsed on the pool. Owns all that the job touches, so the exchange may go meanwhile. */
struct parse_job {
    struct exchange *exchange; /* NULL: nobody waits any more */
    struct tables *tables;
    const struct route *route;
    struct router_match match;
    char *text;
    size_t text_len;
    struct arena arena;
    struct value params;
    struct field_errors errors;
    struct err err;
    int status;
};

static void refuse(struct exchange *exchange, const struct err *err, const struct field_errors *errors)
{
    exchange_refuse(exchange, err, errors, NULL, NULL);
}

static void on_task_response(void *ctx, struct response *response)
{
    exchange_answer(ctx, response);
}

static void on_task_error(void *ctx, const struct err *err)
{
    refuse(ctx, err, NULL);
}

static void on_task_end(void *ctx)
{
    struct exchange *exchange = ctx;

    exchange->task = NULL;
    exchange->task_over = true;
}

static void run_handler(struct exchange *exchange)
{
    static const struct task_events events = {on_task_response, on_task_error, on_task_end};
    struct err err;

    task_start(exchange->tables->generation, exchange->match.route, &exchange->request, &events, exchange,
               &exchange->task);
    if (!exchange->task && !exchange->task_over) {
        err_set(&err, ERR_INTERNAL, "out of memory for this request");
        refuse(exchange, &err, NULL);
    }
}

static void on_parse_work(void *ctx)
{
    struct parse_job *job = ctx;

    job->status = validate_json(job->route, &job->match, job->text, job->text_len, &job->arena, &job->params,
                                &job->errors, &job->err);
}

static void job_free(struct parse_job *job)
{
    tables_unref(job->tables);
    arena_deinit(&job->arena);
    free(job->text);
    free(job);
}

static void on_parse_done(void *ctx)
{
    struct parse_job *job = ctx;
    struct exchange *exchange = job->exchange;

    if (exchange) {
        exchange->job = NULL;
        exchange->parsed = job->arena;
        job->arena = (struct arena){0};
        exchange->request.params = job->params;
        if (job->status < 0)
            refuse(exchange, &job->err, &job->errors);
    }
    if (exchange && job->status == 0)
        run_handler(exchange);
    job_free(job);
}

void exchange_drop_job(struct exchange *exchange)
{
    if (exchange->job)
        exchange->job->exchange = NULL;
    exchange->job = NULL;
}

/* Trees of values are larger than their text: "[[],[],..." by ten times. */
static size_t parse_limit_bytes(size_t text_len)
{
    size_t limit = 1024 * 1024 + text_len * 24, max = 256 * 1024 * 1024;

    return limit < max ? limit : max;
}

static int start_job(struct exchange *exchange)
{
    struct parse_job *job = calloc(1, sizeof(*job));

    if (!job)
        return -1;
    job->exchange = exchange;
    job->route = exchange->match.route;
    job->match = exchange->match;
    job->tables = exchange->tables;
    job->tables->references++;
    job->text = buf_steal(&exchange->text, &job->text_len);
    arena_init(&job->arena, parse_limit_bytes(job->text_len));
    if (validate_keep_match(&job->match, &job->arena) < 0 ||
        loop_job(exchange->pipeline->loop, on_parse_work, on_parse_done, job) < 0) {
        job_free(job);
        return -1;
    }
    exchange->job = job;
    return 0;
}

static void run_with_json(struct exchange *exchange)
{
    struct field_errors errors;
    struct err err;
    int status;

    errors.count = 0; /* not all of it: 8 KiB of zeros a request would show */
    if (exchange->text.len > EXCHANGE_INLINE_PARSE_MAX_BYTES) {
        if (start_job(exchange) < 0) {
            err_set(&err, ERR_INTERNAL, "out of memory for this request");
            refuse(exchange, &err, NULL);
        }
        return;
    }
    status = validate_json(exchange->match.route, &exchange->match, exchange->text.data, exchange->text.len,
                           &exchange->request.arena, &exchange->request.params, &errors, &err);
    buf_deinit(&exchange->text);
    if (status < 0)
        refuse(exchange, &err, &errors);
    else
        run_handler(exchange);
}

/* Faulty parameters are told before the body is read; -1: they were. */
static int check_query(struct exchange *exchange)
{
    const struct route *route = exchange->match.route;
    struct request *request = &exchange->request;
    struct field_errors errors;
    struct err err;
    int status;

    errors.count = 0;
    if (route->body == ROUTE_BODY_JSON)
        status = validate_no_query(exchange->target.query, &request->arena, &errors, &err);
    else
        status = validate_query(route, &exchange->match, exchange->target.query, &request->arena, &request->params,
                                &errors, &err);
    if (status < 0)
        refuse(exchange, &err, &errors);
    return status;
}

static bool is_json(const char *content_type)
{
    size_t len = content_type ? strcspn(content_type, "; \t") : 0;

    return len == strlen("application/json") && strncasecmp(content_type, "application/json", len) == 0;
}

static void refuse_length(struct exchange *exchange)
{
    struct err err;

    err_set(&err, ERR_PAYLOAD_TOO_LARGE, "the body is larger than the limit of %" PRIu64 " bytes",
            exchange->limit_bytes);
    buf_deinit(&exchange->text);
    refuse(exchange, &err, NULL);
}

static void on_body_wake(void *net)
{
    struct exchange *exchange = net;

    exchange->events->on_wake(exchange->net);
}

static void begin_stream(struct exchange *exchange, bool has_body)
{
    exchange->mode = EXCHANGE_STREAMS;
    exchange->body = (struct body){.wake = on_body_wake, .net = exchange, .loop = exchange->pipeline->loop};
    exchange->request.body = &exchange->body;
    if (!has_body)
        body_end(&exchange->body, true);
    run_handler(exchange);
}

void exchange_begin(struct exchange *exchange, bool has_body, int64_t body_length)
{
    const struct route *route = exchange->match.route;
    struct err err;

    exchange->limit_bytes = route->body_limit_bytes;
    if (exchange->limit_bytes == 0 && route->body != ROUTE_BODY_STREAM)
        exchange->limit_bytes = EXCHANGE_BODY_DEFAULT_BYTES;
    if (has_body && route->body == ROUTE_BODY_JSON && !is_json(request_header(&exchange->request, "Content-Type"))) {
        err_set(&err, ERR_UNSUPPORTED_MEDIA_TYPE, "the body must be JSON, sent with Content-Type: application/json");
        refuse(exchange, &err, NULL);
        return;
    }
    if (has_body && body_length > 0 && exchange->limit_bytes > 0 && (uint64_t)body_length > exchange->limit_bytes) {
        refuse_length(exchange);
        return;
    }
    if (check_query(exchange) < 0)
        return;
    if (route->body == ROUTE_BODY_STREAM) {
        begin_stream(exchange, has_body);
    } else if (route->body == ROUTE_BODY_JSON && !has_body) {
        run_with_json(exchange);
    } else if (!has_body) {
        run_handler(exchange);
    } else {
        exchange->mode = route->body == ROUTE_BODY_JSON ? EXCHANGE_COLLECTS : EXCHANGE_IGNORES;
        buf_init(&exchange->text, (size_t)exchange->limit_bytes);
        if (exchange->mode == EXCHANGE_COLLECTS && body_length > 0 &&
            buf_reserve(&exchange->text, (size_t)body_length) < 0) {
            err_set(&err, ERR_INTERNAL, "out of memory for this request");
            refuse(exchange, &err, NULL);
        }
    }
}

size_t exchange_push(struct exchange *exchange, const char *bytes, size_t len)
{
    size_t taken = len;
    struct err err;

    if (exchange->status)
        return len;
    if (exchange->limit_bytes > 0 && exchange->received_bytes + len > exchange->limit_bytes) {
        refuse_length(exchange);
        return len;
    }
    if (exchange->mode == EXCHANGE_STREAMS) {
        taken = body_push(&exchange->body, bytes, len);
    } else if (exchange->mode == EXCHANGE_COLLECTS && buf_append(&exchange->text, bytes, len) < 0) {
        err_set(&err, ERR_INTERNAL, "out of memory for this request");
        refuse(exchange, &err, NULL);
    }
    exchange->received_bytes += taken;
    return taken;
}

void exchange_end(struct exchange *exchange)
{
    enum exchange_mode mode = exchange->mode;

    exchange->mode = EXCHANGE_NO_BODY;
    if (exchange->status)
        return;
    if (mode == EXCHANGE_STREAMS)
        body_end(&exchange->body, true);
    else if (mode == EXCHANGE_COLLECTS)
        run_with_json(exchange);
    else if (mode == EXCHANGE_IGNORES)
        run_handler(exchange);
}
