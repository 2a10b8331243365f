/* A pipeline with C functions in the place of Lua handlers, and what net would have got from it. */
#ifndef ABX_TESTS_PIPELINE_FIXTURE_H
#define ABX_TESTS_PIPELINE_FIXTURE_H

#include "request/pipeline.h"

#include "../fake_script.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static const struct group on = {.name = "core", .enabled = true}, off = {.name = "browser"};
static struct schema_field echo_fields[] = {
    {.name = "count", .schema = {.type = SCHEMA_INTEGER}},
    {.name = "text", .schema = {.type = SCHEMA_STRING, .required = true}},
};
static struct schema_field run_fields[] = {{.name = "name", .schema = {.type = SCHEMA_STRING, .required = true}}};
static struct schema_field file_fields[] = {{.name = "path", .schema = {.type = SCHEMA_PATH}}};

enum { HEALTH, ECHO, WAIT, STREAM, FAIL, UPLOAD, FILE_ANSWER };
#define PARAMS(list)                                                                                                   \
    {                                                                                                                  \
        .type = SCHEMA_OBJECT, .fields = list, .field_count = sizeof(list) / sizeof(list[0])                           \
    }
static struct route routes[] = {
    {.path = "/health", .name = "health", .group = &on, .params = {.type = SCHEMA_OBJECT}, .handler_ref = HEALTH},
    {.path = "/echo",
     .name = "echo",
     .group = &on,
     .auth_required = true,
     .method = METHOD_POST,
     .body = ROUTE_BODY_JSON,
     .params = PARAMS(echo_fields),
     .handler_ref = ECHO,
     .body_limit_bytes = 1 << 20},
    {.path = "/echo",
     .name = "echo.get",
     .group = &on,
     .auth_required = true,
     .params = PARAMS(echo_fields),
     .handler_ref = ECHO},
    {.path = "/run/{name}",
     .name = "run",
     .group = &on,
     .auth_required = true,
     .method = METHOD_POST,
     .body = ROUTE_BODY_JSON,
     .params = PARAMS(run_fields),
     .rest = "arguments",
     .handler_ref = ECHO},
    {.path = "/wait",
     .name = "wait",
     .group = &on,
     .auth_required = true,
     .params = {.type = SCHEMA_OBJECT},
     .handler_ref = WAIT},
    {.path = "/stream",
     .name = "stream",
     .group = &on,
     .auth_required = true,
     .params = {.type = SCHEMA_OBJECT},
     .handler_ref = STREAM},
    {.path = "/fail",
     .name = "fail",
     .group = &on,
     .auth_required = true,
     .params = {.type = SCHEMA_OBJECT},
     .handler_ref = FAIL},
    {.path = "/upload",
     .name = "upload",
     .group = &on,
     .auth_required = true,
     .method = METHOD_POST,
     .body = ROUTE_BODY_STREAM,
     .params = PARAMS(file_fields),
     .handler_ref = UPLOAD},
    {.path = "/file",
     .name = "file",
     .group = &on,
     .auth_required = true,
     .params = PARAMS(file_fields),
     .handler_ref = FILE_ANSWER},
    {.path = "/off", .name = "off", .group = &off, .auth_required = true, .params = {.type = SCHEMA_OBJECT}},
};
static struct generation generation = {.references = 1, .routes = routes, .count = sizeof(routes) / sizeof(routes[0])};

static struct loop *loop;
static struct pipeline *pipeline;
static struct task *waiting;
static char uploaded[64];
static size_t uploaded_len;

static inline void health(struct task *task)
{
    fake_reply(task, 200, "application/json", "{\"status\":\"ok\"}");
}

static inline void append_value(struct buf *out, const struct value *value)
{
    int failed = 0;

    if (value->type == VALUE_INT)
        failed = buf_printf(out, "%lld", (long long)value->as.integer);
    else if (value->type == VALUE_STRING)
        failed = buf_printf(out, "%.20s", value->as.string.text);
    else if (value->type == VALUE_OBJECT) {
        for (size_t i = 0; i < value->as.object.count; i++) {
            failed |= buf_printf(out, "%s=", value->as.object.members[i].name);
            append_value(out, &value->as.object.members[i].value);
            failed |= buf_append_text(out, ";");
        }
    }
    assert_int_equal(failed, 0);
}

static inline void echo(struct task *task)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    append_value(&text, &task->request->params);
    assert_int_equal(buf_append(&text, "", 1), 0);
    fake_reply(task, 200, "text/plain", text.data);
    buf_deinit(&text);
}

static inline void hang(struct task *task)
{
    waiting = task;
}

