/* The messages of a terminal's WebSocket: what is taken of clients, what is refused and how, and what they are told. */
#include "net/ws_message.h"

#include "model/value.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MESSAGE_MAX_BYTES = 1024 * 1024 };

static struct arena arena;
static struct buf out;
static struct err err;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, MESSAGE_MAX_BYTES + 4096);
    buf_init(&out, 4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    buf_deinit(&out);
    return 0;
}

/* --- what clients say */

/* From memory that ends where the message does. */
static int parse(const char *text, size_t len, struct ws_message *message)
{
    char *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, text, len);
    int rc = ws_message_parse(&arena, exact, len, message, &err);
    free(exact); /* the message must not need it any more */
    return rc;
}

static struct ws_message accepted(const char *text)
{
    struct ws_message message;
    if (parse(text, strlen(text), &message) != 0)
        fail_msg("%s: %s", text, err.text);
    return message;
}

/* "code: text" of the refusal. */
static const char *refused(const char *text)
{
    static char told[sizeof err.text + 64];
    struct ws_message message = {.type = WS_MESSAGE_PING, .len = 77};
    if (parse(text, strlen(text), &message) == 0)
        fail_msg("%s was taken", text);
    assert_int_equal(message.type, WS_MESSAGE_PING); /* untouched */
    assert_int_equal(message.len, 77);
    snprintf(told, sizeof told, "%s: %s", err_code_name(err.code), err.text);
    return told;
}

static void input_is_any_text(void **state)
{
    (void)state;
    struct ws_message message = accepted("{\"type\":\"input\",\"data\":\"echo hi\\n\"}");
    assert_int_equal(message.type, WS_MESSAGE_INPUT);
    assert_int_equal(message.len, 8);
    assert_memory_equal(message.data, "echo hi\n", 8);

    message = accepted(" { \"data\" : \"\\u0003\\u0000\\u001b[A\xc3\xa4\\ud83d\\ude00\" , \"type\" : \"input\" } ");
    assert_int_equal(message.type, WS_MESSAGE_INPUT);
    assert_int_equal(message.len, 11);
    assert_memory_equal(message.data, "\x03\0\x1b[A\xc3\xa4\xf0\x9f\x98\x80", 11);

    message = accepted("{\"type\":\"input\",\"data\":\"\"}");
    assert_int_equal(message.type, WS_MESSAGE_INPUT);
    assert_int_equal(message.len, 0);
}

static void input_of_a_whole_message_needs_little_more(void **state)
{
    (void)state;
    static const char head[] = "{\"type\":\"input\",\"data\":\"", tail[] = "\"}";
    size_t data_len = MESSAGE_MAX_BYTES - strlen(head) - strlen(tail);
    char *text = malloc(MESSAGE_MAX_BYTES);
    struct ws_message message;
    assert_non_null(text);
    memcpy(text, head, strlen(head));
    memset(text + strlen(head), 'x', data_len);
    memcpy(text + strlen(head) + data_len, tail, strlen(tail));
    assert_int_equal(parse(text, MESSAGE_MAX_BYTES, &message), 0);
    assert_int_equal(message.len, data_len);
    assert_int_equal(message.data[0], 'x');
    assert_int_equal(message.data[data_len - 1], 'x');
    free(text);
}

static void resize_has_a_size(void **state)
{
    (void)state;
    struct ws_message message = accepted("{\"type\":\"resize\",\"cols\":132,\"rows\":43}");
    assert_int_equal(message.type, WS_MESSAGE_RESIZE);
    assert_int_equal(message.size.cols, 132);
    assert_int_equal(message.size.rows, 43);

    message = accepted("{\"type\":\"resize\",\"rows\":1000,\"cols\":1}");
    assert_int_equal(message.size.cols, 1);
    assert_int_equal(message.size.rows, 1000);
}

