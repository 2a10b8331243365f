/* prim/worker: every way in which a process ends, and what it may do and leave while it lives. */
#include "worker_fixture.h"

#include <errno.h>
#include <sys/stat.h>

/* The worker answers as if nothing had been, from another process; `fresh` tells the first call of it, and no other. */
static void expect_restart(struct worker *worker, bool fresh)
{
    struct test_call *call = run_call(&fixture, worker, "echo", "{\"again\":1}", WORKER_ANSWERED);
    assert_string_equal(call->answer, "{\"again\":1}");
    assert_int_equal(call->fresh, fresh);
    free_call(call);
    call = run_call(&fixture, worker, "echo", "{}", WORKER_ANSWERED);
    assert_false(call->fresh);
    free_call(call);
}

static void tells_how_a_process_ended(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call =
        run_call(&fixture, worker, "exit", "{\"code\":3,\"say\":\"it is the matter\"}", WORKER_ENDED);
    assert_int_equal(call->call.exit.exit_code, 3);
    assert_int_equal(call->call.exit.signal, 0);
    assert_int_equal(call->call.err.code, ERR_INTERNAL);
    assert_string_equal(call->call.err.text, "fake ended with exit code 3: it is the matter");
    assert_null(call->answer);
    free_call(call);
    expect_restart(worker, false); /* that one had never answered */
    call = run_call(&fixture, worker, "crash", "{}", WORKER_ENDED);
    assert_int_equal(call->call.exit.signal, SIGSEGV);
    assert_int_equal(call->call.exit.exit_code, 128 + SIGSEGV);
    assert_non_null(strstr(call->call.err.text, "fake was ended by signal 11"));
    free_call(call);
    expect_restart(worker, true);
}

/* The words that tell why, not those that come last. */
static void tells_what_was_said_last(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = run_call(&fixture, worker, "throw", "{}", WORKER_ENDED);
    assert_string_equal(call->call.err.text, "fake ended with exit code 1: Error: it is the matter");
    free_call(call);
    call = run_call(&fixture, worker, "exit", "{\"code\":3,\"say\":\"Node.js v20.20.2\"}", WORKER_ENDED);
    assert_string_equal(call->call.err.text, "fake ended with exit code 3: first line");
    free_call(call);
}

static void delivers_an_answer_that_was_the_last_thing(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = ask(worker, "answer_and_die", "{}"), *next = ask(worker, "echo", "{\"n\":2}");
    finish_call(&fixture, call);
    assert_int_equal(call->call.outcome, WORKER_ANSWERED);
    assert_string_equal(call->answer, "\"last words\"");
    finish_call(&fixture, next); /* sent to the one that dies, or to the next: one of both, never lost */
    assert_true(next->call.outcome == WORKER_ANSWERED || next->call.outcome == WORKER_ENDED);
    free_call(call);
    free_call(next);
}

static void fails_only_the_calls_that_the_process_had(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *first = ask(worker, "exit", "{\"code\":1}"), *second = ask(worker, "echo", "{\"n\":2}");
    finish_call(&fixture, second);
    assert_int_equal(first->call.outcome, WORKER_ENDED);
    assert_int_equal(second->call.outcome, WORKER_ANSWERED);
    assert_string_equal(second->answer, "{\"n\":2}");
    free_call(first);
    free_call(second);
}

static void kills_at_the_deadline(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 2, NULL);
    free_call(run_call(&fixture, worker, "echo", "{}", WORKER_ANSWERED));
    struct test_call *call = make_call("hang", "{}");
    call->call.deadline_ms = 100;
    start_call(worker, call);
    struct test_call *beside = ask(worker, "echo", "{}"); /* it takes two, and reads none while it hangs */
    finish_call(&fixture, beside);
    assert_true(call->done);
    assert_int_equal(call->call.outcome, WORKER_LATE);
    assert_int_equal(call->call.err.code, ERR_UPSTREAM_TIMEOUT);
    assert_string_equal(call->call.err.text, "fake had not answered hang after 100 ms");
    assert_int_equal(call->call.exit.signal, SIGKILL);
    assert_int_equal(beside->call.outcome, WORKER_ENDED);
    free_call(call);
    free_call(beside);
    expect_restart(worker, true);
}

