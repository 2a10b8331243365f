/* prim/terminal: what clients type, paste and send, and that it arrives. */
#include "terminal_fixture.h"

enum { PASTE_BYTES = 1000 * 1000, LINE_BYTES = 100 };

static struct fixture fixture;
static struct test_client client, other;
static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/test_terminal_input.%d", (int)getpid());
    fixture_open(&fixture);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    detach(&client);
    detach(&other);
    fixture_close(&fixture);
    unlink(path);
    return 0;
}

/* Lines of 99 characters, each with its number. */
static char *paste(void)
{
    char *bytes = malloc(PASTE_BYTES + 1);
    for (size_t at = 0; at < PASTE_BYTES; at += LINE_BYTES)
        snprintf(bytes + at, LINE_BYTES + 1, "%098zu.\n", at / LINE_BYTES);
    return bytes;
}

static void expect_file(const char *bytes, size_t len)
{
    char *found = malloc(len + 1);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, len + 1, file), len);
    assert_memory_equal(found, bytes, len);
    fclose(file);
    free(found);
}

static void run_with_path(const char *format)
{
    char command[256];
    snprintf(command, sizeof(command), format, path);
    run(&fixture, command);
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    await(&fixture, &client, "ready");
}

static void a_megabyte_of_lines_arrives_and_is_echoed(void **state)
{
    (void)state;
    char *bytes = paste(), *echo = malloc(2 * PASTE_BYTES);
    size_t len = (size_t)snprintf(echo, 16, "ready\r\n");
    for (size_t at = 0; at < PASTE_BYTES; at++) {
        if (bytes[at] == '\n')
            echo[len++] = '\r';
        echo[len++] = bytes[at];
    }
    run_with_path("echo ready; cat > %s");
    type(&client, bytes, PASTE_BYTES);
    assert_non_null(client.client.input);
    type_text(&client, "\x04");
    assert_int_equal(run_to_end(&fixture), 0);
    expect_file(bytes, PASTE_BYTES);
    turn_for_ms(&fixture, 1);
    assert_int_equal(client.len, len);
    assert_memory_equal(client.bytes, echo, len);
    assert_null(client.client.input);
    free(bytes);
    free(echo);
}

static void what_a_client_gave_arrives_after_it_left(void **state)
{
    (void)state;
    char *bytes = paste();
    run_with_path("echo ready; cat > %s");
    type(&client, bytes, PASTE_BYTES);
    detach(&client);
    attach(&fixture, &other, TERMINAL_SINCE_NONE);
    type_text(&other, "\x04"); /* behind it */
    assert_int_equal(run_to_end(&fixture), 0);
    expect_file(bytes, PASTE_BYTES);
    free(bytes);
}

static void interrupts_a_program_that_reads_nothing(void **state)
{
    (void)state;
    char *bytes = paste();
    memcpy(bytes, "echo run; ", 10);
    run_with_path("trap 'echo caught' INT; echo ready; sleep 30; echo after; read -t 0.2 line; echo \"rest:$line:\"");
    type(&client, bytes, PASTE_BYTES);
    turn_for_ms(&fixture, 300);
    assert_non_null(client.client.input);
    type_text(&client, "\x03");
    while (client.client.input != NULL)
        turn(&fixture);
    assert_int_equal(run_to_end(&fixture), 0);
    turn_for_ms(&fixture, 1);
    assert_non_null(strstr(client.bytes, "^C"));
    assert_non_null(strstr(client.bytes, "caught\r\n"));
    assert_non_null(strstr(client.bytes, "after\r\n"));
    assert_non_null(strstr(client.bytes, "rest::\r\n")); /* nothing of the paste was left */
    free(bytes);
}

static void one_that_comes_early_has_its_turn_later(void **state)
{
    (void)state;
    char *bytes = paste();
    run_with_path("echo ready; sleep 30");
    type(&client, bytes, PASTE_BYTES);
    type_text(&client, "\x03");
    assert_non_null(client.client.input);
    assert_int_equal(run_to_end(&fixture), 128 + SIGINT);
    free(bytes);
}

