/* The check: what a handler sees, each fault in its words, and all faults at once. */
#include "base/json.h"
#include "model/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct field_errors errors;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 16 * 1024 * 1024);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void show(struct buf *out, const struct value *value)
{
    int rc = 0;
    switch (value->type) {
    case VALUE_NULL:
        rc = buf_append_text(out, "null");
        break;
    case VALUE_BOOL:
        rc = buf_append_text(out, value->as.boolean ? "true" : "false");
        break;
    case VALUE_INT:
        rc = json_write_int(out, value->as.integer);
        break;
    case VALUE_DOUBLE:
        rc = json_write_double(out, value->as.number);
        break;
    case VALUE_STRING:
        rc = json_write_string(out, value->as.string.text, value->as.string.len);
        break;
    case VALUE_ARRAY:
        rc = buf_append_text(out, "[");
        for (size_t i = 0; i < value->as.array.count; i++) {
            rc |= i ? buf_append_text(out, ",") : 0;
            show(out, &value->as.array.items[i]);
        }
        rc |= buf_append_text(out, "]");
        break;
    case VALUE_OBJECT:
        rc = buf_append_text(out, "{");
        for (size_t i = 0; i < value->as.object.count; i++) {
            const struct value_member *member = &value->as.object.members[i];
            rc |= i ? buf_append_text(out, ",") : 0;
            rc |= json_write_string(out, member->name, member->name_len) | buf_append_text(out, ":");
            show(out, &member->value);
        }
        rc |= buf_append_text(out, "}");
        break;
    }
    assert_int_equal(rc, 0);
}

/* The checked object as JSON, or "code field: problem; field: problem". */
static const char *check_rest(const struct schema *schema, const char *text, const char *rest)
{
    static char result[8192];
    struct value value, out;
    struct err err;
    struct buf shown;
    errors = (struct field_errors){0};
    assert_int_equal(value_parse(&arena, text, strlen(text), &value, &err), 0);
    if (schema_check(schema, &value, rest, &arena, &out, &errors) == 0) {
        assert_int_equal(errors.count, 0);
        buf_init(&shown, sizeof result - 1);
        show(&shown, &out);
        snprintf(result, sizeof result, "%.*s", (int)shown.len, shown.data);
        buf_deinit(&shown);
        return result;
    }
    assert_true(errors.count > 0);
    size_t len = (size_t)snprintf(result, sizeof result, "%s ", err_code_name(errors.code));
    for (size_t i = 0; i < errors.count; i++)
        len += (size_t)snprintf(result + len, sizeof result - len, "%s%s: %s", i ? "; " : "", errors.list[i].field,
                                errors.list[i].problem);
    return result;
}

static const char *check(const struct schema *schema, const char *text)
{
    return check_rest(schema, text, NULL);
}

#define FIELDS(...)                                                                                                    \
    (struct schema)                                                                                                    \
    {                                                                                                                  \
        .type = SCHEMA_OBJECT, .fields = (struct schema_field[]){__VA_ARGS__},                                         \
        .field_count = sizeof((struct schema_field[]){__VA_ARGS__}) / sizeof(struct schema_field)                      \
    }
