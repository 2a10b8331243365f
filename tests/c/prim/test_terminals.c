/* prim/terminals: both threads' sides together, with real programs on real terminals. Most tests turn both loops on one
 * thread; the last ones give each its own. */
#include "prim/terminals.h"

#include "base/mailbox.h"
#include "prim/terminal.h"
#include "process_fixture.h"

#include <pthread.h>

enum { TEXT_BYTES = 64 * 1024 };

static struct fixture fixture;
static struct loop *own;
static struct terminals *terminals;

static void open_limited(const struct process_limits *limits)
{
    struct err err;
    fixture_open(&fixture, 512);
    if (limits != NULL) {
        process_table_free(fixture.table); /* of two, each would reap the other's */
        fixture.table = process_table_new(fixture.loop, limits, environ, &err);
    }
    own = loop_new();
    terminals = terminals_new(fixture.loop, own, fixture.table, &err);
    assert_non_null(terminals);
}

static int set_up(void **state)
{
    (void)state;
    open_limited(NULL);
    return 0;
}

/* The order in which the server ends. */
static int tear_down(void **state)
{
    (void)state;
    process_table_free(fixture.table);
    fixture.table = NULL;
    terminals_free(terminals);
    assert_int_equal(loop_handles_open(own), 0);
    loop_free(own);
    fixture_close(&fixture);
    return 0;
}

static struct process *try_start(const char *command, struct err *err)
{
    struct process_spec spec = spec_of(&fixture, command);
    spec.kind = PROCESS_TERMINAL;
    return terminals_start(terminals, &spec, (struct terminal_size){.cols = 80, .rows = 24}, err);
}

/* With a reference. */
static struct process *start_on(const char *command)
{
    struct err err = {0};
    struct process *process = try_start(command, &err);
    if (process == NULL)
        fail_msg("%s", err.text);
    return process_ref(process);
}

static void turn(void)
{
    loop_turn(own, false);
    loop_turn(fixture.loop, false);
    usleep(200);
}

static struct process_exit end_of(struct process *process)
{
    struct process_exit exit;
    while (process_state(process) != PROCESS_DRAINED)
        turn();
    assert_int_equal(process_exit(process, &exit), 0);
    return exit;
}

static struct terminal *lookup(const char *id)
{
    return terminals_lookup(terminals, id, strlen(id));
}

static const struct terminal_view *view_of(const struct process *process);

/* --- a client that reads all */

struct reader {
    struct terminal_client client;
    char text[TEXT_BYTES];
    size_t len;
    struct terminal_gap gap; /* the last one */
    bool ended;
    struct process_exit exit;
};

static void read_on(void *ctx)
{
    struct reader *reader = ctx;
    struct terminal_gap gap;
    size_t len;
    do {
        len = terminal_read(&reader->client, reader->text + reader->len, TEXT_BYTES - reader->len, &gap);
        reader->len += len;
        if (gap.from != gap.to)
            reader->gap = gap;
    } while (len > 0 || gap.from != gap.to);
    const struct terminal_exit *exit = terminal_exit(reader->client.terminal);
    if (exit != NULL && !terminal_has_more(&reader->client)) {
        reader->ended = true;
        reader->exit = exit->exit;
    }
}

static void ignore(void *ctx)
{
    (void)ctx;
}

static const struct terminal_client_events reader_events = {
    .on_output = read_on, .on_resized = ignore, .on_input = ignore};

static struct reader *reader_on(struct terminal *terminal, int64_t since)
{
    struct err err = {0};
    struct reader *reader = calloc(1, sizeof(*reader));
    assert_non_null(terminal);
    reader->client.events = &reader_events;
    reader->client.ctx = reader;
    assert_int_equal(terminal_attach(terminal, &reader->client, since, &err), 0);
    return reader;
}

static struct reader *reader_of(const struct process *process)
{
    return reader_on(lookup(process_id(process)), TERMINAL_SINCE_ALL);
}