static void sizes_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *members, *refusal;
    } cases[] = {
        {"\"cols\":0,\"rows\":0", "cols: must be between 1 and 1000"},
        {"\"cols\":-1,\"rows\":5", "cols: must be between 1 and 1000"},
        {"\"cols\":65535,\"rows\":65535", "cols: must be between 1 and 1000"},
        {"\"cols\":65536,\"rows\":1", "cols: must be between 1 and 1000"},
        {"\"cols\":65616,\"rows\":24", "cols: must be between 1 and 1000"},      /* 80 in 16 bits */
        {"\"cols\":4294967376,\"rows\":24", "cols: must be between 1 and 1000"}, /* 80 in 32 bits */
        {"\"cols\":80,\"rows\":1001", "rows: must be between 1 and 1000"},
        {"\"cols\":1e9,\"rows\":1", "cols: must be between 1 and 1000"},
        {"\"cols\":1e99,\"rows\":1", "cols: must be an integer"},
        {"\"cols\":80.5,\"rows\":24", "cols: must be an integer"},
        {"\"cols\":\"80\",\"rows\":\"24\"", "cols: must be an integer"},
        {"\"cols\":80,\"rows\":true", "rows: must be an integer"},
        {"\"cols\":[80],\"rows\":24", "cols: must be an integer"},
        {"\"cols\":80,\"rows\":null", "rows: is required"},
        {"\"cols\":80", "rows: is required"},
        {"\"rows\":24", "cols: is required"},
        {"\"cols\":80,\"rows\":24,\"width\":640", "width: is not a known parameter"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], wanted[256];
        snprintf(text, sizeof text, "{\"type\":\"resize\",%s}", cases[i].members);
        snprintf(wanted, sizeof wanted, "invalid_request: %s", cases[i].refusal);
        assert_string_equal(refused(text), wanted);
    }
    assert_string_equal(refused("{\"type\":\"resize\"}"), "invalid_request: cols: is required");
    assert_string_equal(refused("{\"type\":\"resize\",\"cols\":NaN,\"rows\":24}"),
                        "invalid_json: unexpected character at byte 24; text frames are JSON here: send keys in binary "
                        "frames, or use mode=raw");
}

static void signals_are_those_for_clients(void **state)
{
    (void)state;
    struct ws_message message = accepted("{\"type\":\"signal\",\"signal\":\"SIGINT\"}");
    assert_int_equal(message.type, WS_MESSAGE_SIGNAL);
    assert_int_equal(message.signal, SIGINT);
    assert_int_equal(accepted("{\"type\":\"signal\",\"signal\":\"winch\"}").signal, SIGWINCH);
    assert_int_equal(accepted("{\"signal\":\"KILL\",\"type\":\"signal\"}").signal, SIGKILL);

    assert_string_equal(refused("{\"type\":\"signal\",\"signal\":\"SIGSEGV\"}"),
                        "signal_not_allowed: only HUP, INT, QUIT, TERM, KILL, USR1, USR2, STOP, CONT and WINCH are "
                        "sent");
    static const char *const no_names[] = {"\"\"", "\"9\"", "\"SIGFOO\"", "\"SIGINT\\u0000\"", "\"INT \""};
    for (size_t i = 0; i < sizeof no_names / sizeof *no_names; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"type\":\"signal\",\"signal\":%s}", no_names[i]);
        assert_string_equal(refused(text), "invalid_request: no signal bears this name; an example of one is SIGTERM");
        assert_string_equal(err.field, "signal");
    }
    assert_string_equal(refused("{\"type\":\"signal\",\"signal\":2}"), "invalid_request: signal: must be a string");
    assert_string_equal(refused("{\"type\":\"signal\"}"), "invalid_request: signal: is required");
}

static void ping_has_no_members(void **state)
{
    (void)state;
    assert_int_equal(accepted("{\"type\":\"ping\"}").type, WS_MESSAGE_PING);
    assert_string_equal(refused("{\"type\":\"ping\",\"data\":\"x\"}"),
                        "invalid_request: data: is not a known parameter");
}