static void is_killed_when_asked(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = ask(worker, "hang", "{}");
    while (call->sent == 0)
        loop_turn(fixture.base.loop, true);
    worker_kill(worker);
    worker_kill(worker);
    finish_call(&fixture, call);
    assert_int_equal(call->call.outcome, WORKER_ENDED);
    assert_int_equal(call->call.exit.signal, SIGKILL);
    free_call(call);
    expect_restart(worker, false);
}

static void ends_who_breaks_the_protocol(void **state)
{
    (void)state;
    static const char *const garbage[] = {"no json", "[1]", "{'id':1}", ""};
    struct worker *worker = make_worker(&fixture, 1, NULL);
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        char params[64];
        snprintf(params, sizeof(params), "{\"text\":\"%s\"}", garbage[i]);
        struct test_call *call = run_call(&fixture, worker, "garbage", params, WORKER_ENDED);
        assert_string_equal(call->call.err.text, "fake was ended by signal 9 as it broke the protocol");
        free_call(call);
        expect_restart(worker, i > 0);
    }
    struct test_call *call = run_call(&fixture, worker, "too_long", "{}", WORKER_ENDED);
    assert_string_equal(call->call.err.text, "fake was ended by signal 9 as it sent a line that is too long");
    free_call(call);
    expect_restart(worker, true);
    call = run_call(&fixture, worker, "strangers", "{}", WORKER_ANSWERED);
    assert_string_equal(call->answer, "\"mine\"");
    assert_string_equal(call->notices, "");
    free_call(call);
    call = run_call(&fixture, worker, "close", "{}", WORKER_ENDED);
    assert_string_equal(call->call.err.text, "fake was ended by signal 9 as it closed its channel");
    free_call(call);
    expect_restart(worker, true);
}

/* It lives, and its channel is open, but nothing goes there any more: not seen, the loop would never rest again. */
static void ends_who_does_not_listen(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = run_call(&fixture, worker, "deaf", "{}", WORKER_ANSWERED);
    assert_string_equal(call->answer, "\"what?\"");
    free_call(call);
    call = run_call(&fixture, worker, "echo", "{}", WORKER_ENDED);
    assert_string_equal(call->call.err.text, "fake was ended by signal 9 as it does not read its channel");
    free_call(call);
    expect_restart(worker, true);
}