static void reader_free(struct reader *reader)
{
    terminal_detach(&reader->client);
    free(reader);
}

static void wait_for(struct reader *reader, const char *text)
{
    while (memmem(reader->text, reader->len, text, strlen(text)) == NULL)
        turn();
}

static void read_to_end(struct reader *reader)
{
    while (!reader->ended)
        turn();
}

static void type(struct reader *reader, const char *text)
{
    struct err err = {0};
    assert_int_equal(terminal_input(&reader->client, text, strlen(text), &err), 0);
}

/* --- what the main thread lists */

struct listing {
    size_t count;
    const struct process *processes[16];
    struct terminal_view *views[16];
};

static void list_one(struct process *process, struct terminal_view *view, void *ctx)
{
    struct listing *listing = ctx;
    assert_true(listing->count < 16);
    listing->processes[listing->count] = process;
    listing->views[listing->count++] = view;
}

static struct listing list_all(void)
{
    struct listing listing = {0};
    terminals_each(terminals, list_one, &listing);
    return listing;
}

static const struct terminal_view *view_of(const struct process *process)
{
    struct listing listing = list_all();
    for (size_t i = 0; i < listing.count; i++)
        if (listing.processes[i] == process)
            return listing.views[i];
    fail_msg("not listed");
    return NULL;
}

/* --- the life of one */

static void output_and_exit_reach_a_client(void **state)
{
    (void)state;
    struct process *process = start_on("read line; echo got $line; exit 5");
    struct reader *reader = reader_of(process);
    type(reader, "it\n");
    read_to_end(reader);
    reader->text[reader->len] = '\0';
    assert_string_equal(reader->text, "it\r\ngot it\r\n");
    assert_int_equal(reader->exit.exit_code, 5);
    assert_int_equal(end_of(process).exit_code, 5);
    reader_free(reader);
    process_unref(process);
}

static void one_that_ended_is_still_found(void **state)
{
    (void)state;
    struct process *process = start_on("printf hello; exit 6");
    assert_int_equal(end_of(process).exit_code, 6);
    assert_ptr_equal(terminals_find(terminals, process_id(process)), process);
    assert_int_equal(atomic_load(&view_of(process)->offset), 5);
    struct reader *reader = reader_of(process);
    read_to_end(reader);
    assert_int_equal(reader->len, 5);
    assert_memory_equal(reader->text, "hello", 5);
    assert_int_equal(reader->exit.exit_code, 6);
    reader_free(reader);
    process_unref(process);
}

static void nobody_attached_loses_no_exit(void **state)
{
    (void)state;
    struct process *process = start_on("seq 100000; exit 7");
    assert_int_equal(end_of(process).exit_code, 7);
    assert_int_equal(process_table_living_terminals(fixture.table), 0);
    assert_int_equal(atomic_load(&view_of(process)->offset), 588895 + 100000); /* each line has its \r */
    process_unref(process);
}

static void they_are_listed_in_the_order_of_their_start(void **state)
{
    (void)state;
    struct process *processes[3];
    for (int i = 0; i < 3; i++)
        processes[i] = start_on(i == 1 ? "true" : "sleep 90");
    end_of(processes[1]);
    struct listing listing = list_all();
    assert_int_equal(listing.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(listing.processes[i], processes[i]);
        assert_int_equal(terminal_view_size(listing.views[i]).cols, 80);
        assert_int_equal(terminal_view_size(listing.views[i]).rows, 24);
        process_unref(processes[i]);
    }
}

