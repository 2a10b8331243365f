/* prim/terminal_rows, with terminals on two loops that one thread turns. */
#include "process_fixture.h"

#include "prim/terminal_rows.h"

#include <time.h>

enum { ANSWER_MAX_BYTES = 4 << 20, TURN_PAUSE_NS = 1000 * 1000 };

static struct fixture fixture;
static struct loop *own;
static struct terminals *terminals;
static struct buf answer;
static atomic_bool cancelled;

static int set_up(void **state)
{
    struct err err;
    (void)state;
    fixture_open(&fixture, 512);
    own = loop_new();
    terminals = terminals_new(fixture.loop, own, fixture.table, &err);
    assert_non_null(terminals);
    buf_init(&answer, ANSWER_MAX_BYTES);
    atomic_store(&cancelled, false);
    return 0;
}

static void turn(void)
{
    struct timespec pause = {.tv_nsec = TURN_PAUSE_NS};
    loop_turn(fixture.loop, false);
    loop_turn(own, false);
    nanosleep(&pause, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&answer);
    process_table_free(fixture.table);
    terminals_free(terminals);
    assert_int_equal(loop_handles_open(own), 0);
    loop_free(own);
    struct err err;
    struct process_limits limits = {.living_max = 1};
    fixture.table = process_table_new(fixture.loop, &limits, environ, &err); /* which the fixture frees */
    assert_non_null(fixture.table);
    fixture_close(&fixture);
    return 0;
}

static struct process *open_terminal(const char *command, struct terminal_size size, const char *tag)
{
    struct err err = {0};
    struct process_spec spec = spec_of(&fixture, command);
    spec.kind = PROCESS_TERMINAL;
    spec.capture_bytes = 0;
    spec.tag = tag;
    struct process *process = terminals_start(terminals, &spec, size, &err);
    if (process == NULL)
        fail_msg("%s", err.text);
    return process_ref(process);
}

static void run_until_drained(struct process *process)
{
    while (process_state(process) != PROCESS_DRAINED)
        turn();
}

static const char *listed(bool with_tickets)
{
    struct err err = {0};
    struct terminal_rows rows;
    buf_reset(&answer);
    assert_int_equal(terminal_rows_take(&rows, terminals, with_tickets), 0);
    assert_int_equal(terminal_rows_write(&rows, &answer, &cancelled, &err), 0);
    terminal_rows_free(&rows);
    assert_int_equal(buf_append(&answer, "", 1), 0);
    return answer.data;
}

/* Turns both loops until the list holds that text. */
static void wait_for(const char *text)
{
    while (strstr(listed(false), text) == NULL)
        turn();
}

static const char *member(const char *list, const char *name)
{
    static char text[8][256];
    static size_t next;
    char *out = text[next++ % 8], start[64];
    snprintf(start, sizeof(start), "\"%s\":", name);
    const char *from = strstr(list, start);
    assert_non_null(from);
    from += strlen(start);
    size_t len = *from == '"' ? strcspn(from + 1, "\"") + 2 : strcspn(from, ",}");
    assert_true(len < sizeof(text[0]));
    memcpy(out, from, len);
    out[len] = '\0';
    return out;
}

static void there_may_be_none(void **state)
{
    (void)state;
    assert_string_equal(listed(false), "[]");
    assert_string_equal(listed(true), "[]");
}

static void tells_of_one_that_lives(void **state)
{
    (void)state;
    char expected[512];
    struct process *process = open_terminal("printf abc; exec sleep 3000", (struct terminal_size){100, 30}, "a\"b");
    wait_for("\"foreground\":\"sleep\",\"cwd\":\"/tmp\",\"clients\":0,\"offset\":3,");
    snprintf(expected, sizeof(expected),
             "[{\"id\":\"%s\",\"pid\":%d,\"tag\":\"a\\\"b\",\"command\":\"printf abc; exec sleep 3000\",\"argv\":null,"
             "\"cols\":100,\"rows\":30,\"foreground\":\"sleep\",\"cwd\":\"/tmp\",\"clients\":0,\"offset\":3,"
             "\"created_at\":\"",
             process_id(process), (int)process_pid(process));
    const char *list = listed(false);
    assert_memory_equal(list, expected, strlen(expected));
    assert_string_equal(member(list, "created_at"), member(list, "started_at"));
    assert_true(strcmp(member(list, "last_activity_at"), member(list, "created_at")) >= 0);
    assert_non_null(strstr(list, ",\"exit_code\":null,\"signal\":null,\"timed_out\":false,"));
    assert_null(strstr(list, "ticket"));
    process_unref(process);
}