static void what_is_no_message(void **state)
{
    (void)state;
    assert_string_equal(refused("null"), "invalid_request: a message must be a JSON object, not null");
    assert_string_equal(refused("[]"), "invalid_request: a message must be a JSON object, not an array");
    assert_string_equal(refused("\"ls\""), "invalid_request: a message must be a JSON object, not a string");
    assert_string_equal(refused("{}"), "invalid_request: type: is required");
    assert_string_equal(refused("{\"type\":null}"), "invalid_request: type: is required");
    assert_string_equal(refused("{\"type\":7}"), "invalid_request: type: must be a string");
    static const char *const unknown[] = {"\"\"", "\"Input\"", "\"exit\"", "\"ping \"", "\"ping\\u0000\""};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"type\":%s,\"more\":1}", unknown[i]);
        assert_string_equal(refused(text), "invalid_request: type: must be one of: input, resize, signal, ping");
        assert_string_equal(err.field, "type");
    }
    assert_string_equal(refused("{\"type\":\"input\"}"), "invalid_request: data: is required");
    assert_string_equal(refused("{\"type\":\"input\",\"data\":null}"), "invalid_request: data: is required");
    assert_string_equal(refused("{\"type\":\"input\",\"data\":5}"), "invalid_request: data: must be a string");
    assert_string_equal(refused("{\"type\":\"input\",\"data\":\"x\",\"others\":1}"),
                        "invalid_request: others: is not a known parameter");
}

static void json_is_strict(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "ls\n",
        "{\"type\":\"ping\"} x",
        "{\"type\":\"ping\"}{\"type\":\"ping\"}",
        "{\"type\":\"ping\",}",
        "{'type':'ping'}",
        "{\"type\":\"ping\",\"type\":\"ping\"}",
        "{\"type\":\"input\",\"data\":\"\n\"}",
        "{\"type\":\"input\",\"data\":\"\\ud800\"}",
        "{\"type\":\"input\",\"data\":\"\xff\"}",
        "{\"type\":\"input\",\"data\":\"",
        "\xef\xbb\xbf{\"type\":\"ping\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        refused(texts[i]);
        assert_int_equal(err.code, ERR_INVALID_JSON);
    }
}

/* {"type":"input","data":[[…]]}: the object and so many arrays in it. */
static const char *refused_nested(int arrays)
{
    char text[256] = "{\"type\":\"input\",\"data\":";
    size_t len = strlen(text);
    memset(text + len, '[', (size_t)arrays);
    memset(text + len + arrays, ']', (size_t)arrays);
    strcpy(text + len + 2 * arrays, "}");
    return refused(text);
}

static void nesting_has_an_end(void **state)
{
    (void)state;
    assert_string_equal(refused_nested(63), "invalid_request: data: must be a string");
    refused_nested(64);
    assert_int_equal(err.code, ERR_INVALID_JSON);
}