static void tells_which_package_is_missing(void **state)
{
    (void)state;
    char *argv[] = {"no-such-program-x", NULL};
    struct worker_spec spec = {.name = "snake", .kind = PROCESS_CODE, .argv = argv, .package = "snake3"};
    struct worker *worker = worker_new(fixture.workers, &spec);
    struct test_call *call = run_call(&fixture, worker, "echo", "{}", WORKER_FAILED);
    struct err err;
    assert_int_equal(call->call.err.code, ERR_UNAVAILABLE);
    assert_string_equal(call->call.err.text, "snake needs the program no-such-program-x, which is not here; the "
                                             "package snake3 brings it");
    assert_int_equal(call->sent, 0);
    free_call(call);
    assert_int_equal(worker_warm(worker, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    spec.package = NULL;
    worker = worker_new(fixture.workers, &spec);
    call = run_call(&fixture, worker, "echo", "{}", WORKER_FAILED);
    assert_int_equal(call->call.err.code, ERR_UNAVAILABLE);
    assert_null(strstr(call->call.err.text, "package"));
    free_call(call);
}

static void has_surroundings_of_its_own(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = run_call(&fixture, worker, "surroundings", "{}", WORKER_ANSWERED);
    char expected[512], home[128] = "", tmp[128] = "";
    sscanf(call->answer, "{\"home\":\"%127[^\"]\",\"tmp\":\"%127[^\"]\"", home, tmp);
    assert_memory_equal(home, fixture.private_dir, strlen(fixture.private_dir));
    assert_string_equal(strrchr(home, '/'), "/home");
    assert_string_equal(strrchr(tmp, '/'), "/tmp");
    assert_int_equal(strrchr(home, '/') - home, strrchr(tmp, '/') - tmp);
    assert_memory_equal(home, tmp, strrchr(home, '/') - home);
    snprintf(
        expected, sizeof(expected),
        "{\"home\":\"%s\",\"tmp\":\"%s\",\"mode\":700,\"above\":700,\"cwd\":\"%s\",\"data\":\"%d\",\"files\":\"64\","
        "\"xdg\":false,\"own\":\"\",\"id\":\"%s\"}",
        home, tmp, confine_base_dir(fixture.confine), 1 << 30, process_id(worker_process(worker)));
    assert_string_equal(call->answer, expected);
    assert_int_equal(access(home, F_OK), 0);
    free_call(call);
    worker_retire(worker);
    while (access(home, F_OK) == 0)
        loop_turn(fixture.base.loop, true);
    assert_int_equal(errno, ENOENT);
}

static void removes_what_it_left(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct test_call *call = run_call(&fixture, worker, "fill", "{}", WORKER_ANSWERED);
    assert_string_equal(call->answer, "true");
    free_call(call); /* worker_fixture_close finds the directory empty */
    assert_int_equal(access("/etc/passwd", F_OK), 0);
}

/* Of a server that was killed; what is held, or only looks like it, stays. */
static void removes_what_another_server_left(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct err err;
    char left[96], made[96], other[96], file[128], *home;
    snprintf(left, sizeof(left), "%s/abxd-worker-left00", fixture.private_dir);
    snprintf(made, sizeof(made), "%s/abxd-made-XXXXXX", fixture.private_dir);
    snprintf(other, sizeof(other), "%s/abxd-other-XXXXXX", fixture.private_dir);
    assert_non_null(mkdtemp(made));
    assert_non_null(mkdtemp(other));
    snprintf(file, sizeof(file), "%s/home", made);
    assert_int_equal(mkdir(file, 0500), 0);
    assert_int_equal(rename(made, left),
                     0); /* whole from its first moment on, as the fixture's own sweep may still run */
    struct test_call *call = run_call(&fixture, worker, "surroundings", "{}", WORKER_ANSWERED);
    assert_int_equal(sscanf(call->answer, "{\"home\":\"%m[^\"]", &home), 1);
    free_call(call);
    struct workers *next = workers_new(fixture.base.loop, fixture.base.table, fixture.confine, &err);
    assert_non_null(next);
    workers_free(next); /* waits for it */
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(access(home, F_OK), 0);
    assert_int_equal(rmdir(other), 0);
    free(home);
}

static bool lives(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static void ends_what_it_left_running(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    free_call(run_call(&fixture, worker, "orphan", "{}", WORKER_ANSWERED));
    struct test_call *call = run_call(&fixture, worker, "surroundings", "{}", WORKER_ANSWERED);
    char home[128] = "", path[160];
    sscanf(call->answer, "{\"home\":\"%127[^\"]", home);
    free_call(call);
    snprintf(path, sizeof(path), "%s/pid", home);
    FILE *file = fopen(path, "r");
    int pid = 0;
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_true(lives(pid));
    worker_kill(worker);
    while (lives(pid))
        loop_turn(fixture.base.loop, true);
    expect_restart(worker, true);
}

static void stands_ready_when_warm(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, NULL);
    struct err err;
    assert_int_equal(worker_warm(worker, &err), 0);
    assert_int_equal(worker_warm(worker, &err), 0);
    assert_int_equal(process_table_living(fixture.base.table), 1);
    pid_t pid = process_pid(worker_process(worker));
    struct test_call *call = run_call(&fixture, worker, "echo", "{}", WORKER_ANSWERED);
    assert_int_equal(call->pid, pid);
    assert_false(call->fresh);
    free_call(call);
}

/* One that ends when its channel closes has its grace; a stubborn one is killed after it. */
static void retires(void **state)
{
    (void)state;
    struct worker *polite = make_worker(&fixture, 1, NULL), *stubborn = make_worker(&fixture, 1, "stubborn");
    free_call(run_call(&fixture, polite, "echo", "{}", WORKER_ANSWERED));
    free_call(run_call(&fixture, stubborn, "echo", "{}", WORKER_ANSWERED));
    struct process *processes[] = {process_ref(worker_process(polite)), process_ref(worker_process(stubborn))};
    worker_retire(polite);
    worker_retire(stubborn);
    worker_retire(NULL);
    struct process_exit exit = run_to_end(&fixture.base, processes[0]);
    assert_int_equal(exit.exit_code, 0);
    assert_int_equal(exit.signal, 0);
    exit = run_to_end(&fixture.base, processes[1]);
    assert_int_equal(exit.signal, SIGKILL);
    process_unref(processes[0]);
    process_unref(processes[1]);
}

/* Calls and notices that wait, run, and are cancelled when everything ends. */
static void ends_with_calls_running(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, "stubborn"), *cold = make_worker(&fixture, 1, NULL),
                  *gone = make_worker(&fixture, 1, "stubborn");
    struct test_call *running = ask(worker, "hang", "{}"), *waiting = ask(worker, "echo", "{}");
    free_call(run_call(&fixture, gone, "echo", "{}", WORKER_ANSWERED));
    worker_retire(gone);
    while (running->sent == 0)
        loop_turn(fixture.base.loop, true);
    struct test_call *unsent = ask(cold, "echo", "{}");
    workers_free(fixture.workers);
    fixture.workers = NULL;
    struct test_call *calls[] = {running, waiting, unsent};
    for (size_t i = 0; i < 3; i++) {
        assert_true(calls[i]->done);
        assert_int_equal(calls[i]->call.outcome, WORKER_FAILED);
        assert_int_equal(calls[i]->call.err.code, ERR_SHUTTING_DOWN);
        worker_call_cancel(&calls[i]->call);
        free_call(calls[i]);
    }
}

static void ends_with_the_table(void **state)
{
    (void)state;
    struct worker *worker = make_worker(&fixture, 1, "stubborn");
    struct test_call *call = ask(worker, "hang", "{}");
    bool ended = false;
    while (call->sent == 0)
        loop_turn(fixture.base.loop, true);
    process_table_end_all(fixture.base.table, 2000, set_true, &ended);
    while (!ended || !call->done)
        loop_turn(fixture.base.loop, true);
    assert_int_equal(call->call.outcome, WORKER_ENDED);
    assert_int_equal(call->call.exit.signal, SIGTERM);
    free_call(call);
    call = run_call(&fixture, worker, "echo", "{}", WORKER_FAILED);
    assert_int_equal(call->call.err.code, ERR_SHUTTING_DOWN);
    free_call(call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKER_TEST(tells_how_a_process_ended),
        WORKER_TEST(tells_what_was_said_last),
        WORKER_TEST(delivers_an_answer_that_was_the_last_thing),
        WORKER_TEST(fails_only_the_calls_that_the_process_had),
        WORKER_TEST(kills_at_the_deadline),
        WORKER_TEST(is_killed_when_asked),
        WORKER_TEST(ends_who_breaks_the_protocol),
        WORKER_TEST(ends_who_does_not_listen),
        WORKER_TEST(tells_which_package_is_missing),
        WORKER_TEST(has_surroundings_of_its_own),
        WORKER_TEST(removes_what_it_left),
        WORKER_TEST(removes_what_another_server_left),
        WORKER_TEST(ends_what_it_left_running),
        WORKER_TEST(stands_ready_when_warm),
        WORKER_TEST(retires),
        WORKER_TEST(ends_with_calls_running),
        WORKER_TEST(ends_with_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