static void an_id_is_found_only_as_it_is(void **state)
{
    (void)state;
    struct process *process = start_on("sleep 91"), *other = start_on("sleep 91");
    const char *id = process_id(process);
    char pid[16], longer[32];
    snprintf(pid, sizeof(pid), "%d", (int)process_pid(process));
    snprintf(longer, sizeof(longer), "%sx", id);
    assert_non_null(lookup(id));
    assert_non_null(lookup(process_id(other)));
    assert_ptr_not_equal(lookup(id), lookup(process_id(other)));
    assert_null(lookup(pid));
    assert_null(lookup(longer));
    assert_null(lookup(""));
    assert_null(terminals_lookup(terminals, id, strlen(id) - 1));
    assert_null(terminals_find(terminals, pid));
    assert_null(terminals_find(terminals, longer));
    process_unref(process);
    process_unref(other);
}

/* --- closing */

static void who_is_attached_sees_the_end_of_one_that_is_closed(void **state)
{
    (void)state;
    struct process *process = start_on("trap 'echo bye; exit 3' HUP; echo ready; while :; do read -t 0.05 x; done");
    struct reader *reader = reader_of(process);
    wait_for(reader, "ready\r\n");
    terminals_close(terminals, process);
    assert_null(terminals_find(terminals, process_id(process)));
    assert_null(lookup(process_id(process)));
    assert_int_equal(list_all().count, 0);
    read_to_end(reader);
    reader->text[reader->len] = '\0';
    assert_string_equal(reader->text, "ready\r\nbye\r\n");
    assert_int_equal(reader->exit.exit_code, 3);
    assert_int_equal(end_of(process).exit_code, 3);
    assert_ptr_equal(process_find(fixture.table, process_id(process)), process);
    reader_free(reader);
    process_unref(process);
}

static void a_closed_one_ends_without_clients(void **state)
{
    (void)state;
    size_t fds = count_fds();
    struct process *process = start_on("sleep 92");
    terminals_close(terminals, process);
    assert_int_equal(end_of(process).signal, SIGHUP);
    terminals_close(terminals, process); /* harmless */
    while (count_fds() > fds)            /* the master: the terminal thread lets go of it a mail later */
        turn();
    process_unref(process);
}

static void an_ended_one_can_be_closed(void **state)
{
    (void)state;
    size_t fds = count_fds();
    struct process *process = start_on("exit 4");
    assert_int_equal(end_of(process).exit_code, 4);
    terminals_close(terminals, process);
    assert_null(lookup(process_id(process)));
    while (count_fds() > fds)
        turn();
    assert_int_equal(end_of(process).exit_code, 4);
    process_unref(process);
}

static void a_hundred_cycles_leave_nothing(void **state)
{
    (void)state;
    size_t fds = 0;
    for (int i = 0; i < 100; i++) {
        struct process *process = start_on("sleep 93");
        struct reader *reader = i % 2 == 0 ? reader_of(process) : NULL;
        terminals_close(terminals, process);
        assert_int_equal(end_of(process).signal, SIGHUP);
        if (reader != NULL)
            reader_free(reader);
        process_unref(process);
        if (i == 0)
            fds = count_fds();
        while (count_fds() > fds)
            turn();
    }
    assert_int_equal(process_table_living_terminals(fixture.table), 0);
}

/* --- limits and failures */

static void what_cannot_be_started_leaves_nothing(void **state)
{
    (void)state;
    struct err err = {0};
    size_t fds = count_fds();
    char *missing[] = {"nosuchcmd_x", NULL};
    struct process_spec spec = spec_of(&fixture, NULL);
    spec.kind = PROCESS_TERMINAL;
    spec.argv = missing;
    assert_null(terminals_start(terminals, &spec, (struct terminal_size){.cols = 80, .rows = 24}, &err));
    assert_int_equal(err.code, ERR_EXECUTABLE_NOT_FOUND);
    assert_int_equal(list_all().count, 0);
    assert_int_equal(count_fds(), fds);
}

