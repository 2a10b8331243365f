/* Schemas: lookup, faults as text, parameters that come as text. */
#include "base/utf8.h"
#include "model/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_find(void **state)
{
    (void)state;
    struct schema_field fields[] = {{.name = (char *)"list"}, {.name = (char *)"listing"}};
    struct schema object = {.type = SCHEMA_OBJECT, .fields = fields, .field_count = 2};
    assert_ptr_equal(schema_field_find(&object, "list", 4), &fields[0]);
    assert_ptr_equal(schema_field_find(&object, "listing", 7), &fields[1]);
    assert_null(schema_field_find(&object, "lis", 3));
    assert_null(schema_field_find(&object, "list\0more", 9));
    assert_null(schema_field_find(&object, "", 0));
}

static void test_faults(void **state)
{
    (void)state;
    static struct field_errors errors;
    field_errors_add(&errors, ERR_INVALID_PATH, "a", "is %d", 5);
    field_errors_add(&errors, ERR_INVALID_REQUEST, "b\xFF", "%s", "x\xE2\x82");
    assert_int_equal(errors.code, ERR_INVALID_PATH);
    assert_int_equal(errors.count, 2);
    assert_string_equal(errors.list[0].problem, "is 5");
    assert_string_equal(errors.list[1].field, "b?");
    assert_string_equal(errors.list[1].problem, "x??");
    char longer[200] = "";
    for (int i = 0; i < 49; i++)
        strcat(longer, "\xE2\x82\xAC");
    field_errors_add(&errors, ERR_INVALID_REQUEST, longer, "is not known");
    assert_int_equal(strlen(errors.list[2].field), 93);
    assert_true(utf8_valid(errors.list[2].field, 93));
    field_errors_add(&errors, ERR_INVALID_REQUEST, "a", "is required");
    assert_int_equal(errors.count, 3); /* a has its fault */
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "c%d", i);
        field_errors_add(&errors, ERR_INVALID_REQUEST, name, "x");
    }
    assert_int_equal(errors.count, FIELD_ERRORS_MAX);
}

static struct value from(enum schema_type type, const char *text)
{
    struct schema schema = {.type = type};
    return schema_from_text(&schema, text, strlen(text));
}

static void test_from_text(void **state)
{
    (void)state;
    assert_int_equal(from(SCHEMA_INTEGER, "12").as.integer, 12);
    assert_int_equal(from(SCHEMA_INTEGER, "-9223372036854775808").as.integer, INT64_MIN);
    assert_int_equal(from(SCHEMA_INTEGER, "1e3").type, VALUE_DOUBLE);
    assert_true(from(SCHEMA_NUMBER, "2.5").as.number == 2.5);
    assert_int_equal(from(SCHEMA_BOOLEAN, "true").type, VALUE_BOOL);
    assert_true(from(SCHEMA_BOOLEAN, "true").as.boolean);
    assert_int_equal(from(SCHEMA_BOOLEAN, "false").type, VALUE_BOOL);
    assert_false(from(SCHEMA_BOOLEAN, "false").as.boolean);
    static const char *const no_numbers[] = {"",   " 1",    "1 ",  "+1",    "0x10", "01", "one",
                                             "1.", "\"1\"", "[1]", "1e999", "true", "-"};
    for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++) {
        struct value value = from(SCHEMA_INTEGER, no_numbers[i]);
        assert_int_equal(value.type, VALUE_STRING);
        assert_ptr_equal(value.as.string.text, no_numbers[i]);
    }
    assert_int_equal(from(SCHEMA_BOOLEAN, "True").type, VALUE_STRING);
    assert_int_equal(from(SCHEMA_BOOLEAN, "1").type, VALUE_STRING);
    assert_int_equal(from(SCHEMA_STRING, "12").type, VALUE_STRING);
    assert_int_equal(from(SCHEMA_PATH, "12").as.string.len, 2);
    assert_int_equal(from(SCHEMA_ANY, "true").type, VALUE_STRING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_from_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
