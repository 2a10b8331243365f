/* Contexts over a tiny interpreter in sh: order, lost states, room for new ones, spares, leaving. */
#include "prim/contexts.h"

#include "worker_fixture.h"

#include <sys/stat.h>

/* `open` and `execute` as the protocol has them. A cell's code says what it does: die, slow, result. What it counts is
 * its state. */
static const char interpreter[] =
    "n=0; say() { printf '{\"jsonrpc\":\"2.0\",%s}\\n' \"$1\" >&3; }\n"
    "while IFS= read -r line <&3; do\n"
    "  id=${line#*'\"id\":'}; id=${id%%,*}\n"
    "  case $line in\n"
    "  *'\"method\":\"open\"'*) opened=$line; say '\"id\":'$id',\"result\":{\"engine\":\"sh\",\"version\":\"1.2\"}' "
    ";;\n"
    "  *'\"code\":\"die'*) exit 7 ;;\n"
    "  *'\"code\":\"slow'*) n=$((n+1)); sleep 1000 ;;\n"
    "  *'\"method\":\"execute\"'*) n=$((n+1))\n"
    "    case $line in *'\"code\":\"result'*)\n"
    "      say '\"method\":\"result\",\"params\":{\"id\":'$id',\"data\":{\"text/plain\":\"r\"}}' ;; esac\n"
    "    case $opened in *'\"HOME\"'*) n=HOME ;; *'\"cwd\":\"/somewhere\"'*) ;; *) n=no-open ;; esac\n"
    "    say '\"id\":'$id',\"result\":'$n ;;\n"
    "  esac\n"
    "done\n";

/* Ends before it answers `open`, until it was started as often as its first argument says. */
static char starts_path[] = "/tmp/contexts-XXXXXX";
static const char shaky[] = "echo >>\"$2\"; [ $(wc -l <\"$2\") -ge \"$1\" ] || { read line <&3; exit 9; }; eval \"$3\"";

static struct contexts *contexts;

struct test_cell {
    struct context_cell cell;
    char params[128], answer[32], results[64];
    bool begun, done;
    pid_t pid;
};

static struct worker_spec spec_of_program(const char *name, char *const *argv)
{
    return (struct worker_spec){.name = name,
                                .kind = PROCESS_CODE,
                                .argv = argv,
                                .package = "a-package",
                                .client_env = true,
                                .calls_at_once = 1,
                                .grace_ms = 200};
}

static int set_up(void **state)
{
    (void)state;
    char *const argv[] = {"sh", "-c", (char *)interpreter, NULL}, *const missing[] = {"no-such-program-x", NULL};
    char *const second[] = {"sh", "-c", (char *)shaky, "sh", "2", starts_path, (char *)interpreter, NULL};
    char *const third[] = {"sh", "-c", (char *)shaky, "sh", "3", starts_path, (char *)interpreter, NULL};
    strcpy(starts_path + strlen(starts_path) - 6, "XXXXXX");
    int fd = mkstemp(starts_path);
    assert_true(fd >= 0);
    close(fd);
    worker_fixture_open(&fixture);
    const struct worker_spec languages[] = {spec_of_program("sh", argv), spec_of_program("other", argv),
                                            spec_of_program("missing", missing), spec_of_program("second", second),
                                            spec_of_program("third", third)};
    contexts = contexts_new(fixture.base.loop, fixture.workers, fixture.base.table, "/somewhere", languages, 5);
    assert_non_null(contexts);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    contexts_free(contexts);
    worker_fixture_close(&fixture);
    unlink(starts_path);
    return 0;
}

static void on_begin(struct context_cell *cell)
{
    struct test_cell *test = cell->ctx;
    assert_false(test->begun);
    test->begun = true;
    test->pid = process_pid(cell->process);
}

static void on_result(struct context_cell *cell, const char *bundle, size_t len)
{
    struct test_cell *test = cell->ctx;
    size_t used = strlen(test->results);
    snprintf(test->results + used, sizeof(test->results) - used, "%.*s;", (int)len, bundle);
}

static void on_done(struct context_cell *cell)
{
    struct test_cell *test = cell->ctx;
    assert_false(test->done);
    test->done = true;
    snprintf(test->answer, sizeof(test->answer), "%.*s", (int)cell->answer_len,
             cell->answer != NULL ? cell->answer : "");
}

static void prepare(struct test_cell *test, const char *code)
{
    *test = (struct test_cell){0};
    snprintf(test->params, sizeof(test->params), "{\"code\":\"%s\"}", code);
    test->cell = (struct context_cell){.params = test->params,
                                       .params_len = strlen(test->params),
                                       .ctx = test,
                                       .on_begin = on_begin,
                                       .on_result = on_result,
                                       .on_done = on_done};
}

static void begin(struct test_cell *test, const char *name, const char *code)
{
    struct err err;
    prepare(test, code);
    if (contexts_run(contexts, "sh", name, &test->cell, &err) != 0)
        fail_msg("%s", err.text);
}