static void the_living_are_limited(void **state)
{
    (void)state;
    tear_down(state);
    open_limited(&(struct process_limits){.living_max = 8, .terminals_max = 1, .ended_processes_max = 8});
    struct err err = {0};
    struct process *process = start_on("sleep 94");
    assert_null(try_start("true", &err));
    assert_int_equal(err.code, ERR_TOO_MANY_TERMINALS);
    assert_int_equal(err_code_status(err.code), 429);
    terminals_close(terminals, process);
    end_of(process);
    process_unref(process);
    process_unref(start_on("true"));
}

static void what_the_table_forgets_is_found_no_more(void **state)
{
    (void)state;
    tear_down(state);
    open_limited(&(struct process_limits){
        .living_max = 8, .terminals_max = 8, .ended_processes_max = 2, .ended_output_max_bytes = 64 << 20});
    struct process *processes[3];
    struct reader *reader = NULL;
    for (int i = 0; i < 3; i++) {
        processes[i] = start_on("printf hello");
        end_of(processes[i]);
        if (i == 0)
            reader = reader_of(processes[i]);
    }
    assert_null(terminals_find(terminals, process_id(processes[0])));
    assert_null(lookup(process_id(processes[0])));
    assert_non_null(lookup(process_id(processes[1])));
    assert_int_equal(list_all().count, 2);
    read_to_end(reader); /* who is attached has it still */
    assert_memory_equal(reader->text, "hello", 5);
    reader_free(reader);
    for (int i = 0; i < 3; i++)
        process_unref(processes[i]);
}

static void the_oldest_output_is_given_up(void **state)
{
    (void)state;
    tear_down(state);
    open_limited(&(struct process_limits){
        .living_max = 8, .terminals_max = 8, .ended_processes_max = 8, .ended_output_max_bytes = 1 << 20});
    struct process *processes[2];
    for (int i = 0; i < 2; i++) {
        processes[i] = start_on("head -c 700000 /dev/zero | tr '\\0' x; exit 2");
        end_of(processes[i]);
    }
    struct reader *first = reader_on(lookup(process_id(processes[0])), 0);
    read_to_end(first);
    assert_int_equal(first->len, 0);
    assert_int_equal(first->gap.from, 0);
    assert_int_equal(first->gap.to, 700000);
    assert_int_equal(first->exit.exit_code, 2);
    assert_int_equal(atomic_load(&view_of(processes[0])->kept_bytes), 0);
    assert_true(atomic_load(&view_of(processes[1])->kept_bytes) >= 700000);
    reader_free(first);
    for (int i = 0; i < 2; i++)
        process_unref(processes[i]);
}

/* --- tickets */

static void a_ticket_opens_its_terminal_once(void **state)
{
    (void)state;
    struct process *process = start_on("sleep 95"), *other = start_on("sleep 96");
    char ticket[TICKET_BYTES], second[TICKET_BYTES];
    const char *id = process_id(process);
    terminals_ticket(terminals, process, ticket);
    terminals_ticket(terminals, process, second);
    assert_int_equal(strspn(ticket, "0123456789abcdef"), 32);
    assert_int_equal(strlen(ticket), 32);
    assert_string_not_equal(ticket, second);
    assert_true(terminals_ticket_matches(terminals, ticket, 32, id)); /* before any loop has turned */
    assert_false(terminals_ticket_matches(terminals, ticket, 31, id));
    assert_false(terminals_ticket_take(terminals, ticket, 32, process_id(other)));
    assert_true(terminals_ticket_take(terminals, ticket, 32, id));
    assert_false(terminals_ticket_matches(terminals, ticket, 32, id));
    assert_false(terminals_ticket_take(terminals, ticket, 32, id));
    assert_true(terminals_ticket_take(terminals, second, 32, id));
    process_unref(process);
    process_unref(other);
}

/* --- the end of all */

