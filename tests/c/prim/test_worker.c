/* prim/worker: calls, answers and notices, queues, and cancelling. */
#include "worker_fixture.h"

static void answers_and_refuses(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = ask(worker, "echo", "{\"a\":[1,\"\\u00e4\"],\n\"b\":null}");
    assert_null(worker_process(worker));
    finish_call(&fixture, call);
    assert_int_equal(call->call.outcome, WORKER_ANSWERED);
    assert_string_equal(call->answer, "{\"a\":[1,\"\\u00e4\"], \"b\":null}");
    assert_int_equal(call->sent, 1);
    assert_false(call->fresh);
    free_call(call);
    call = ask(worker, "refuse", "{}");
    finish_call(&fixture, call);
    assert_int_equal(call->call.outcome, WORKER_REFUSED);
    assert_string_equal(call->answer, "{\"code\":-32000,\"message\":\"no\"}");
    free_call(call);
    assert_int_equal(worker_calls(worker), 2);
    assert_int_equal(worker_load(worker), 0);
    assert_non_null(worker_process(worker));
    assert_string_equal(process_tag(worker_process(worker)), "fake");
    worker_retire(worker);
}

static void takes_calls_in_their_order(void **state)
{
    (void)state;
    struct worker *one = make_worker(&fixture, 1, NULL), *other = make_worker(&fixture, 1, NULL);
    struct test_call *order[4] = {0};
    struct test_call *calls[] = {ask(one, "echo", "{\"ms\":300}"), ask(one, "echo", "{\"n\":1}"),
                                 ask(one, "echo", "{\"n\":2}"), ask(other, "echo", "{\"n\":3}")};
    for (size_t i = 0; i < 4; i++)
        calls[i]->order = order;
    assert_int_equal(worker_load(one), 3);
    for (size_t i = 0; i < 4; i++)
        finish_call(&fixture, calls[i]);
    assert_ptr_equal(order[0], calls[3]); /* the other one's queue is its own */
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(order[i + 1], calls[i]);
    assert_string_equal(calls[2]->answer, "{\"n\":2}");
    assert_int_equal(calls[0]->pid, calls[2]->pid);
    assert_int_not_equal(calls[0]->pid, calls[3]->pid);
    for (size_t i = 0; i < 4; i++)
        free_call(calls[i]);
}

static void sends_as_many_at_once_as_it_may(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 2, NULL);
    struct test_call *first = ask(worker, "swap", "{}"), *second = ask(worker, "echo", "{}"),
                     *third = ask(worker, "echo", "{\"third\":1}");
    finish_call(&fixture, second);
    assert_string_equal(second->answer, "\"second\"");
    finish_call(&fixture, first);
    assert_string_equal(first->answer, "\"first\"");
    finish_call(&fixture, third);
    assert_string_equal(third->answer, "{\"third\":1}");
    free_call(first);
    free_call(second);
    free_call(third);
}

static void hands_on_notices_before_the_answer(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = ask(worker, "notices", "{\"count\":3}");
    finish_call(&fixture, call);
    assert_string_equal(call->notices, "result{\"n\":0,\"id\":1};result{\"n\":1,\"id\":1};result{\"n\":2,\"id\":1};");
    assert_string_equal(call->answer, "{\"sent\":true}");
    free_call(call);
    call = make_call("notices", "{\"count\":2}");
    call->call.on_notice = NULL;
    call->call.on_sent = NULL;
    start_call(worker, call);
    finish_call(&fixture, call);
    assert_string_equal(call->answer, "{\"sent\":true}");
    free_call(call);
}

static void takes_lines_of_any_size_and_in_any_pieces(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = ask(worker, "pieces", "{}");
    finish_call(&fixture, call);
    assert_string_equal(call->answer, "\"bit by bit\"");
    free_call(call);
    call = ask(worker, "big", "{}");
    finish_call(&fixture, call);
    assert_int_equal(call->call.outcome, WORKER_ANSWERED);
    assert_int_equal(strlen(call->answer), 20 * 1024 * 1024 + 2);
    free_call(call);
    /* The same the other way: more than any socket takes at once. */
    size_t len = 20 * 1024 * 1024;
    char *params = malloc(len + 1);
    memset(params, 'y', len);
    memcpy(params, "{\"text\":\"", 9);
    memcpy(params + len - 2, "\"}", 3);
    call = ask(worker, "echo", params);
    finish_call(&fixture, call);
    assert_int_equal(call->call.outcome, WORKER_ANSWERED);
    assert_int_equal(strcmp(call->answer, params), 0);
    free_call(call);
    free(params);
}

