/* The bytes of problem replies. */
#include "request/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(struct buf *buf)
{
    assert_int_equal(buf_append(buf, "", 1), 0);
    return buf->data;
}

static void one_failure(void **state)
{
    struct response response;
    struct err err;

    (void)state;
    err_set(&err, ERR_FILE_NOT_FOUND, "no such file: %s", "a\"b");
    (void)err_field(&err, "path");
    assert_int_equal(problem_response(&response, 0, &err, NULL, "r-1"), 0);
    assert_int_equal(response.status, 404);
    assert_string_equal(response_header_find(&response, "content-type"), "application/problem+json");
    assert_null(response_header_find(&response, "Retry-After"));
    assert_string_equal(text_of(&response.bytes),
                        "{\"status\":404,\"title\":\"Not Found\",\"code\":\"file_not_found\","
                        "\"detail\":\"no such file: a\\\"b\",\"field\":\"path\",\"request_id\":\"r-1\"}");
    response_deinit(&response);
}

static void all_faulty_fields(void **state)
{
    struct field_errors errors = {.code = ERR_INVALID_REQUEST, .count = 2};
    struct response response;
    struct err err;

    (void)state;
    strcpy(errors.list[0].field, "a");
    strcpy(errors.list[0].problem, "is missing");
    strcpy(errors.list[1].field, "b.c");
    strcpy(errors.list[1].problem, "must be a string");
    assert_int_equal(problem_from_fields(&err, &errors), -1);
    assert_int_equal(problem_response(&response, 0, &err, &errors, "r"), 0);
    assert_int_equal(response.status, 400);
    assert_string_equal(text_of(&response.bytes),
                        "{\"status\":400,\"title\":\"Bad Request\",\"code\":\"invalid_request\","
                        "\"detail\":\"2 fields are not valid, see errors; the first: a: is missing\",\"field\":\"a\","
                        "\"request_id\":\"r\",\"errors\":[{\"field\":\"a\",\"problem\":\"is missing\"},"
                        "{\"field\":\"b.c\",\"problem\":\"must be a string\"}]}");
    response_deinit(&response);
    errors.count = 1;
    (void)problem_from_fields(&err, &errors);
    assert_string_equal(err.text, "a: is missing");
}

static void secrets_are_hidden(void **state)
{
    struct field_errors errors = {.code = ERR_INVALID_REQUEST, .count = 1};
    struct response response;
    struct err err;

    (void)state;
    strcpy(errors.list[0].field, "x://u:pw@h");
    strcpy(errors.list[0].problem, "API_KEY=pw is unknown");
    assert_int_equal(problem_from_fields(&err, &errors), -1);
    assert_int_equal(problem_response(&response, 0, &err, &errors, "r"), 0);
    assert_string_equal(text_of(&response.bytes),
                        "{\"status\":400,\"title\":\"Bad Request\",\"code\":\"invalid_request\","
                        "\"detail\":\"x://u:***@h: API_KEY=*** is unknown\",\"field\":\"x://u:***@h\","
                        "\"request_id\":\"r\",\"errors\":[{\"field\":\"x://u:***@h\","
                        "\"problem\":\"API_KEY=*** is unknown\"}]}");
    response_deinit(&response);

    /* Longer than a field's name can be, so that the @ is not there. */
    memset(errors.list[0].field, 'p', sizeof(errors.list[0].field) - 1);
    memcpy(errors.list[0].field, "x://u:", 6);
    errors.list[0].field[sizeof(errors.list[0].field) - 1] = '\0';
    strcpy(errors.list[0].problem, "is unknown");
    assert_int_equal(problem_from_fields(&err, &errors), -1);
    assert_string_equal(err.text, "x://u:***: is unknown");
    assert_int_equal(problem_response(&response, 0, &err, &errors, "r"), 0);
    assert_null(strstr(text_of(&response.bytes), "ppp"));
    response_deinit(&response);
    err_set(&err, ERR_FILE_NOT_FOUND, "no such file: x://u:%0250d@h", 0);
    assert_int_equal(problem_response(&response, 0, &err, NULL, "r"), 0);
    assert_null(strstr(text_of(&response.bytes), "000"));
    response_deinit(&response);
}

static void statuses(void **state)
{
    struct response response;
    struct err err;

    (void)state;
    err_set(&err, ERR_TOO_MANY_REQUESTS, "later");
    assert_int_equal(problem_response(&response, 0, &err, NULL, "r"), 0);
    assert_string_equal(response_header_find(&response, "Retry-After"), "1");
    response_deinit(&response);
    err_set(&err, ERR_STALE_WRITE, "changed");
    assert_int_equal(problem_response(&response, 412, &err, NULL, "r"), 0);
    assert_int_equal(response.status, 412);
    assert_non_null(strstr(text_of(&response.bytes), "\"title\":\"Precondition Failed\",\"code\":\"stale_write\""));
    response_deinit(&response);
    for (int code = 1; code < ERR_CODE_COUNT; code++)
        assert_string_not_equal(problem_title(err_code_status((enum err_code)code)), "Error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_failure),
        cmocka_unit_test(all_faulty_fields),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
