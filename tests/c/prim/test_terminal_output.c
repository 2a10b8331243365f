/* prim/terminal: what clients read: offsets, whole characters, pace and gaps. */
#include "terminal_fixture.h"

#include "prim/ring.h"

static struct fixture fixture;
static struct test_client client, other;

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture);
    make_raw(&fixture);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    detach(&client);
    detach(&other);
    fixture_close(&fixture);
    return 0;
}

static void print_text(const char *text)
{
    print(&fixture, text, strlen(text));
    await_printed(&fixture);
}

static char *filled(size_t len, const char *pattern)
{
    size_t step = strlen(pattern);
    char *bytes = malloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = pattern[i % step];
    return bytes;
}

static void fill(size_t len, const char *pattern)
{
    char *bytes = filled(len, pattern);
    print_much(&fixture, bytes, len);
    free(bytes);
}

static void keeps_what_came_before_anybody_was_there(void **state)
{
    (void)state;
    print_text("one ");
    print_text("two");
    assert_int_equal(terminal_offset(fixture.terminal), 7);
    assert_int_equal(atomic_load(&fixture.view->offset), 7);
    assert_int_equal(atomic_load(&fixture.view->kept_bytes), 512);
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    assert_int_equal(client.reads, 0); /* never from inside a call */
    assert_int_equal(atomic_load(&fixture.view->clients), 1);
    await(&fixture, &client, "two");
    assert_string_equal(client.bytes, "one two");
    attach(&fixture, &other, 4);
    print_text(" three");
    assert_string_equal(client.bytes, "one two three");
    assert_string_equal(other.bytes, "two three");
    assert_int_equal(atomic_load(&fixture.view->clients), 2);
    detach(&other);
    attach(&fixture, &other, TERMINAL_SINCE_NONE);
    print_text(" four");
    assert_string_equal(other.bytes, " four");
    assert_int_equal(other.client.offset, 18);
}

