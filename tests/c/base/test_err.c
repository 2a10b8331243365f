/* Failures: texts that are always UTF-8, names, statuses, errno. */
#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_set_fills_all_and_answers_minus_one(void **state)
{
    (void)state;
    struct err err;
    memset(&err, 0xAA, sizeof err);
    assert_int_equal(err_set(&err, ERR_BUSY, "%s is %d", "x", 7), -1);
    assert_int_equal(err.code, ERR_BUSY);
    assert_int_equal(err.saved_errno, 0);
    assert_string_equal(err.text, "x is 7");
    assert_string_equal(err.field, "");
    assert_int_equal(err_field(&err, "cwd"), -1);
    assert_string_equal(err.field, "cwd");
}

static void test_text_is_utf8(void **state)
{
    (void)state;
    struct err err;
    err_set(&err, ERR_INTERNAL,
            "a\xED\xA0\x80"
            "b\xC3\xA4\xFF");
    assert_string_equal(err.text, "a???b\xC3\xA4?");
    char longer[600];
    memset(longer, 'x', sizeof longer);
    for (size_t cut = 0; cut < 3; cut++) {
        size_t at = sizeof err.text - 2 - cut;
        memcpy(longer + at, "\xE2\x82\xAC", 4);
        err_set(&err, ERR_INTERNAL, "%s", longer);
        assert_true(utf8_valid(err.text, strlen(err.text)));
        assert_int_equal(strlen(err.text), cut == 2 ? at + 3 : at);
        memset(longer + at, 'x', 4);
    }
}

static void test_errno_is_kept_and_told(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(err_set_errno(&err, ERR_FILE_NOT_FOUND, ENOENT, "open %s", "a"), -1);
    assert_string_equal(err.text, "open a: No such file or directory");
    assert_int_equal(err.saved_errno, ENOENT);
    char longer[600];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    err_set_errno(&err, ERR_NO_SPACE, ENOSPC, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + strlen(err.text) - 25, ": No space left on device");
}

static void test_codes(void **state)
{
    (void)state;
    assert_string_equal(err_code_name(ERR_FILE_NOT_FOUND), "file_not_found");
    assert_int_equal(err_code_status(ERR_FILE_NOT_FOUND), 404);
    assert_int_equal(err_code_status(ERR_NO_SPACE), 507);
    assert_string_equal(err_code_name((enum err_code)9999), "internal_error");
    for (int code = 1; code < ERR_CODE_COUNT; code++) {
        assert_int_equal(err_code_find(err_code_name((enum err_code)code)), code);
        assert_in_range(err_code_status((enum err_code)code), 400, 599);
    }
    assert_int_equal(err_code_find("no_such_code"), ERR_NONE);
    assert_int_equal(err_code_find(""), ERR_NONE);
}

static void test_from_errno(void **state)
{
    (void)state;
    assert_int_equal(err_from_errno(ENOENT), ERR_FILE_NOT_FOUND);
    assert_int_equal(err_from_errno(EXDEV), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(err_from_errno(ENOSPC), ERR_NO_SPACE);
    assert_int_equal(err_from_errno(EACCES), ERR_PERMISSION_DENIED);
    assert_int_equal(err_from_errno(ENAMETOOLONG), ERR_INVALID_PATH);
    assert_int_equal(err_from_errno(EIO), ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_fills_all_and_answers_minus_one),
        cmocka_unit_test(test_text_is_utf8),
        cmocka_unit_test(test_errno_is_kept_and_told),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_from_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