static void takes_many_calls(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    pid_t pid = 0;
    for (int i = 0; i < 200; i++) {
        char params[32];
        snprintf(params, sizeof(params), "{\"n\":%d}", i);
        struct test_call *call = ask(worker, "echo", params);
        finish_call(&fixture, call);
        assert_string_equal(call->answer, params);
        assert_true(pid == 0 || call->pid == pid);
        pid = call->pid;
        free_call(call);
    }
    assert_int_equal(worker_calls(worker), 200);
}

static void refuses_too_many_and_too_large_calls(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *calls[WORKER_WAITING_MAX + 1];
    struct err err;
    for (size_t i = 0; i < WORKER_WAITING_MAX; i++)
        calls[i] = ask(worker, "echo", "{}");
    calls[WORKER_WAITING_MAX] = make_call("echo", "{}");
    assert_int_equal(worker_call_start(worker, &calls[WORKER_WAITING_MAX]->call, &err), -1);
    assert_int_equal(err.code, ERR_TOO_MANY_REQUESTS);
    for (size_t i = 0; i < WORKER_WAITING_MAX; i++) {
        finish_call(&fixture, calls[i]);
        free_call(calls[i]);
    }
    calls[WORKER_WAITING_MAX]->call.params_len = WORKER_LINE_MAX_BYTES;
    assert_int_equal(worker_call_start(worker, &calls[WORKER_WAITING_MAX]->call, &err), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    worker_call_cancel(&calls[WORKER_WAITING_MAX]->call);
    assert_false(calls[WORKER_WAITING_MAX]->done);
    free_call(calls[WORKER_WAITING_MAX]);
}

/* --- cancelling */

static void forgets_a_waiting_call(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *first = ask(worker, "echo", "{\"ms\":100}"), *second = ask(worker, "echo", "{}"),
                     *third = ask(worker, "echo", "{}");
    worker_call_cancel(&second->call);
    worker_call_cancel(&second->call);
    assert_int_equal(worker_load(worker), 2);
    finish_call(&fixture, third);
    assert_true(first->done);
    assert_false(second->done);
    assert_int_equal(second->sent, 0);
    assert_int_equal(worker_calls(worker), 2);
    worker_call_cancel(&first->call);
    free_call(first);
    free_call(second);
    free_call(third);
}

static void asks_a_running_call_to_stop(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = ask(worker, "wait", "{}");
    while (call->sent == 0)
        loop_turn(fixture.base.loop, true);
    pid_t pid = call->pid;
    worker_call_cancel(&call->call);
    free_call(call);
    assert_int_equal(worker_load(worker), 1);
    call = ask(worker, "echo", "{\"next\":1}");
    finish_call(&fixture, call);
    assert_string_equal(call->answer, "{\"next\":1}");
    assert_int_equal(call->pid, pid);
    assert_false(call->fresh);
    free_call(call);
}

static void kills_what_does_not_stop(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, "stubborn");
    struct test_call *call = ask(worker, "echo", "{}");
    finish_call(&fixture, call);
    free_call(call);
    call = ask(worker, "wait", "{}");
    while (call->sent == 0)
        loop_turn(fixture.base.loop, true);
    pid_t pid = call->pid;
    worker_call_cancel(&call->call);
    free_call(call);
    call = ask(worker, "echo", "{\"next\":1}");
    finish_call(&fixture, call);
    assert_string_equal(call->answer, "{\"next\":1}");
    assert_int_not_equal(call->pid, pid);
    assert_true(call->fresh);
    free_call(call);
}

/* In the callbacks of a call the worker may be used, retired, too. */
static void on_done_and_retire(struct worker_call *call)
{
    struct test_call *test = call->ctx;
    worker_retire(test->retires);
    on_test_done(call);
}

static void may_be_retired_from_its_last_call(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = make_call("notices", "{\"count\":2}");
    call->retires = worker;
    call->call.on_done = on_done_and_retire;
    start_call(worker, call);
    finish_call(&fixture, call);
    assert_string_equal(call->answer, "{\"sent\":true}");
    free_call(call);
    turn_for_ms(&fixture.base, 50);
    assert_int_equal(process_table_living(fixture.base.table), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKER_TEST(answers_and_refuses),
        WORKER_TEST(takes_calls_in_their_order),
        WORKER_TEST(sends_as_many_at_once_as_it_may),
        WORKER_TEST(hands_on_notices_before_the_answer),
        WORKER_TEST(takes_lines_of_any_size_and_in_any_pieces),
        WORKER_TEST(takes_many_calls),
        WORKER_TEST(refuses_too_many_and_too_large_calls),
        WORKER_TEST(forgets_a_waiting_call),
        WORKER_TEST(asks_a_running_call_to_stop),
        WORKER_TEST(kills_what_does_not_stop),
        WORKER_TEST(may_be_retired_from_its_last_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
