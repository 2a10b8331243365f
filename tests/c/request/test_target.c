/* Decoding of targets and queries. */
#include "request/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct err err;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

/* The segments joined by '|', or the fault's code. */
static const char *parse(const char *raw)
{
    static char joined[512];
    struct target target;

    joined[0] = '\0';
    if (target_parse(&target, raw, &arena, &err) < 0)
        return err_code_name(err.code);
    for (size_t i = 0; i < target.segment_count; i++) {
        strcat(joined, "|");
        strcat(joined, target.segments[i].text);
    }
    return joined;
}

static void segments_are_decoded_once(void **state)
{
    (void)state;
    assert_string_equal(parse("/"), "|");
    assert_string_equal(parse("/health"), "|health");
    assert_string_equal(parse("/%65nv"), "|env");
    assert_string_equal(parse("/%2565nv"), "|%65nv");
    assert_string_equal(parse("/a%2Fb/c"), "|a/b|c");
    assert_string_equal(parse("/health/%2e%2e/env"), "|health|..|env");
    assert_string_equal(parse("/a+b"), "|a+b");
}

static void nothing_is_normalised(void **state)
{
    (void)state;
    assert_string_equal(parse("//env"), "||env");
    assert_string_equal(parse("/./env"), "|.|env");
    assert_string_equal(parse("/env/"), "|env|");
    assert_string_equal(parse("/env;x"), "|env;x");
    assert_string_equal(parse("/\\env"), "|\\env");
}

static void bad_targets_are_refused(void **state)
{
    static const char *const bad[] = {"/%",   "/%z",    "/%zz",   "/a%2",  "/env%00",  "env",      "",
                                      "/a b", "/a\x01", "/a\x7f", "\\env", "host:443", "ftp://h/x"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(parse(bad[i]), "invalid_request");
}

static void absolute_form_keeps_its_authority(void **state)
{
    struct target target;

    (void)state;
    assert_int_equal(target_parse(&target, "http://h:1/env?x=1", &arena, &err), 0);
    assert_string_equal(target.authority, "h:1");
    assert_string_equal(target.path, "/env");
    assert_string_equal(target.query, "x=1");
    assert_int_equal(target.segment_count, 1);
    assert_int_equal(target_parse(&target, "HTTPS://h", &arena, &err), 0);
    assert_string_equal(target.path, "/");
    assert_int_equal(target.segment_count, 1);
    assert_int_equal(target_parse(&target, "*", &arena, &err), 0);
    assert_true(target.asterisk);
    assert_int_equal(target.segment_count, 0);
}

static void query_is_decoded_as_forms_are(void **state)
{
    struct query_field *fields;
    size_t count;

    (void)state;
    assert_int_equal(target_query("a=1+2%2B3&&b&c=%00x&d=%ff=&", &arena, &fields, &count, &err), 0);
    assert_int_equal(count, 4);
    assert_string_equal(fields[0].name.text, "a");
    assert_string_equal(fields[0].value.text, "1 2+3");
    assert_string_equal(fields[1].name.text, "b");
    assert_int_equal(fields[1].value.len, 0);
    assert_int_equal(fields[2].value.len, 2);
    assert_memory_equal(fields[2].value.text, "\0x", 2);
    assert_string_equal(fields[3].value.text, "\xff=");
    assert_int_equal(target_query(NULL, &arena, &fields, &count, &err), 0);
    assert_int_equal(count, 0);
}

static void query_faults_name_their_field(void **state)
{
    struct query_field *fields;
    size_t count;
    char many[4 * 300];

    (void)state;
    assert_int_equal(target_query("a=1&b=2&%61=3", &arena, &fields, &count, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
    assert_string_equal(err.field, "a");
    assert_int_equal(target_query("path=%zz", &arena, &fields, &count, &err), -1);
    assert_string_equal(err.field, "path");
    assert_int_equal(target_query("%ff=1", &arena, &fields, &count, &err), -1);
    assert_int_equal(target_query("%00=1", &arena, &fields, &count, &err), -1);
    assert_int_equal(target_query("a=%", &arena, &fields, &count, &err), -1);
    memset(many, '&', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    assert_int_equal(target_query(many, &arena, &fields, &count, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(segments_are_decoded_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_normalised, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_targets_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(absolute_form_keeps_its_authority, set_up, tear_down),
        cmocka_unit_test_setup_teardown(query_is_decoded_as_forms_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(query_faults_name_their_field, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