static inline void stream(struct task *task)
{
    waiting = task;
    fake_stream(task, "text/event-stream");
}

static inline void refuse(struct task *task)
{
    struct err err;

    err_set(&err, ERR_FILE_NOT_FOUND, "no such file: x");
    task->events->on_error(task->ctx, &err);
    fake_end(task);
}

static inline size_t on_upload_data(void *ctx, const char *bytes, size_t len)
{
    (void)ctx;
    if (len > 4)
        len = 4; /* the rest has to be offered again */
    memcpy(uploaded + uploaded_len, bytes, len);
    uploaded_len += len;
    return len;
}

static inline void on_upload_end(void *ctx, bool complete)
{
    fake_reply(ctx, complete ? 201 : 500, "text/plain", "stored");
}

static inline void upload(struct task *task)
{
    body_read(task->request->body, on_upload_data, on_upload_end, task);
}

static inline void file_answer(struct task *task)
{
    struct response response;

    response_init(&response);
    response.kind = RESPONSE_FILE;
    response.file = (struct response_file){.fd = dup(0), .size = 10, .modified_at.tv_sec = 784111777, .etag = "\"e\""};
    task->events->on_response(task->ctx, &response);
    response_deinit(&response);
    fake_end(task);
}

static fake_handler handlers[] = {health, echo, hang, stream, refuse, upload, file_answer};

/* What net would have got. */
static struct {
    int count, wakes;
    struct response response;
} got;

static inline void on_response(void *net, struct response *response)
{
    (void)net;
    if (got.count)
        response_deinit(&got.response);
    got.count++;
    got.response = *response;
    response_init(response);
}

static inline void on_wake(void *net)
{
    (void)net;
    got.wakes++;
}

static const struct exchange_events events = {on_response, on_wake};

static inline struct exchange *begin(const char *method, const char *target, const char *const *headers)
{
    struct exchange *exchange = exchange_new(pipeline, &events, NULL, method, target);

    if (got.count)
        response_deinit(&got.response);
    memset(&got, 0, sizeof(got));
    assert_non_null(exchange);
    for (; headers && *headers; headers += 2)
        assert_int_equal(exchange_header(exchange, headers[0], headers[1]), 0);
    return exchange;
}

static const char *const plain[] = {"Host", "localhost", "Authorization", "Bearer token", NULL};
static const char *const json[] = {
    "Host", "localhost", "Authorization", "Bearer token", "Content-Type", "application/json; charset=utf-8", NULL};
static const char *const anonymous[] = {"Host", "localhost", NULL};

/* A whole request; answers the status. body NULL: none. */
static inline int call(const char *method, const char *target, const char *const *headers, const char *body)
{
    struct exchange *exchange = begin(method, target, headers);
    size_t len = body ? strlen(body) : 0;

    if (exchange_head(exchange, body != NULL, body ? (int64_t)len : 0) == EXCHANGE_BODY_PUSH && body) {
        assert_int_equal(exchange_push(exchange, body, len), len);
        exchange_end(exchange);
    }
    for (int i = 0; i < 200 && !got.count; i++)
        loop_turn(loop, true);
    exchange_free(exchange, true);
    assert_int_equal(got.count, 1);
    return got.response.status;
}

static inline const char *body_text(void)
{
    assert_int_equal(buf_append(&got.response.bytes, "", 1), 0);
    got.response.bytes.len--;
    return got.response.bytes.data;
}

static inline const char *header(const char *name)
{
    const char *value = response_header_find(&got.response, name);

    return value ? value : "-";
}

static inline void assert_code(const char *code)
{
    char want[64];

    snprintf(want, sizeof(want), "\"code\":\"%s\"", code);
    if (!strstr(body_text(), want))
        fail_msg("%s is not in %s", want, body_text());
    assert_string_equal(header("Content-Type"), "application/problem+json");
}

static inline int set_up(void **state)
{
    static const char *const origins[] = {"https://app.example", NULL};
    static const struct auth_policy policy = {
        .token = "token", .loopback = true, .allowed_origins = origins, .rest_port = 8080};
    struct pipeline_options options = {.policy = &policy, .requests_max = 2};
    struct err err;

    (void)state;
    log_configure(LOG_LEVEL_OFF, true);
    fake_handlers = handlers;
    loop = options.loop = loop_new();
    pipeline = pipeline_new(&options, &err);
    if (!loop || !pipeline)
        return -1;
    pipeline_use(pipeline, &generation);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    if (got.count)
        response_deinit(&got.response);
    memset(&got, 0, sizeof(got));
    pipeline_free(pipeline);
    loop_free(loop);
    return generation.references == 1 && fake_living == 0 ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