/* What was posted and never delivered, programs that live, and one that ended while nobody turned the loops. */
static void all_goes_while_they_live(void **state)
{
    (void)state;
    char ticket[TICKET_BYTES];
    struct process *living = start_on("sleep 97"), *closed = start_on("sleep 98"), *ended = start_on("true");
    terminals_ticket(terminals, living, ticket);
    while (process_state(ended) == PROCESS_RUNNING)
        loop_turn(fixture.loop, true); /* only this one: the other thread is gone */
    terminals_close(terminals, closed);
    process_unref(start_on("sleep 99"));
    process_unref(living);
    process_unref(closed);
    process_unref(ended);
}

static void a_drained_one_may_lose_its_table(void **state)
{
    (void)state;
    struct process *process = start_on("true");
    while (process_state(process) == PROCESS_RUNNING)
        loop_turn(fixture.loop, true);
    for (int i = 0; i < 100; i++) { /* "drained" is posted, and never delivered to this loop */
        loop_turn(own, false);
        usleep(2000);
    }
    assert_int_equal(process_state(process), PROCESS_EXITED);
    process_unref(process);
}

/* --- two threads */

struct thread {
    pthread_t pthread;
    struct mailbox *mailbox; /* of its loop */
    struct mail stop;
};

static void on_stop(struct mail *mail)
{
    (void)mail;
    loop_stop(own);
}

static void *run_own(void *ctx)
{
    (void)ctx;
    loop_run(own);
    return NULL;
}

static void thread_start(struct thread *thread)
{
    struct err err;
    thread->mailbox = mailbox_new(own, &err);
    assert_non_null(thread->mailbox);
    assert_int_equal(pthread_create(&thread->pthread, NULL, run_own, NULL), 0);
}

static void thread_stop(struct thread *thread)
{
    mailbox_post(thread->mailbox, &thread->stop, on_stop);
    assert_int_equal(pthread_join(thread->pthread, NULL), 0);
    mailbox_free(thread->mailbox);
}

static struct process_exit wait_threaded(struct process *process)
{
    return run_to_end(&fixture, process);
}

/* A client on the other thread that attaches, reads to the end and says so. */
struct visit {
    struct mail mail;
    struct mailbox *back;
    char id[TERMINAL_ID_MAX], ticket[TICKET_BYTES];
    bool ticket_good, found, over; /* over: the main thread's */
    struct reader *reader;
    struct loop_timer look;
};

static void on_visit_over(struct mail *mail)
{
    LIST_ENTRY(mail, struct visit, mail)->over = true;
}

static void look(void *ctx)
{
    struct visit *visit = ctx;
    if (visit->reader != NULL && !visit->reader->ended) {
        loop_timer_start(own, &visit->look, 1, look, visit);
        return;
    }
    if (visit->reader != NULL)
        terminal_detach(&visit->reader->client);
    mailbox_post(visit->back, &visit->mail, on_visit_over);
}

/* From the loop, as requests come, and not from inside a mail: looking up delivers mail. */
static void visit_now(void *ctx)
{
    struct visit *visit = ctx;
    visit->ticket_good = terminals_ticket_take(terminals, visit->ticket, strlen(visit->ticket), visit->id);
    struct terminal *terminal = lookup(visit->id);
    visit->found = terminal != NULL;
    visit->reader = visit->found ? reader_on(terminal, TERMINAL_SINCE_ALL) : NULL;
    look(visit);
}

static void on_visit(struct mail *mail)
{
    struct visit *visit = LIST_ENTRY(mail, struct visit, mail);
    loop_timer_start(own, &visit->look, 0, visit_now, visit);
}

static void visit_start(struct visit *visit, struct thread *thread, struct mailbox *back, const struct process *process)
{
    *visit = (struct visit){.back = back};
    strcpy(visit->id, process_id(process));
    terminals_ticket(terminals, process, visit->ticket);
    mailbox_post(thread->mailbox, &visit->mail, on_visit);
}

