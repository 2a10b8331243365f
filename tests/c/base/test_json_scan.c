/* The strict scanner: which events a document makes, what is refused and where, and that time stays linear. */
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Writes the events down, one word each. */
static struct buf seen;

static int note(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return buf_append_text(&seen, seen.len ? " " : "") || buf_append_text(&seen, text);
}

static int note_text(char mark, const char *text, size_t len)
{
    return note("%c", mark) || json_write_string(&seen, text, len);
}

static int on_null(void *ctx, struct err *err)
{
    (void)ctx, (void)err;
    return note("null");
}

static int on_bool(void *ctx, bool value, struct err *err)
{
    (void)ctx, (void)err;
    return note(value ? "true" : "false");
}

static int on_int(void *ctx, int64_t value, struct err *err)
{
    (void)ctx, (void)err;
    return note("i%lld", (long long)value);
}

static int on_double(void *ctx, double value, struct err *err)
{
    (void)ctx, (void)err;
    return note("d%.17g", value);
}

static int on_string(void *ctx, const char *text, size_t len, struct err *err)
{
    if (ctx && len == strlen(ctx) && memcmp(text, ctx, len) == 0)
        return err_set(err, ERR_BUSY, "stopped");
    return note_text('s', text, len);
}

static int on_key(void *ctx, const char *text, size_t len, struct err *err)
{
    (void)ctx, (void)err;
    return note_text('k', text, len);
}

static int on_begin(void *ctx, bool object, struct err *err)
{
    (void)ctx, (void)err;
    return note(object ? "{" : "[");
}

static int on_end(void *ctx, bool object, struct err *err)
{
    (void)ctx, (void)err;
    return note(object ? "}" : "]");
}

static const struct json_events events = {on_null, on_bool, on_int, on_double, on_string, on_key, on_begin, on_end};

static const char *scan_n(const char *text, size_t len)
{
    static char result[4096];
    struct err err;
    buf_init(&seen, sizeof result - 1);
    /* A copy of the exact size lets the sanitizer see a read past the end. */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    if (json_scan(copy, len, &events, NULL, &err) == 0)
        snprintf(result, sizeof result, "%.*s", (int)seen.len, seen.data);
    else
        snprintf(result, sizeof result, "%s: %s", err_code_name(err.code), err.text);
    free(copy);
    buf_deinit(&seen);
    return result;
}

#define scan(text) scan_n("" text, sizeof(text) - 1)
#define assert_refused(text, expected) assert_string_equal(scan(text), "invalid_json: " expected)
#define assert_all_refused(texts)                                                                                      \
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)                                                          \
    assert_memory_equal(scan_n(texts[i], strlen(texts[i])), "invalid_json: ", 14)

static void test_events(void **state)
{
    (void)state;
    assert_string_equal(scan(" {\"a\" : [1, true,false , null,\"x\"],\"b\":{}, \"\":[]}\r\n\t"),
                        "{ k\"a\" [ i1 true false null s\"x\" ] k\"b\" { } k\"\" [ ] }");
    assert_string_equal(scan("\"only\""), "s\"only\"");
    assert_string_equal(scan("[[],[[]]]"), "[ [ ] [ [ ] ] ]");
}

static void test_numbers(void **state)
{
    (void)state;
    assert_string_equal(scan("[0,-1,10,9223372036854775807,-9223372036854775808]"),
                        "[ i0 i-1 i10 i9223372036854775807 i-9223372036854775808 ]");
    assert_string_equal(scan("[9223372036854775808,-9223372036854775809]"),
                        "[ d9.2233720368547758e+18 d-9.2233720368547758e+18 ]");
    assert_string_equal(scan("[-0,1.5,1e3,1E+2,2e-1,0.0,-0.25e1,1e-999]"),
                        "[ d-0 d1.5 d1000 d100 d0.20000000000000001 d0 d-2.5 d0 ]");
    assert_string_equal(scan("9007199254740993"), "i9007199254740993");
    assert_string_equal(scan("7"), "i7");
    static const char *const bad[] = {"01",    "-",      "+1",   "1.",  ".5",       "1e",        "1e+",
                                      "-01",   "0x10",   "1.e3", "NaN", "Infinity", "-Infinity", "1_0",
                                      "1e999", "-1e999", "1 2",  "--1", "[1.]",     "00"};
    assert_all_refused(bad);
    assert_refused("[1e999]", "number too large at byte 1");
}