static void what_needs_more_than_the_arena_is_refused(void **state)
{
    (void)state;
    char *text = malloc(MESSAGE_MAX_BYTES);
    struct ws_message message;
    assert_non_null(text);
    for (size_t i = 0; i < MESSAGE_MAX_BYTES; i++)
        text[i] = i % 2 == 1 ? '0' : ',';
    text[0] = '[';
    text[MESSAGE_MAX_BYTES - 1] = ']';
    text[MESSAGE_MAX_BYTES - 2] = ' ';
    assert_int_equal(parse(text, MESSAGE_MAX_BYTES, &message), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    free(text);
}

/* --- what they are told */

static const char *written(void)
{
    static char text[8192];
    struct value ignored;
    assert_int_equal(value_parse(&arena, out.data, out.len, &ignored, &err), 0);
    snprintf(text, sizeof text, "%.*s", (int)out.len, out.data);
    buf_reset(&out);
    return text;
}

static void messages_are_written(void **state)
{
    (void)state;
    assert_int_equal(ws_message_ready(&out, "p-24dc40c4f3b6", (struct terminal_size){80, 24}, 5000000000), 0);
    assert_string_equal(written(),
                        "{\"type\":\"ready\",\"id\":\"p-24dc40c4f3b6\",\"cols\":80,\"rows\":24,\"offset\":5000000000}");
    assert_int_equal(ws_message_resized(&out, (struct terminal_size){1000, 1}), 0);
    assert_string_equal(written(), "{\"type\":\"resized\",\"cols\":1000,\"rows\":1}");
    assert_int_equal(ws_message_gap(&out, &(struct terminal_gap){0, UINT64_C(1) << 60}), 0);
    assert_string_equal(written(), "{\"type\":\"gap\",\"from\":0,\"to\":1152921504606846976}");
    assert_int_equal(ws_message_pong(&out), 0);
    assert_string_equal(written(), "{\"type\":\"pong\"}");
}

static void errors_are_written(void **state)
{
    (void)state;
    struct err error;
    err_set(&error, ERR_PERMISSION_DENIED, "say \"rw\"\nand \xc3\xa4");
    assert_int_equal(ws_message_error(&out, &error), 0);
    assert_string_equal(
        written(), "{\"type\":\"error\",\"code\":\"permission_denied\",\"detail\":\"say \\\"rw\\\"\\nand \xc3\xa4\"}");
    refused("{\"type\":\"resize\",\"cols\":0,\"rows\":1}");
    error = err;
    assert_int_equal(ws_message_error(&out, &error), 0);
    assert_string_equal(
        written(), "{\"type\":\"error\",\"code\":\"invalid_request\",\"detail\":\"cols: must be between 1 and 1000\"}");
}

static void exits_are_written(void **state)
{
    (void)state;
    struct terminal_exit exit = {.exit = {.exit_code = 3, .duration_ms = 1549}, .started_ms = 1796063723834};
    assert_int_equal(ws_message_exit(&out, &exit), 0);
    assert_string_equal(written(), "{\"type\":\"exit\",\"exit_code\":3,\"signal\":null,\"timed_out\":false,"
                                   "\"started_at\":\"2026-11-30T18:35:23.834Z\",\"duration_ms\":1549}");
    exit.exit = (struct process_exit){.exit_code = 137, .signal = SIGKILL, .timed_out = true};
    assert_int_equal(ws_message_exit(&out, &exit), 0);
    assert_string_equal(written(), "{\"type\":\"exit\",\"exit_code\":137,\"signal\":\"SIGKILL\",\"timed_out\":true,"
                                   "\"started_at\":\"2026-11-30T18:35:23.834Z\",\"duration_ms\":0}");
}

static void a_full_buffer_stays_as_it_was(void **state)
{
    (void)state;
    struct terminal_exit exit = {.exit = {.exit_code = 3}};
    struct err error;
    err_set(&error, ERR_BUSY, "x");
    for (size_t max = 0; max < 14; max++) { /* shorter than any */
        struct buf small;
        buf_init(&small, 3 + max);
        assert_int_equal(buf_append_text(&small, "abc"), 0);
        assert_int_equal(ws_message_ready(&small, "p", (struct terminal_size){1, 1}, 0), -1);
        assert_int_equal(ws_message_resized(&small, (struct terminal_size){1, 1}), -1);
        assert_int_equal(ws_message_gap(&small, &(struct terminal_gap){0, 1}), -1);
        assert_int_equal(ws_message_error(&small, &error), -1);
        assert_int_equal(ws_message_exit(&small, &exit), -1);
        assert_int_equal(ws_message_pong(&small), -1);
        assert_int_equal(small.len, 3);
        assert_memory_equal(small.data, "abc", 3);
        buf_deinit(&small);
    }
    /* One byte too few for the whole of it. */
    struct buf small;
    assert_int_equal(ws_message_exit(&out, &exit), 0);
    buf_init(&small, out.len - 1);
    assert_int_equal(ws_message_exit(&small, &exit), -1);
    assert_int_equal(small.len, 0);
    buf_deinit(&small);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(input_is_any_text),
        TEST(input_of_a_whole_message_needs_little_more),
        TEST(resize_has_a_size),
        TEST(sizes_that_are_none),
        TEST(signals_are_those_for_clients),
        TEST(ping_has_no_members),
        TEST(what_is_no_message),
        TEST(json_is_strict),
        TEST(nesting_has_an_end),
        TEST(what_needs_more_than_the_arena_is_refused),
        TEST(messages_are_written),
        TEST(errors_are_written),
        TEST(exits_are_written),
        TEST(a_full_buffer_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