static void two_threads_lose_nothing(void **state)
{
    (void)state;
    enum { AT_ONCE = 10, ROUNDS = 20, BYTES = 20480 };
    struct thread thread = {0};
    struct err err;
    struct process *processes[AT_ONCE];
    static struct visit visits[AT_ONCE];
    struct mailbox *back = mailbox_new(fixture.loop, &err);
    thread_start(&thread);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            processes[i] = start_on("printf 'hello%.0s' $(seq 4096); exit 5");
            visit_start(&visits[i], &thread, back, processes[i]);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            assert_int_equal(wait_threaded(processes[i]).exit_code, 5);
            assert_int_equal(atomic_load(&view_of(processes[i])->offset), BYTES);
            while (!visits[i].over)
                loop_turn(fixture.loop, true);
            assert_true(visits[i].ticket_good);
            assert_true(visits[i].found);
            assert_int_equal(visits[i].reader->len, BYTES);
            assert_int_equal(visits[i].reader->exit.exit_code, 5);
            free(visits[i].reader);
            terminals_close(terminals, processes[i]);
            process_unref(processes[i]);
        }
    }
    thread_stop(&thread);
    mailbox_free(back);
}

static void two_threads_close_while_clients_read(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct thread thread = {0};
    struct err err;
    struct process *processes[COUNT];
    static struct visit visits[COUNT];
    struct mailbox *back = mailbox_new(fixture.loop, &err);
    thread_start(&thread);
    for (int i = 0; i < COUNT; i++) {
        processes[i] = start_on("sleep 100");
        visit_start(&visits[i], &thread, back, processes[i]);
        terminals_close(terminals, processes[i]); /* the visit may come first or too late */
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(wait_threaded(processes[i]).signal, SIGHUP);
        while (!visits[i].over)
            loop_turn(fixture.loop, true);
        assert_true(visits[i].ticket_good);
        if (visits[i].found)
            assert_int_equal(visits[i].reader->exit.signal, SIGHUP);
        free(visits[i].reader);
        process_unref(processes[i]);
    }
    thread_stop(&thread);
    mailbox_free(back);
}

static void the_end_of_all_waits_for_the_other_thread(void **state)
{
    (void)state;
    struct thread thread = {0};
    struct process *processes[5];
    bool done = false;
    thread_start(&thread);
    for (int i = 0; i < 5; i++)
        processes[i] = start_on(i % 2 == 0 ? "sleep 101" : "exec bash --norc -i");
    process_table_end_all(fixture.table, 60 * 1000, set_true, &done);
    while (!done)
        loop_turn(fixture.loop, true);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(process_state(processes[i]), PROCESS_DRAINED);
        process_unref(processes[i]);
    }
    thread_stop(&thread);
}

#define TERMINALS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TERMINALS_TEST(output_and_exit_reach_a_client),
        TERMINALS_TEST(one_that_ended_is_still_found),
        TERMINALS_TEST(nobody_attached_loses_no_exit),
        TERMINALS_TEST(they_are_listed_in_the_order_of_their_start),
        TERMINALS_TEST(an_id_is_found_only_as_it_is),
        TERMINALS_TEST(who_is_attached_sees_the_end_of_one_that_is_closed),
        TERMINALS_TEST(a_closed_one_ends_without_clients),
        TERMINALS_TEST(an_ended_one_can_be_closed),
        TERMINALS_TEST(a_hundred_cycles_leave_nothing),
        TERMINALS_TEST(what_cannot_be_started_leaves_nothing),
        TERMINALS_TEST(the_living_are_limited),
        TERMINALS_TEST(what_the_table_forgets_is_found_no_more),
        TERMINALS_TEST(the_oldest_output_is_given_up),
        TERMINALS_TEST(a_ticket_opens_its_terminal_once),
        TERMINALS_TEST(all_goes_while_they_live),
        TERMINALS_TEST(a_drained_one_may_lose_its_table),
        TERMINALS_TEST(two_threads_lose_nothing),
        TERMINALS_TEST(two_threads_close_while_clients_read),
        TERMINALS_TEST(the_end_of_all_waits_for_the_other_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
