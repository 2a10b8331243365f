/* The life of one exchange: made and fed by net, answered once, logged and recycled at its end. */
#include "request/exchange.h"

#include "base/log.h"
#include "request/answer.h"
#include "request/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LOGGED_PATH_MAX = 1024 };

static struct exchange *take_spare(struct pipeline *pipeline)
{
    struct exchange *exchange = pipeline->spare;
    struct arena arena;

    if (!exchange) {
        exchange = calloc(1, sizeof(*exchange));
        if (exchange)
            arena_init(&exchange->request.arena, EXCHANGE_ARENA_MAX_BYTES);
        return exchange;
    }
    pipeline->spare = exchange->next_spare;
    pipeline->spare_count--;
    arena = exchange->request.arena;
    memset(exchange, 0, sizeof(*exchange));
    exchange->request.arena = arena;
    return exchange;
}

static void give_back(struct exchange *exchange)
{
    struct pipeline *pipeline = exchange->pipeline;

    if (pipeline->spare_count >= EXCHANGE_SPARE_MAX) {
        arena_deinit(&exchange->request.arena);
        free(exchange);
        return;
    }
    arena_reset(&exchange->request.arena);
    exchange->next_spare = pipeline->spare;
    pipeline->spare = exchange;
    pipeline->spare_count++;
}

/* Unique in this process and hard to take for another one's: random prefix, then a count. */
static void make_id(struct pipeline *pipeline, char out[REQUEST_ID_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t count = pipeline->id_count++;

    memcpy(out, pipeline->id_prefix, 8);
    out[8] = '-';
    for (int i = 0; i < 8; i++)
        out[9 + i] = digits[count >> (28 - 4 * i) & 15];
    out[17] = '\0';
}

struct exchange *exchange_new(struct pipeline *pipeline, const struct exchange_events *events, void *net,
                              const char *method, const char *target)
{
    struct exchange *exchange = take_spare(pipeline);

    if (!exchange)
        return NULL;
    exchange->pipeline = pipeline;
    exchange->events = events;
    exchange->net = net;
    exchange->started_ns = loop_clock_ns();
    exchange->target.path = "";
    buf_init(&exchange->text, 0);
    list_append(&pipeline->exchanges, &exchange->node);
    make_id(pipeline, exchange->request.id);
    exchange->request.method = method;
    exchange->request.target = target;
    exchange->request.head = strcmp(method, "HEAD") == 0;
    return exchange;
}

int exchange_header(struct exchange *exchange, const char *name, const char *value)
{
    struct request *request = &exchange->request;
    size_t len = strlen(value), value_len = len;

    /* Blanks after a value are no part of it (RFC 9110, 5.5); libmicrohttpd leaves them there. */
    while (value_len > 0 && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--;
    if (value_len < len && !(value = arena_strndup(&request->arena, value, value_len)))
        return -1;
    if (request->header_count == exchange->header_cap) {
        size_t cap = exchange->header_cap ? exchange->header_cap * 2 : 16;
        struct header *grown = arena_alloc(&request->arena, cap * sizeof(*grown));

        if (!grown)
            return -1;
        if (request->header_count > 0)
            memcpy(grown, request->headers, request->header_count * sizeof(*grown));
        request->headers = grown;
        exchange->header_cap = cap;
    }
    request->headers[request->header_count++] = (struct header){name, value};
    if (header_is(name, "X-Request-Id") && request_id_is_valid(value))
        strcpy(request->id, value);
    return 0;
}

enum exchange_body exchange_head(struct exchange *exchange, bool has_body, int64_t body_length)
{
    if (exchange_admit(exchange) == 0)
        exchange_begin(exchange, has_body, body_length);
    return exchange->status ? EXCHANGE_BODY_DISCARD : EXCHANGE_BODY_PUSH;
}

void exchange_answer(struct exchange *exchange, struct response *response)
{
    if (exchange->status) {
        response_deinit(response);
        return;
    }
    answer_complete(exchange, response);
    exchange->status = response->status;
    exchange->events->on_response(exchange->net, response);
}

void exchange_refuse(struct exchange *exchange, const struct err *err, const struct field_errors *errors,
                     const char *name, const char *value)
{
    struct response response;

    if (exchange->status)
        return;
    if (problem_response(&response, 0, err, errors, exchange->request.id) == 0 && name &&
        response_header(&response, name, value) < 0)
        log_error("pipeline", "out of memory for the header %s", name);
    exchange_answer(exchange, &response);
}

void exchange_fail(struct exchange *exchange, const struct err *err)
{
    exchange_refuse(exchange, err, NULL, NULL, NULL);
}

static void write_access_log(const struct exchange *exchange, bool sent)
{
    const struct request *request = &exchange->request;
    struct log_context who = {.request_id = request->id, .route = request->route ? request->route->name : NULL};
    double ms = (double)(loop_clock_ns() - exchange->started_ns) / 1e6;
    int path_len = (int)strcspn(request->target, "?");

    if (path_len > LOGGED_PATH_MAX)
        path_len = LOGGED_PATH_MAX;
    if (exchange->status)
        log_write(LOG_LEVEL_INFO, "http", &who, "%s %.*s %d %.1f ms%s", request->method, path_len, request->target,
                  exchange->status, ms, sent ? "" : " (cut off)");
    else
        log_write(LOG_LEVEL_INFO, "http", &who, "%s %.*s - %.1f ms (client left)", request->method, path_len,
                  request->target, ms);
}

void exchange_free(struct exchange *exchange, bool sent)
{
    struct task *task = exchange->task;

    exchange->task = NULL;
    exchange->task_over = true;
    if (task)
        task_cancel(task);
    if (exchange->request.body) {
        exchange->body.wake = NULL;
        body_drop(&exchange->body);
    }
    exchange_drop_job(exchange);
    if (log_enabled(LOG_LEVEL_INFO))
        write_access_log(exchange, sent);
    if (exchange->counted)
        exchange->pipeline->running--;
    list_remove(&exchange->node);
    buf_deinit(&exchange->text);
    arena_deinit(&exchange->parsed);
    tables_unref(exchange->tables);
    give_back(exchange);
}
