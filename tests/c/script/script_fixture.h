/* A folder of tables in a temporary directory, and a handler that runs in it: for the tests of script/. */
#ifndef ABX_TESTS_SCRIPT_FIXTURE_H
#define ABX_TESTS_SCRIPT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bind/bind.h"
#include "script/generation.h"
#include "script/task.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CORE_GROUP "return {name='core', description='d', always_on=true, public_routes=true}"
/* A routes file with one route whose handler has this body. */
#define ROUTE(body)                                                                                                    \
    "local json, time, text = require('abx.json'), require('abx.time'), require('abx.text')\n"                         \
    "return {group='core', {method='GET', path='/t', name='t', summary='s', deadline_ms=30000, "                       \
    "handler=function(req)\n" body "\nend}}"

struct fixture {
    char dir[64], lua_dir[80];
    struct loop *loop;
    struct faults faults;
    struct generation *generation;
    struct script_options options;
};

/* What became of one request. */
struct outcome {
    struct task *task;
    struct request request;
    bool responded, failed, ended;
    struct response response;
    struct err err;
};

static const struct script_binding fixture_bindings[] = {
    {"abx.json", bind_json_open}, {"abx.time", bind_time_open}, {"abx.text", bind_text_open}, {NULL, NULL}};

static void fixture_write(struct fixture *fixture, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
    for (char *slash = path + strlen(fixture->dir) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void fixture_open(struct fixture *fixture)
{
    *fixture = (struct fixture){.dir = "/tmp/script_test_XXXXXX"};
    assert_non_null(mkdtemp(fixture->dir));
    snprintf(fixture->lua_dir, sizeof(fixture->lua_dir), "%s/lua", fixture->dir);
    fixture_write(fixture, "lua/groups/core.lua", CORE_GROUP);
    fixture_write(fixture, "lua/routes/t.lua", ROUTE("return {}"));
    fixture->loop = loop_new();
    faults_init(&fixture->faults);
    fixture->options = (struct script_options){
        .loop = fixture->loop,
        .lua_dir = fixture->lua_dir,
        .bindings = fixture_bindings,
        .limits = {.cpu_ms = 300, .task_memory_bytes = 16 << 20, .load_cpu_ms = 2000},
    };
}

/* The faults as text; "" where it loaded. */
static inline const char *fixture_load(struct fixture *fixture)
{
    static char text[64 * 1024];
    generation_unref(fixture->generation);
    faults_deinit(&fixture->faults);
    faults_init(&fixture->faults);
    fixture->generation = generation_load(&fixture->options, &fixture->faults);
    size_t len = fixture->faults.text.len;
    assert_true(len < sizeof(text));
    memcpy(text, len ? fixture->faults.text.data : "", len);
    text[len] = '\0';
    assert_int_equal(fixture->generation == NULL, len > 0);
    return text;
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void fixture_close(struct fixture *fixture)
{
    generation_unref(fixture->generation);
    faults_deinit(&fixture->faults);
    assert_int_equal(loop_handles_open(fixture->loop), 0);
    loop_free(fixture->loop);
    nftw(fixture->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A turn that never blocks: libuv runs timers before it waits, and would wait for ever after the last one. */
static inline void fixture_turn(struct fixture *fixture)
{
    loop_turn(fixture->loop, false);
    usleep(200);
}

static inline void on_response(void *ctx, struct response *response)
{
    struct outcome *outcome = ctx;
    assert_false(outcome->responded || outcome->failed);
    outcome->responded = true;
    outcome->response = *response;
    response_init(response);
}

static inline void on_error(void *ctx, const struct err *err)
{
    struct outcome *outcome = ctx;
    assert_false(outcome->responded || outcome->failed);
    outcome->failed = true;
    outcome->err = *err;
}

static inline void on_end(void *ctx)
{
    struct outcome *outcome = ctx;
    assert_true(outcome->responded || outcome->failed);
    assert_false(outcome->ended);
    outcome->ended = true;
}

static inline void outcome_begin(struct fixture *fixture, struct outcome *outcome, const char *params)
{
    static const struct task_events events = {on_response, on_error, on_end};
    static struct header headers[] = {{"Accept", "text/event-stream"}, {"X-Two", "1"}, {"x-two", "2"}};
    struct err err;
    memset(outcome, 0, sizeof(*outcome));
    response_init(&outcome->response);
    arena_init(&outcome->request.arena, 1 << 20);
    strcpy(outcome->request.id, "rq-1");
    outcome->request.method = "GET";
    outcome->request.target = "/t?a=1";
    outcome->request.headers = headers;
    outcome->request.header_count = 3;
    outcome->request.route = generation_route(fixture->generation, 0);
    assert_int_equal(value_parse(&outcome->request.arena, params, strlen(params), &outcome->request.params, &err), 0);
    loop_turn(fixture->loop, false); /* the cached time */
    task_start(fixture->generation, outcome->request.route, &outcome->request, &events, outcome, &outcome->task);
}

static inline void outcome_end(struct outcome *outcome)
{
    response_deinit(&outcome->response);
    arena_deinit(&outcome->request.arena);
}

/* Loads a route with that handler and runs it to its end. What was answered: the body, or "code: text". */
static inline const char *run_handler(struct fixture *fixture, const char *routes)
{
    static char answer[64 * 1024];
    struct outcome outcome;
    fixture_write(fixture, "lua/routes/t.lua", routes);
    const char *faults = fixture_load(fixture);
    if (faults[0] != '\0')
        return faults;
    outcome_begin(fixture, &outcome, "{\"n\":1,\"list\":[],\"big\":9007199254740993}");
    while (!outcome.ended)
        fixture_turn(fixture);
    if (outcome.failed)
        snprintf(answer, sizeof(answer), "%s: %s", err_code_name(outcome.err.code), outcome.err.text);
    else
        snprintf(answer, sizeof(answer), "%.*s", (int)outcome.response.bytes.len,
                 outcome.response.bytes.data ? outcome.response.bytes.data : "");
    outcome_end(&outcome);
    return answer;
}

#endif
