/* What the tests of workers share: a base directory, the fake worker, and calls that keep what they were told. */
#ifndef ABX_TEST_WORKER_FIXTURE_H
#define ABX_TEST_WORKER_FIXTURE_H

#include "prim/worker.h"
#include "process_fixture.h"

struct worker_fixture {
    struct fixture base;
    struct confine *confine;
    struct workers *workers;
    char base_dir[64], private_dir[64]; /* where workers start, and where their private directories are made */
};

struct test_call {
    struct worker_call call;
    char *params;
    bool done, fresh;
    int sent;
    char *answer; /* of the end; NULL without one */
    char notices[256];
    pid_t pid;
    struct test_call **order; /* who is done is appended there */
    struct worker *retires;   /* for the test's own use */
};

static inline void worker_fixture_open(struct worker_fixture *fixture)
{
    struct err err;
    *fixture = (struct worker_fixture){.base_dir = "/tmp/worker-base-XXXXXX", .private_dir = "/tmp/worker-tmp-XXXXXX"};
    assert_non_null(mkdtemp(fixture->base_dir));
    assert_non_null(mkdtemp(fixture->private_dir));
    setenv("TMPDIR", fixture->private_dir, 1);
    setenv("XDG_CONFIG_HOME", "/etc", 1);
    fixture_open(&fixture->base, 512);
    fixture->confine = confine_new(fixture->base_dir, false, &err);
    assert_non_null(fixture->confine);
    fixture->workers = workers_new(fixture->base.loop, fixture->base.table, fixture->confine, &err);
    assert_non_null(fixture->workers);
}

/* Nothing is left of any process: private directories, descriptors, watches. */
static inline void worker_fixture_close(struct worker_fixture *fixture)
{
    workers_free(fixture->workers);
    confine_free(fixture->confine);
    assert_int_equal(rmdir(fixture->private_dir), 0);
    assert_int_equal(rmdir(fixture->base_dir), 0);
    fixture_close(&fixture->base);
}

static struct worker_fixture fixture;

static inline int worker_set_up(void **state)
{
    (void)state;
    worker_fixture_open(&fixture);
    return 0;
}

static inline int worker_tear_down(void **state)
{
    (void)state;
    worker_fixture_close(&fixture);
    return 0;
}

#define WORKER_TEST(name) cmocka_unit_test_setup_teardown(name, worker_set_up, worker_tear_down)

static inline struct worker *make_worker(struct worker_fixture *fixture, unsigned calls_at_once, const char *argument)
{
    char *argv[] = {ABX_BINARY_DIR "/tests/c/fake_worker", (char *)argument, NULL};
    const struct worker_spec spec = {.name = "fake",
                                     .kind = PROCESS_CODE,
                                     .argv = argv,
                                     .package = "fake-worker",
                                     .calls_at_once = calls_at_once,
                                     .memory_max_bytes = 1 << 30,
                                     .fds_max = 64,
                                     .grace_ms = 200};
    struct worker *worker = worker_new(fixture->workers, &spec);
    assert_non_null(worker);
    return worker;
}

static inline void on_test_sent(struct worker_call *call)
{
    struct test_call *test = call->ctx;
    test->sent++;
    test->fresh = call->fresh;
    test->pid = process_pid(call->process);
}

static inline void on_test_notice(struct worker_call *call, const char *method, size_t method_len, const char *params,
                                  size_t len)
{
    struct test_call *test = call->ctx;
    size_t used = strlen(test->notices);
    snprintf(test->notices + used, sizeof(test->notices) - used, "%.*s%.*s;", (int)method_len, method, (int)len,
             params);
}

static inline void on_test_done(struct worker_call *call)
{
    struct test_call *test = call->ctx;
    assert_false(test->done);
    test->done = true;
    test->answer = call->answer != NULL ? strndup(call->answer, call->answer_len) : NULL;
    if (test->order != NULL) {
        while (*test->order != NULL)
            test->order++;
        *test->order = test;
    }
}

static inline struct test_call *make_call(const char *method, const char *params)
{
    struct test_call *test = calloc(1, sizeof(*test));
    test->params = strdup(params);
    test->call = (struct worker_call){.method = method,
                                      .params = test->params,
                                      .params_len = strlen(params),
                                      .ctx = test,
                                      .on_sent = on_test_sent,
                                      .on_notice = on_test_notice,
                                      .on_done = on_test_done};
    return test;
}

static inline void start_call(struct worker *worker, struct test_call *test)
{
    struct err err;
    if (worker_call_start(worker, &test->call, &err) != 0)
        fail_msg("%s", err.text);
}

static inline struct test_call *ask(struct worker *worker, const char *method, const char *params)
{
    struct test_call *test = make_call(method, params);
    start_call(worker, test);
    return test;
}

static inline void finish_call(struct worker_fixture *fixture, struct test_call *test)
{
    while (!test->done)
        loop_turn(fixture->base.loop, true);
}

/* Runs one to its end, which is to be this; the caller frees it. */
static inline struct test_call *run_call(struct worker_fixture *fixture, struct worker *worker, const char *method,
                                         const char *params, enum worker_outcome outcome)
{
    struct test_call *test = ask(worker, method, params);
    finish_call(fixture, test);
    if (test->call.outcome != outcome)
        fail_msg("%s: outcome %d: %s", method, test->call.outcome, test->call.err.text);
    return test;
}

static inline void free_call(struct test_call *test)
{
    free(test->answer);
    free(test->params);
    free(test);
}

#endif
