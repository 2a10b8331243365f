/* Answers: headers that cannot be forged, and what deinit lets go. */
#include "model/response.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_headers(void **state)
{
    (void)state;
    struct response response;
    response_init(&response);
    assert_int_equal(response.status, 200);
    assert_int_equal(response.file.fd, -1);
    assert_int_equal(response_header(&response, "Content-Type", "text/plain"), 0);
    assert_int_equal(response_header(&response, "content-type", "a/b"), 0);
    assert_int_equal(response.header_count, 1);
    assert_string_equal(response_header_find(&response, "CONTENT-TYPE"), "a/b");
    assert_string_equal(response.headers[0].name, "content-type");
    assert_int_equal(response_header(&response, "X-Empty", ""), 0);
    assert_int_equal(response_header(&response, "X-High", "\xC3\xA4"), 0);
    assert_null(response_header_find(&response, "X"));
    static const char *const bad_names[] = {"", "a b", "a:", "a\n", "\xC3\xA4", "a(b)", "a\"b", "a/b"};
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++)
        assert_int_equal(response_header(&response, bad_names[i], "x"), -1);
    static const char *const bad_values[] = {"a\nb", "a\r", "\x01", "a\tb", "\x7F", "x\r\nSet-Cookie: y"};
    for (size_t i = 0; i < sizeof bad_values / sizeof *bad_values; i++)
        assert_int_equal(response_header(&response, "X-Bad", bad_values[i]), -1);
    assert_int_equal(response.header_count, 3);
    char name[16];
    for (int i = 3; i < RESPONSE_HEADERS_MAX; i++) {
        snprintf(name, sizeof name, "X-%d", i);
        assert_int_equal(response_header(&response, name, "v"), 0);
    }
    assert_int_equal(response_header(&response, "X-More", "v"), -1);
    assert_int_equal(response_header_fixed(&response, "X-More", "v"), -1);
    assert_int_equal(response_header(&response, "X-3", "replaced"), 0);
    assert_string_equal(response_header_find(&response, "x-3"), "replaced");
    static const char fixed[] = "not copied";
    assert_int_equal(response_header_fixed(&response, "x-3", fixed), 0);
    assert_ptr_equal(response_header_find(&response, "X-3"), fixed);
    assert_int_equal(response_header(&response, "X-3", "copied"), 0);
    assert_string_equal(response_header_find(&response, "X-3"), "copied");
    response_deinit(&response);
    response_deinit(&response);
}

static int gones;

static void on_gone(void *ctx)
{
    (void)ctx;
    gones++;
}

static void test_deinit_lets_all_go(void **state)
{
    (void)state;
    struct response response;
    response_init(&response);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    response.file.fd = fd;
    struct sink *sink = response.sink = sink_new();
    sink->on_gone = on_gone;
    assert_int_equal(buf_append_text(&response.bytes, "body"), 0);
    response_deinit(&response);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(gones, 1);
    assert_true(sink->gone);
    sink_unref(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_headers), cmocka_unit_test(test_deinit_lets_all_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