static void tells_of_one_that_has_ended(void **state)
{
    (void)state;
    struct process *process = open_terminal("printf abcde; exit 7", (struct terminal_size){1, 1000}, NULL);
    run_until_drained(process);
    const char *list = listed(false);
    assert_non_null(strstr(list, "\"tag\":null,"));
    assert_non_null(
        strstr(list, "\"cols\":1,\"rows\":1000,\"foreground\":null,\"cwd\":null,\"clients\":0,\"offset\":5,"));
    assert_non_null(strstr(list, ",\"exit_code\":7,\"signal\":null,\"timed_out\":false,"));
    terminals_close(terminals, process);
    assert_string_equal(listed(false), "[]");
    process_unref(process);
}

/* What is held by rows stays whole when the terminal is closed and forgotten before they are written. */
static void rows_outlive_the_list(void **state)
{
    (void)state;
    struct err err = {0};
    struct terminal_rows rows;
    struct process *process = open_terminal("exec sleep 3000", (struct terminal_size){80, 24}, NULL);
    assert_int_equal(terminal_rows_take(&rows, terminals, false), 0);
    terminals_close(terminals, process);
    run_until_drained(process);
    process_unref(process);
    for (int i = 0; i < 300; i++) { /* more than the process table keeps */
        process = open_terminal("true", (struct terminal_size){80, 24}, NULL);
        terminals_close(terminals, process);
        run_until_drained(process);
        process_unref(process);
    }
    assert_int_equal(terminal_rows_write(&rows, &answer, &cancelled, &err), 0);
    assert_int_equal(buf_append(&answer, "", 1), 0);
    assert_non_null(strstr(answer.data, "\"command\":\"exec sleep 3000\",\"argv\":null,\"cols\":80,\"rows\":24,"
                                        "\"foreground\":null,\"cwd\":null,"));
    terminal_rows_free(&rows);
}

static void makes_a_ticket_for_each(void **state)
{
    (void)state;
    char tickets[2][64];
    struct process *processes[2];
    for (int i = 0; i < 2; i++)
        processes[i] = open_terminal("exec sleep 3000", (struct terminal_size){80, 24}, NULL);
    const char *list = listed(true);
    const char *second = strstr(list + 2, "{\"id\":");
    assert_non_null(second);
    snprintf(tickets[0], sizeof(tickets[0]), "%s", member(list, "ticket"));
    snprintf(tickets[1], sizeof(tickets[1]), "%s", member(second, "ticket"));
    for (int i = 0; i < 2; i++) {
        size_t len = strlen(tickets[i]) - 2; /* without quotes */
        assert_int_equal(len, TICKET_BYTES - 1);
        assert_false(terminals_ticket_matches(terminals, tickets[i] + 1, len, process_id(processes[1 - i])));
        assert_true(terminals_ticket_take(terminals, tickets[i] + 1, len, process_id(processes[i])));
        process_unref(processes[i]);
    }
}

static void stops_early(void **state)
{
    (void)state;
    struct err err = {0};
    struct terminal_rows rows;
    struct process *process = open_terminal("exec sleep 3000", (struct terminal_size){80, 24}, NULL);
    process_unref(process);
    assert_int_equal(terminal_rows_take(&rows, terminals, false), 0);
    atomic_store(&cancelled, true);
    assert_int_equal(terminal_rows_write(&rows, &answer, &cancelled, &err), 0);
    assert_int_equal(answer.len, 2);
    atomic_store(&cancelled, false);
    struct buf small;
    buf_init(&small, 100);
    assert_int_equal(terminal_rows_write(&rows, &small, &cancelled, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    buf_deinit(&small);
    terminal_rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(there_may_be_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_of_one_that_lives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_of_one_that_has_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_outlive_the_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(makes_a_ticket_for_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stops_early, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