static void test_strings(void **state)
{
    (void)state;
    assert_string_equal(scan("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "s\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    assert_string_equal(scan("\"\\u0000\\u0041\\u00e4\\u20AC\\ud83d\\uDE00\""),
                        "s\"\\u0000A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    assert_string_equal(scan("\"plain, longer than a word \\n and after \xC3\xA4\x7F\""),
                        "s\"plain, longer than a word \\n and after \xC3\xA4\x7F\"");
    assert_string_equal(scan("\"\""), "s\"\"");
    assert_refused("\"\\x\"", "bad escape in a string at byte 1");
    assert_refused("\"a\nb\"", "control character in a string at byte 2");
    assert_refused("\"0123456789\x01\"", "control character in a string at byte 11");
    assert_refused("\"abc", "string without end at byte 4");
    assert_refused("\"abc\\\"", "string without end at byte 6");
    assert_refused("\"\\u12", "bad escape in a string at byte 1");
    assert_refused("\"\\ud83d\"", "bad escape in a string at byte 1");
    assert_refused("\"\\ud83d\\u0041\"", "bad escape in a string at byte 1");
    assert_refused("\"\\ude00\"", "bad escape in a string at byte 1");
    assert_refused("[\"a\xFF\"]", "string that is not UTF-8 at byte 2");
    assert_refused("\"\xED\xA0\x80\"", "string that is not UTF-8 at byte 1");
    assert_refused("\"\xC3\\n\xA4\"", "string that is not UTF-8 at byte 1");
    assert_refused("\"\\\xC3\xA4\"", "bad escape in a string at byte 1");
    /* A bad byte, and then the end, at each place of a word. */
    for (int at = 1; at < 20; at++)
        for (int end = at + 1; end < 21; end++) {
            char text[40] = "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
            text[end] = '"';
            assert_memory_equal(scan_n(text, (size_t)end + 1), "s\"xx", at > 1 ? 4 : 2);
            text[at] = '\xFF';
            assert_string_equal(scan_n(text, (size_t)end + 1), "invalid_json: string that is not UTF-8 at byte 1");
            text[at] = '\x1F';
            assert_memory_equal(scan_n(text, (size_t)end + 1), "invalid_json: control character", 31);
        }
}

static void test_grammar(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "[",
        "]",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{1:2}",
        "{\"a\":1,}",
        "{,}",
        "[1}",
        "{\"a\":1]",
        "tru",
        "nulls",
        "TRUE",
        "'a'",
        "[1]]",
        "//x\n1",
        "1 //",
        "\xEF\xBB\xBF"
        "1",
        "\v1",
        "[\f]",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "[1,2",
        "\xA0"
        "1",
        "{\"a\":1,,}",
        "[\"a\",\"b\"",
        "undefined",
    };
    assert_all_refused(bad);
    assert_refused("[1] x", "text after the end at byte 4");
    assert_refused("[1\0]", "',' or ']' was expected at byte 2");
    assert_refused("1\0", "text after the end at byte 1");
}

static void test_depth(void **state)
{
    (void)state;
    char text[2 * JSON_DEPTH_MAX + 3];
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    text[2 * JSON_DEPTH_MAX] = '\0';
    assert_memory_equal(scan_n(text, 2 * JSON_DEPTH_MAX), "[ [ ", 4);
    memset(text, '[', JSON_DEPTH_MAX + 1);
    assert_string_equal(scan_n(text, JSON_DEPTH_MAX + 1), "invalid_json: nesting too deep at byte 64");
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    assert_string_equal(scan_n(deep, 1000000), "invalid_json: nesting too deep at byte 64");
    free(deep);
}

static void test_every_prefix_is_refused(void **state)
{
    (void)state;
    static const char text[] = "{\"k\\u00e4\":[1.5e3,-2,true,false,null,\"\\ud83d\\ude00\",{\"x\":\"y\xC3\xA4\"}]}";
    for (size_t len = 0; len < sizeof text - 1; len++)
        assert_memory_equal(scan_n(text, len), "invalid_json: ", 14);
    assert_memory_equal(scan_n(text, sizeof text - 1), "{ k", 3);
}

static void test_callback_stops(void **state)
{
    (void)state;
    struct err err;
    buf_init(&seen, 100);
    assert_int_equal(json_scan("[\"a\",\"b\",\"c\"]", 13, &events, (void *)"b", &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    assert_memory_equal(seen.data, "[ s\"a\"", seen.len);
    buf_deinit(&seen);
    const struct json_events none = {0};
    assert_int_equal(json_scan("{\"a\":[1,2.5,\"x\",null,true]}", 27, &none, NULL, &err), 0);
    assert_int_equal(json_scan(NULL, 0, &none, NULL, &err), -1);
}

static double seconds_for(char *text, size_t len, int expected)
{
    const struct json_events none = {0};
    struct err err;
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    assert_int_equal(json_scan(text, len, &none, NULL, &err), expected);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

static void test_hostile_lengths_stay_linear(void **state)
{
    (void)state;
    size_t len = 4 * 1000 * 1000;
    char *text = malloc(len);
    memset(text, '7', len);
    text[1] = '.';
    assert_true(seconds_for(text, len, 0) < 5);
    memset(text, '7', len);
    assert_true(seconds_for(text, len, -1) < 5);
    memset(text, '\\', len);
    text[0] = text[len - 1] = '"';
    assert_true(seconds_for(text, len, 0) < 5);
    for (size_t i = 1; i + 1 < len; i++)
        text[i] = "\"\\n\","[i % 5];
    text[0] = '[';
    assert_true(seconds_for(text, len, -1) < 5);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),         cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_strings),        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_depth),          cmocka_unit_test(test_every_prefix_is_refused),
        cmocka_unit_test(test_callback_stops), cmocka_unit_test(test_hostile_lengths_stay_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