#define FIELD(field_name, ...)                                                                                         \
    {                                                                                                                  \
        (char *)(field_name),                                                                                          \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define assert_check(schema, text, expected) assert_string_equal(check(&(schema), text), expected)
#define RANGE(low, high) .has_min = true, .min = (low), .has_max = true, .max = (high)

static const struct value five = {.type = VALUE_INT, .as.integer = 5};

static void test_order_and_defaults(void **state)
{
    (void)state;
    struct schema schema =
        FIELDS(FIELD("b", .type = SCHEMA_INTEGER, .dflt = &five), FIELD("a", .type = SCHEMA_STRING, .required = true),
               FIELD("c", .type = SCHEMA_ANY), FIELD("d", .type = SCHEMA_STRING, .nullable = true));
    assert_check(schema, "{\"c\":[1,{}],\"a\":\"x\\u0000y\"}", "{\"b\":5,\"a\":\"x\\u0000y\",\"c\":[1,{}]}");
    assert_check(schema, "{\"a\":\"\",\"b\":null,\"c\":null,\"d\":null}", "{\"b\":5,\"a\":\"\",\"d\":null}");
    assert_check(schema, "{}", "invalid_request a: is required");
    assert_check(schema, "{\"a\":null}", "invalid_request a: is required");
    assert_check(schema, "[]", "invalid_request : must be an object");
    struct schema nothing = {.type = SCHEMA_OBJECT};
    assert_check(nothing, "{}", "{}");
}

static void test_numbers(void **state)
{
    (void)state;
    struct schema schema = FIELDS(FIELD("i", .type = SCHEMA_INTEGER, RANGE(1, 1000)),
                                  FIELD("n", .type = SCHEMA_NUMBER, .has_min = true, .min = 0.5),
                                  FIELD("m", .type = SCHEMA_NUMBER, .has_max = true, .max = 33554432),
                                  FIELD("free", .type = SCHEMA_INTEGER));
    assert_check(schema, "{\"i\":1,\"n\":0.5,\"m\":33554432}", "{\"i\":1,\"n\":0.5,\"m\":33554432}");
    assert_check(schema, "{\"i\":1e3,\"free\":9007199254740992.0}", "{\"i\":1000,\"free\":9007199254740992}");
    assert_check(schema, "{\"free\":9223372036854775807}", "{\"free\":9223372036854775807}");
    assert_check(schema, "{\"free\":-0}", "{\"free\":0}");
    assert_check(schema, "{\"free\":9007199254740994.0}", "invalid_request free: must be an integer");
    assert_check(schema, "{\"free\":9223372036854775808}", "invalid_request free: must be an integer");
    assert_check(schema, "{\"i\":0,\"n\":0.4,\"m\":33554433,\"free\":1.5}",
                 "invalid_request i: must be between 1 and 1000; n: must be at least 0.5; m: must be at most 33554432; "
                 "free: must be an integer");
    assert_check(schema, "{\"i\":\"1\",\"n\":true}", "invalid_request i: must be an integer; n: must be a number");
}

static void test_strings_and_booleans(void **state)
{
    (void)state;
    const char *choices[] = {"utf-8", "base64", NULL};
    struct schema schema =
        FIELDS(FIELD("s", .type = SCHEMA_STRING, RANGE(1, 3)), FIELD("e", .type = SCHEMA_STRING, .choices = choices),
               FIELD("b", .type = SCHEMA_BOOLEAN));
    assert_check(schema, "{\"s\":\"abc\",\"e\":\"base64\",\"b\":false}",
                 "{\"s\":\"abc\",\"e\":\"base64\",\"b\":false}");
    assert_check(schema, "{\"s\":\"\",\"e\":\"utf\",\"b\":\"true\"}",
                 "invalid_request s: must be between 1 and 3 bytes long; e: must be one of: utf-8, base64; b: must be "
                 "true or false");
    assert_check(schema, "{\"s\":1,\"e\":[],\"b\":0}",
                 "invalid_request s: must be a string; e: must be a string; b: must be true or false");
    assert_check(schema, "{\"e\":\"utf-8\\u0000\"}", "invalid_request e: must be one of: utf-8, base64");
}

static void test_unknown_and_rest(void **state)
{
    (void)state;
    struct schema schema = FIELDS(FIELD("a", .type = SCHEMA_INTEGER));
    assert_check(schema, "{\"x\":1,\"a\":2,\"y_base64\":\"\"}",
                 "invalid_request x: is not a known parameter; y_base64: is not a known parameter");
    assert_string_equal(check_rest(&schema, "{\"x\":null,\"a\":2,\"y\":[1]}", "args"),
                        "{\"a\":2,\"args\":{\"x\":null,\"y\":[1]}}");
    assert_string_equal(check_rest(&schema, "{}", "args"), "{\"args\":{}}");
    assert_string_equal(check_rest(&schema, "{\"args\":1}", "args"), "{\"args\":{\"args\":1}}");
}

static void test_paths_and_twins(void **state)
{
    (void)state;
    struct schema schema =
        FIELDS(FIELD("path", .type = SCHEMA_PATH, .required = true), FIELD("cwd", .type = SCHEMA_PATH));
    assert_check(schema, "{\"path\":\"a/b\"}", "{\"path\":\"a/b\"}");
    assert_check(schema, "{\"path_base64\":\"YS9i\",\"cwd\":\".\"}", "{\"path\":\"a/b\",\"cwd\":\".\"}");
    assert_check(schema, "{\"path_base64\":\"YS9i\",\"path\":null}", "{\"path\":\"a/b\"}");
    assert_check(schema, "{\"path_base64\":null}", "invalid_request path: is required");
    assert_check(schema, "{\"path_base64\":\"YS9i\",\"path\":\"x\"}",
                 "invalid_request path_base64: cannot be given together with path");
    assert_check(schema, "{\"path_base64\":\"YS9\"}",
                 "invalid_request path_base64: must be base64 of the standard alphabet");
    assert_check(schema, "{\"path_base64\":7}", "invalid_request path_base64: must be a string");
    assert_check(schema, "{\"path_base64\":\"\"}", "invalid_path path_base64: must not be empty");
    assert_check(schema, "{\"path_base64\":\"YQBi\"}", "invalid_path path_base64: must not hold NUL");
    assert_check(schema, "{\"path\":\"\"}", "invalid_path path: must not be empty");
    assert_check(schema, "{\"path\":\"a\\u0000b\",\"x\":1}",
                 "invalid_request x: is not a known parameter; path: must not hold NUL");
    assert_check(schema, "{\"path\":\"a\\u0000b\",\"cwd\":1}",
                 "invalid_path path: must not hold NUL; cwd: must be a string");
    char text[4096 + 32];
    for (int over = 0; over < 2; over++) {
        snprintf(text, sizeof text, "{\"path\":\"%0*d\"}", 4095 + over, 0);
        if (over)
            assert_check(schema, text, "invalid_path path: must be at most 4095 bytes long");
        else
            assert_int_equal(strlen(check(&schema, text)), 4095 + strlen("{\"path\":\"\"}"));
    }
    struct buf long_twin;
    buf_init(&long_twin, 10000);
    assert_int_equal(buf_append_text(&long_twin, "{\"path_base64\":\""), 0);
    for (int i = 0; i < 1366; i++)
        assert_int_equal(buf_append_text(&long_twin, "YWFh"), 0);
    assert_int_equal(buf_append(&long_twin, "\"}", 3), 0);
    assert_check(schema, long_twin.data, "invalid_path path_base64: must be at most 4095 bytes long");
    buf_deinit(&long_twin);
}

static void test_containers(void **state)
{
    (void)state;
    struct schema text = {.type = SCHEMA_STRING, .nullable = true}, number = {.type = SCHEMA_INTEGER};
    struct schema edit = FIELDS(FIELD("old", .type = SCHEMA_STRING, .required = true),
                                FIELD("all", .type = SCHEMA_INTEGER, .dflt = &five));
    struct schema schema =
        FIELDS(FIELD("argv", .type = SCHEMA_ARRAY, .items = &number, RANGE(1, 4)),
               FIELD("env", .type = SCHEMA_MAP, .items = &text), FIELD("edits", .type = SCHEMA_ARRAY, .items = &edit),
               FIELD("any", .type = SCHEMA_ARRAY), FIELD("map", .type = SCHEMA_MAP, .has_max = true, .max = 1));
    assert_check(schema,
                 "{\"argv\":[1,2.0],\"env\":{\"A\":\"x\",\"B\":null},\"edits\":[{\"old\":\"y\"},{\"old\":\"z\",\"all\":"
                 "1}],\"any\":[null,{}],\"map\":{\"k\":null}}",
                 "{\"argv\":[1,2],\"env\":{\"A\":\"x\",\"B\":null},\"edits\":[{\"old\":\"y\",\"all\":5},{\"old\":\"z\","
                 "\"all\":1}],\"any\":[null,{}],\"map\":{\"k\":null}}");
    assert_check(
        schema, "{\"argv\":[1,\"x\",null],\"env\":{\"PATH\":1},\"edits\":[{},{\"old\":\"\",\"path_base64\":\"\"}]}",
        "invalid_request argv[1]: must be an integer; argv[2]: must be an integer; env.PATH: must be a string; "
        "edits[0].old: is required; edits[1].path_base64: is not a known member");
    assert_check(schema, "{\"argv\":[],\"env\":[],\"edits\":{},\"map\":{\"a\":1,\"b\":2}}",
                 "invalid_request argv: must hold between 1 and 4 items; env: must be an object; edits: must be an "
                 "array; map: must hold at most 1 member");
}

static void test_long_places_are_cut(void **state)
{
    (void)state;
    struct schema number = {.type = SCHEMA_INTEGER};
    struct schema schema = FIELDS(FIELD("env", .type = SCHEMA_MAP, .items = &number));
    char text[400];
    snprintf(text, sizeof text, "{\"env\":{\"%0*d\":\"x\"}}", 300, 0);
    assert_non_null(check(&schema, text));
    assert_int_equal(strlen(errors.list[0].field), sizeof errors.list[0].field - 1);
    assert_memory_equal(errors.list[0].field, "env.000", 7);
}

static void test_many_faults(void **state)
{
    (void)state;
    struct schema number = {.type = SCHEMA_INTEGER};
    struct schema schema = FIELDS(FIELD("n", .type = SCHEMA_ARRAY, .items = &number));
    struct buf text;
    buf_init(&text, 1000000);
    assert_int_equal(buf_append_text(&text, "{\"n\":[\"\""), 0);
    for (int i = 0; i < 50000; i++)
        assert_int_equal(buf_append_text(&text, ",\"\""), 0);
    assert_int_equal(buf_append(&text, "]}", 3), 0);
    assert_non_null(check(&schema, text.data));
    assert_int_equal(errors.count, FIELD_ERRORS_MAX);
    buf_deinit(&text);
}

static void test_full_arena(void **state)
{
    (void)state;
    struct schema number = {.type = SCHEMA_INTEGER};
    struct schema schema = FIELDS(FIELD("n", .type = SCHEMA_ARRAY, .items = &number));
    struct arena small;
    struct value value, out;
    struct err err;
    struct field_errors faults = {0};
    assert_int_equal(value_parse(&arena, "{\"n\":[1,2,3,4,5,6,7,8]}", 23, &value, &err), 0);
    arena_init(&small, 200);
    assert_int_equal(schema_check(&schema, &value, NULL, &small, &out, &faults), -1);
    assert_int_equal(faults.code, ERR_PAYLOAD_TOO_LARGE);
    assert_int_equal(faults.count, 1);
    arena_deinit(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order_and_defaults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strings_and_booleans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_and_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_paths_and_twins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_containers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_places_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_faults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_arena, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