static void finish(struct test_cell *test)
{
    while (!test->done)
        loop_turn(fixture.base.loop, true);
    contexts_leave(&test->cell);
}

/* Runs one, and checks what it counted and whether it was told of a lost state. */
static pid_t expect(const char *name, const char *count, bool restarted)
{
    struct test_cell test;
    begin(&test, name, "count");
    finish(&test);
    assert_int_equal(test.cell.outcome, WORKER_ANSWERED);
    assert_string_equal(test.answer, count);
    assert_int_equal(test.cell.restarted, restarted);
    assert_string_equal(test.cell.engine, "sh");
    return test.pid;
}

static void expect_refused(const char *language, const char *name, enum err_code code, const char *field)
{
    struct test_cell test;
    struct err err = {0};
    prepare(&test, "count");
    assert_int_equal(contexts_run(contexts, language, name, &test.cell, &err), -1);
    assert_int_equal(err.code, code);
    assert_string_equal(err.field, field);
    contexts_leave(&test.cell); /* harmless */
}

static void keeps_a_state_by_name(void **state)
{
    (void)state;
    pid_t pid = expect("a", "1", false);
    assert_int_equal(expect("a", "2", false), pid);
    assert_int_not_equal(expect("b", "1", false), pid);
    assert_int_equal(expect("a", "3", false), pid);
    assert_int_equal(contexts_count(contexts), 2);
}

static void languages_have_names_of_their_own(void **state)
{
    (void)state;
    struct test_cell test;
    struct err err;
    expect("a", "1", false);
    prepare(&test, "count");
    assert_int_equal(contexts_run(contexts, "other", "a", &test.cell, &err), 0);
    finish(&test);
    assert_string_equal(test.answer, "1");
}

static void cells_of_a_context_take_turns(void **state)
{
    (void)state;
    struct test_cell first, second, third;
    begin(&first, "a", "result");
    begin(&second, "a", "count");
    begin(&third, "a", "count");
    while (!first.done)
        loop_turn(fixture.base.loop, true);
    assert_string_equal(first.results, "{\"text/plain\":\"r\"};");
    turn_for_ms(&fixture.base, 50);
    assert_false(second.begun); /* the first still has its turn */
    contexts_leave(&first.cell);
    contexts_leave(&second.cell); /* which waits */
    finish(&third);
    assert_false(second.begun);
    assert_string_equal(third.answer, "2");
}

static void a_lost_state_is_told_once(void **state)
{
    (void)state;
    struct test_cell test;
    expect("a", "1", false);
    begin(&test, "a", "die");
    finish(&test);
    assert_int_equal(test.cell.outcome, WORKER_ENDED);
    assert_int_equal(test.cell.exit.exit_code, 7);
    assert_false(test.cell.restarted);
    pid_t pid = expect("a", "1", true);
    expect("a", "2", false);
    kill(pid, SIGKILL); /* while it is idle */
    turn_for_ms(&fixture.base, 200);
    expect("a", "1", true);
    expect("a", "2", false);
}

static void reset_begins_anew(void **state)
{
    (void)state;
    struct test_cell test;
    pid_t pid = expect("a", "1", false);
    struct err err;
    prepare(&test, "count");
    test.cell.reset = true;
    assert_int_equal(contexts_run(contexts, "sh", "a", &test.cell, &err), 0);
    finish(&test);
    assert_string_equal(test.answer, "1");
    assert_true(test.cell.restarted);
    assert_int_not_equal(test.pid, pid);
    prepare(&test, "count");
    test.cell.reset = true; /* there is nothing to lose */
    assert_int_equal(contexts_run(contexts, "sh", "new", &test.cell, &err), 0);
    finish(&test);
    assert_false(test.cell.restarted);
}

static void the_longest_idle_one_makes_room(void **state)
{
    (void)state;
    for (int i = 0; i < CONTEXTS_MAX; i++)
        expect((char[]){'c', (char)('0' + i), '\0'}, "1", false);
    expect("c0", "2", false);
    expect("ninth", "1", false); /* in the place of c1 */
    assert_int_equal(contexts_count(contexts), CONTEXTS_MAX);
    expect("c0", "3", false);
    expect("c1", "1", true); /* of c2 */
    expect("c1", "2", false);
    expect("c3", "2", false);
}

static void none_gives_way_while_it_is_busy(void **state)
{
    (void)state;
    struct test_cell cells[CONTEXTS_MAX];
    for (int i = 0; i < CONTEXTS_MAX; i++)
        begin(&cells[i], (char[]){'c', (char)('0' + i), '\0'}, "slow");
    expect_refused("sh", "ninth", ERR_TOO_MANY_REQUESTS, "");
    for (int i = 0; i < CONTEXTS_MAX; i++) {
        while (!cells[i].begun)
            loop_turn(fixture.base.loop, true);
        contexts_leave(&cells[i].cell);
    }
    expect_refused("sh", "ninth", ERR_TOO_MANY_REQUESTS, ""); /* they are still being interrupted */
    turn_for_ms(&fixture.base, 600);
    expect("ninth", "1", false);
    expect("c7", "1", true); /* it did not stop, and was ended */
}