static void refuses_an_offset_that_is_still_to_come(void **state)
{
    (void)state;
    struct err err = {0};
    print_text("abc");
    attach(&fixture, &client, 3);
    assert_int_equal(terminal_attach(fixture.terminal, &other.client, 4, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
    assert_string_equal(err.field, "since");
    assert_null(other.client.terminal);
}

static void many_bytes_make_few_reads(void **state)
{
    (void)state;
    char *bytes = filled(6000, "0123456789");
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print(&fixture, bytes, 6000); /* more than the kernel gives a read */
    await_printed(&fixture);
    assert_int_equal(client.len, 6000);
    assert_memory_equal(client.bytes, bytes, 6000);
    assert_int_equal(client.reads, 1);
    free(bytes);
}

/* Attaches, and prints what ends within a character. Once more where the machine stalled for as long as the terminal
 * waits for the rest. */
static void print_beginning(const char *text)
{
    uint64_t began_ns;
    do {
        detach(&client);
        attach(&fixture, &client, TERMINAL_SINCE_NONE);
        began_ns = loop_clock_ns();
        print_text(text);
    } while (loop_clock_ns() - began_ns >= 10 * 1000 * 1000);
}

static void a_character_comes_whole(void **state)
{
    (void)state;
    uint64_t began_ns;
    do {
        print_beginning("a\xF0\x9F");
        began_ns = loop_clock_ns();
        assert_string_equal(client.bytes, "a");
        assert_false(terminal_has_more(&client.client));
        print_text("\x98\x80z");
    } while (loop_clock_ns() - began_ns >= 10 * 1000 * 1000);
    assert_string_equal(client.bytes, "a\xF0\x9F\x98\x80z");
    assert_int_equal(client.reads, 2);
}

static void the_rest_of_a_character_is_not_awaited_for_long(void **state)
{
    (void)state;
    print_beginning("a\xC3");
    assert_string_equal(client.bytes, "a");
    await(&fixture, &client, "\xC3");
    print_text("\xA4");
    assert_string_equal(client.bytes, "a\xC3\xA4");
    assert_int_equal(client.reads, 3);
}

static void bytes_that_are_no_text_are_not_held_back(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print_text("a\xFF\x80\x80\x80");
    assert_string_equal(client.bytes, "a\xFF\x80\x80\x80");
}

static void small_reads_cut_no_character(void **state)
{
    (void)state;
    client.max = 5;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print_text("\xF0\x9F\x98\x80\xF0\x9F\x98\x81"
               "abc\xE2\x82\xAC"
               "d");
    assert_string_equal(client.bytes, "\xF0\x9F\x98\x80\xF0\x9F\x98\x81"
                                      "abc\xE2\x82\xAC"
                                      "d");
    assert_int_equal(client.reads, 4);
    assert_int_equal(client.read_lens[0], 4);
    assert_int_equal(client.read_lens[1], 5);
    assert_int_equal(client.read_lens[2], 5);
    assert_int_equal(client.read_lens[3], 1);
}

static void small_reads_pass_bytes_that_are_no_text(void **state)
{
    (void)state;
    client.max = 4;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print_text("\x80\x80\x80\x80\x80\x80\x80\x80z");
    assert_string_equal(client.bytes, "\x80\x80\x80\x80\x80\x80\x80\x80z");
}

static void whoever_comes_now_begins_with_a_whole_character(void **state)
{
    (void)state;
    print_text("ab\xE2\x82");
    attach(&fixture, &client, TERMINAL_SINCE_NONE);
    assert_int_equal(client.client.offset, 2);
    attach(&fixture, &other, 3); /* but exactly where it asks to */
    print_text("\xAC");
    assert_string_equal(client.bytes, "\xE2\x82\xAC");
    assert_string_equal(other.bytes, "\x82\xAC");
}

static void an_overrun_ring_begins_with_a_whole_character(void **state)
{
    (void)state;
    fill(RING_MAX_BYTES + 5, "\xF0\x9F\x98\x80"); /* its first byte is the second of a character */
    assert_int_equal(terminal_offset(fixture.terminal), RING_MAX_BYTES + 5);
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    assert_int_equal(client.client.offset, 8);
    attach(&fixture, &other, 6);
    turn_for_ms(&fixture, 30);
    assert_int_equal(client.gap_count, 0);
    assert_int_equal(client.len, RING_MAX_BYTES - 3);
    assert_memory_equal(client.bytes, "\xF0\x9F\x98\x80", 4);
    assert_int_equal(other.gap_count, 0); /* this one is still there, in the middle of a character */
    assert_int_equal(other.len, RING_MAX_BYTES - 1);
    assert_memory_equal(other.bytes, "\x98\x80\xF0\x9F", 4);
    detach(&other);
    attach(&fixture, &other, 2);
    turn_for_ms(&fixture, 1);
    assert_int_equal(other.gap_count, 1);
    assert_int_equal(other.gaps[0].from, 2);
    assert_int_equal(other.gaps[0].to, 8);
    assert_int_equal(other.len, RING_MAX_BYTES - 3);
}

/* Prints until it is enough, or the terminal has taken no more for a while: how much has come. */
static uint64_t flood(void)
{
    char bytes[4096];
    memset(bytes, 'x', sizeof(bytes));
    fcntl(fixture.slave, F_SETFL, O_NONBLOCK);
    for (int refused = 0; refused < 200 && terminal_offset(fixture.terminal) < 4 * RING_MAX_BYTES;) {
        uint64_t offset = terminal_offset(fixture.terminal);
        bool taken = write(fixture.slave, bytes, sizeof(bytes)) > 0;
        loop_turn(fixture.loop, false);
        refused = taken || terminal_offset(fixture.terminal) > offset ? 0 : refused + 1;
        if (refused > 0)
            usleep(1000);
    }
    fcntl(fixture.slave, F_SETFL, 0);
    return terminal_offset(fixture.terminal);
}

static void nobody_holds_the_program_up(void **state)
{
    (void)state;
    assert_true(flood() >= 4 * RING_MAX_BYTES);
    assert_int_equal(atomic_load(&fixture.view->kept_bytes), RING_MAX_BYTES);
}

static void the_fastest_client_paces(void **state)
{
    (void)state;
    client.lazy = other.lazy = true;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    attach(&fixture, &other, TERMINAL_SINCE_ALL);
    uint64_t held_at = flood();
    assert_in_range(held_at, 1 << 20, (1 << 20) + (64 << 10));
    assert_int_equal(flood(), held_at);
    /* Not before half of it is taken. */
    char bytes[64 * 1024];
    struct terminal_gap gap;
    for (int i = 0; i < 6; i++)
        assert_int_equal(terminal_read(&client.client, bytes, sizeof(bytes), &gap), sizeof(bytes));
    assert_int_equal(flood(), held_at);
    for (int i = 0; i < 4; i++)
        assert_int_equal(terminal_read(&client.client, bytes, sizeof(bytes), &gap), sizeof(bytes));
    uint64_t now_at = flood();
    assert_in_range(now_at, (1 << 20) + sizeof(bytes) * 10, (1 << 20) + (64 << 10) + sizeof(bytes) * 10);
    client.lazy = false;
    flood();
    take_all(&client);
    flood();
    take_all(&client);
    assert_int_equal(client.gap_count, 0);
    assert_true(terminal_offset(fixture.terminal) >= 4 * RING_MAX_BYTES);
    /* The other fell out of the ring. */
    take_all(&other);
    assert_int_equal(other.gap_count, 1);
    assert_int_equal(other.gaps[0].from, 0);
    assert_int_equal(other.gaps[0].to, terminal_offset(fixture.terminal) - RING_MAX_BYTES);
    assert_int_equal(other.len, RING_MAX_BYTES);
}

static void whoever_leaves_holds_nobody_up(void **state)
{
    (void)state;
    client.lazy = true;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    uint64_t held_at = flood();
    assert_true(held_at < 2 << 20);
    detach(&client);
    assert_true(flood() >= 4 * RING_MAX_BYTES);
}

static void whoever_takes_nothing_for_long_no_longer_counts(void **state)
{
    (void)state;
    client.lazy = true;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    uint64_t held_at = flood();
    assert_true(held_at < 2 << 20);
    client.client.took_at_ms -= 30 * 1000 - 20; /* as if so much time had passed */
    attach(&fixture, &other, TERMINAL_SINCE_ALL);
    detach(&other);
    turn_for_ms(&fixture, 30);
    assert_true(flood() >= 4 * RING_MAX_BYTES);
}

static void memory_given_up_is_a_gap(void **state)
{
    (void)state;
    client.lazy = true;
    print_text("0123456789");
    attach(&fixture, &client, 3);
    terminal_release(fixture.terminal);
    assert_int_equal(atomic_load(&fixture.view->kept_bytes), 0);
    assert_int_equal(atomic_load(&fixture.view->offset), 10);
    take_all(&client);
    assert_int_equal(client.gap_count, 1);
    assert_int_equal(client.gaps[0].from, 3);
    assert_int_equal(client.gaps[0].to, 10);
    assert_int_equal(client.len, 0);
    attach(&fixture, &other, TERMINAL_SINCE_ALL);
    assert_int_equal(other.client.offset, 10);
}

static void leave_both(void *ctx)
{
    (void)ctx;
    terminal_detach(&client.client);
    terminal_detach(&other.client);
}

static void an_event_may_detach_anybody(void **state)
{
    (void)state;
    static const struct terminal_client_events leaving = {leave_both, leave_both, leave_both};
    struct err err;
    client.client.events = other.client.events = &leaving;
    assert_int_equal(terminal_attach(fixture.terminal, &client.client, TERMINAL_SINCE_ALL, &err), 0);
    assert_int_equal(terminal_attach(fixture.terminal, &other.client, TERMINAL_SINCE_ALL, &err), 0);
    print_text("x");
    assert_null(client.client.terminal);
    assert_null(other.client.terminal);
    assert_int_equal(atomic_load(&fixture.view->clients), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keeps_what_came_before_anybody_was_there),
        TEST(refuses_an_offset_that_is_still_to_come),
        TEST(many_bytes_make_few_reads),
        TEST(a_character_comes_whole),
        TEST(the_rest_of_a_character_is_not_awaited_for_long),
        TEST(bytes_that_are_no_text_are_not_held_back),
        TEST(small_reads_cut_no_character),
        TEST(small_reads_pass_bytes_that_are_no_text),
        TEST(whoever_comes_now_begins_with_a_whole_character),
        TEST(an_overrun_ring_begins_with_a_whole_character),
        TEST(nobody_holds_the_program_up),
        TEST(the_fastest_client_paces),
        TEST(whoever_leaves_holds_nobody_up),
        TEST(whoever_takes_nothing_for_long_no_longer_counts),
        TEST(memory_given_up_is_a_gap),
        TEST(an_event_may_detach_anybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