static void with_noflsh_nothing_is_dropped(void **state)
{
    (void)state;
    char *bytes = paste();
    run_with_path("stty noflsh -echo; trap 'echo caught' INT; echo ready; sleep 30; cat > %s");
    type(&client, bytes, PASTE_BYTES);
    turn_for_ms(&fixture, 300);
    type_text(&client, "\x03\x04");
    await(&fixture, &client, "caught");
    run_to_end(&fixture);
    expect_file(bytes, PASTE_BYTES);
    free(bytes);
}

static void characters_that_interrupt_are_plain_ones_without_isig(void **state)
{
    (void)state;
    char *bytes = paste();
    bytes[PASTE_BYTES / 2] = 0x03;
    run_with_path("stty raw -echo; echo ready; sleep 0.7; head -c 1000000 > %s");
    type(&client, bytes, PASTE_BYTES);
    run_to_end(&fixture);
    expect_file(bytes, PASTE_BYTES);
    free(bytes);
}

static void a_line_that_is_too_long_loses_its_end_only(void **state)
{
    (void)state;
    char bytes[5000 + 7];
    memset(bytes, 'l', 5000);
    memcpy(bytes + 5000, "\nshort\n", 7);
    run_with_path("stty -echo; echo ready; cat > %s");
    type(&client, bytes, sizeof(bytes));
    type_text(&client, "\x04");
    assert_int_equal(run_to_end(&fixture), 0);
    char expected[4095 + 7];
    memset(expected, 'l', 4095);
    memcpy(expected + 4095, "\nshort\n", 7);
    expect_file(expected, sizeof(expected));
}

static void raw_mode_loses_nothing_of_it(void **state)
{
    (void)state;
    char bytes[5001];
    memset(bytes, 'l', 5000);
    bytes[5000] = '\n';
    run_with_path("stty raw -echo; echo ready; head -c 5001 > %s");
    type(&client, bytes, sizeof(bytes));
    assert_int_equal(run_to_end(&fixture), 0);
    expect_file(bytes, sizeof(bytes));
}

static void says_when_it_is_full_and_when_no_longer(void **state)
{
    (void)state;
    char *bytes = malloc(TERMINAL_INPUT_MAX_BYTES + 64 * 1024);
    memset(bytes, 'x', TERMINAL_INPUT_MAX_BYTES + 64 * 1024);
    make_raw(&fixture);
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    attach(&fixture, &other, TERMINAL_SINCE_ALL);
    assert_false(terminal_input_is_full(&client.client));
    type(&client, bytes, TERMINAL_INPUT_MAX_BYTES + 64 * 1024);
    assert_true(terminal_input_is_full(&client.client));
    assert_false(terminal_input_is_full(&other.client));
    size_t taken = 0;
    while (taken < TERMINAL_INPUT_MAX_BYTES + 64 * 1024) {
        ssize_t len = read(fixture.slave, bytes, 4096);
        taken += len > 0 ? (size_t)len : 0;
        loop_turn(fixture.loop, false);
    }
    assert_int_equal(client.input_events, 1);
    assert_int_equal(other.input_events, 0);
    assert_false(terminal_input_is_full(&client.client));
    free(bytes);
}

static void read_only_ones_give_none(void **state)
{
    (void)state;
    struct err err = {0};
    client.client.read_only = true;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    assert_int_equal(terminal_input(&client.client, "x", 1, &err), -1);
    assert_int_equal(err.code, ERR_PERMISSION_DENIED);
    err = (struct err){0};
    assert_int_equal(terminal_signal(&client.client, SIGINT, &err), -1);
    assert_int_equal(err.code, ERR_PERMISSION_DENIED);
    terminal_resize(&client.client, (struct terminal_size){100, 50});
    assert_int_equal(terminal_size(fixture.terminal).cols, 80);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_megabyte_of_lines_arrives_and_is_echoed),
        TEST(what_a_client_gave_arrives_after_it_left),
        TEST(interrupts_a_program_that_reads_nothing),
        TEST(one_that_comes_early_has_its_turn_later),
        TEST(with_noflsh_nothing_is_dropped),
        TEST(characters_that_interrupt_are_plain_ones_without_isig),
        TEST(a_line_that_is_too_long_loses_its_end_only),
        TEST(raw_mode_loses_nothing_of_it),
        TEST(says_when_it_is_full_and_when_no_longer),
        TEST(read_only_ones_give_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