static void too_many_waiting_cells_are_refused(void **state)
{
    (void)state;
    struct test_cell running, waiting[CONTEXT_WAITING_MAX];
    begin(&running, "a", "slow");
    for (int i = 0; i < CONTEXT_WAITING_MAX; i++)
        begin(&waiting[i], "a", "count");
    expect_refused("sh", "a", ERR_TOO_MANY_REQUESTS, "");
    for (int i = 0; i < CONTEXT_WAITING_MAX; i++)
        contexts_leave(&waiting[i].cell);
    contexts_leave(&running.cell);
    turn_for_ms(&fixture.base, 20);
    assert_int_equal(contexts_count(contexts), 0); /* nothing ever ran in it */
}

static void a_late_cell_ends_its_process(void **state)
{
    (void)state;
    struct test_cell test;
    struct err err;
    prepare(&test, "slow");
    test.cell.timeout_ms = 1;
    assert_int_equal(contexts_run(contexts, "sh", "a", &test.cell, &err), 0);
    finish(&test);
    assert_int_equal(test.cell.outcome, WORKER_LATE);
    expect("a", "1", true);
}

static void a_spare_is_started_ahead(void **state)
{
    (void)state;
    expect("a", "1", false);
    assert_int_equal(process_table_living(fixture.base.table), 1);
    turn_for_ms(&fixture.base, 1500);
    assert_int_equal(process_table_living(fixture.base.table), 2);
    assert_int_equal(contexts_count(contexts), 1);
    expect("b", "1", false);
    assert_int_equal(process_table_living(fixture.base.table), 2); /* b took it */
    turn_for_ms(&fixture.base, 1500);
    assert_int_equal(process_table_living(fixture.base.table), 3);
}

static off_t starts(void)
{
    struct stat stat_buf;
    assert_int_equal(stat(starts_path, &stat_buf), 0);
    return stat_buf.st_size;
}

static void one_that_ends_before_it_opened_is_tried_once_more(void **state)
{
    (void)state;
    struct test_cell test;
    struct err err;
    prepare(&test, "count");
    assert_int_equal(contexts_run(contexts, "second", "a", &test.cell, &err), 0);
    finish(&test);
    assert_int_equal(test.cell.outcome, WORKER_ANSWERED);
    assert_string_equal(test.answer, "1");
    assert_false(test.cell.restarted);
    assert_int_equal(starts(), 2);
}

static void one_that_never_opens_is_unavailable(void **state)
{
    (void)state;
    struct test_cell test;
    struct err err;
    prepare(&test, "count");
    assert_int_equal(contexts_run(contexts, "third", "a", &test.cell, &err), 0);
    finish(&test);
    assert_int_equal(test.cell.outcome, WORKER_FAILED);
    assert_int_equal(test.cell.err.code, ERR_UNAVAILABLE);
    assert_int_equal(starts(), 2);
    prepare(&test, "count"); /* the next cell may do better */
    assert_int_equal(contexts_run(contexts, "third", "a", &test.cell, &err), 0);
    finish(&test);
    assert_string_equal(test.answer, "1");
}

static void refuses_names(void **state)
{
    (void)state;
    char longest[CONTEXT_NAME_MAX + 2];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    expect_refused("ruby", "a", ERR_INVALID_REQUEST, "language");
    expect_refused("sh", "", ERR_INVALID_REQUEST, "context");
    expect_refused("sh", "a/b", ERR_INVALID_REQUEST, "context");
    expect_refused("sh", longest, ERR_INVALID_REQUEST, "context");
    longest[CONTEXT_NAME_MAX] = '\0';
    expect(longest, "1", false);
    assert_int_equal(contexts_count(contexts), 1);
}

static void a_missing_program_takes_no_place(void **state)
{
    (void)state;
    struct test_cell test;
    struct err err;
    prepare(&test, "count");
    assert_int_equal(contexts_run(contexts, "missing", "a", &test.cell, &err), 0);
    finish(&test);
    assert_int_equal(test.cell.outcome, WORKER_FAILED);
    assert_int_equal(test.cell.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(test.cell.err.text, "a-package"));
    turn_for_ms(&fixture.base, 20);
    assert_int_equal(contexts_count(contexts), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_a_state_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(languages_have_names_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cells_of_a_context_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_state_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reset_begins_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_longest_idle_one_makes_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_gives_way_while_it_is_busy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_waiting_cells_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_cell_ends_its_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_spare_is_started_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_ends_before_it_opened_is_tried_once_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_never_opens_is_unavailable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_program_takes_no_place, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
