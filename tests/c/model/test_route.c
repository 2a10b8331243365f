/* Method names. */
#include "model/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_methods(void **state)
{
    (void)state;
    enum method method = METHOD_COUNT;
    for (int i = 0; i < METHOD_COUNT; i++) {
        assert_int_equal(method_parse(method_name((enum method)i), &method), 0);
        assert_int_equal(method, i);
    }
    static const char *const others[] = {"HEAD", "OPTIONS", "get", "GETX", "", "POST "};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(method_parse(others[i], &method), -1);
    assert_int_equal(method, METHOD_DELETE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_methods)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
