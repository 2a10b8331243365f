/* The head of a handshake: found at its end, and taken apart strictly. */
#include "net/ws_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

/* In memory that ends where the text does. */
static int parse(struct ws_head *head, char **copy, const char *text, size_t len)
{
    *copy = malloc(len ? len : 1);
    assert_non_null(*copy);
    memcpy(*copy, text, len);
    return ws_head_parse(head, *copy, len, &err);
}

static void refused(const char *text, size_t len, enum err_code code)
{
    struct ws_head head;
    char *copy;
    if (parse(&head, &copy, text, len) == 0)
        fail_msg("taken: %s", text);
    assert_int_equal(err.code, code);
    free(copy);
}

#define REFUSED(text) refused(text, sizeof(text) - 1, ERR_INVALID_REQUEST)

static void test_end(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest\r\n\r\n";
    size_t end = strlen("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    for (size_t len = 0; len < sizeof text; len++)
        assert_int_equal(ws_head_len(text, len), len >= end ? end : 0);
    assert_int_equal(ws_head_len("a\n\nb", 4), 3);
    assert_int_equal(ws_head_len("a\n\r\nb", 5), 4);
    assert_int_equal(ws_head_len("\r\n", 2), 0);
}

static void test_parts(void **state)
{
    (void)state;
    static const char text[] =
        "GET /pty/x?since=1 HTTP/1.1\r\nHost:x\r\nUpgrade: \t WebSocket \r\nconnection: keep-alive,"
        " Upgrade\r\nEmpty:\r\nName: \xc3\xa4\r\n\r\n";
    struct ws_head head;
    char *copy;
    assert_int_equal(parse(&head, &copy, text, sizeof text - 1), 0);
    assert_string_equal(head.method, "GET");
    assert_string_equal(head.target, "/pty/x?since=1");
    assert_true(head.http_1_1);
    assert_int_equal(head.field_count, 5);
    assert_string_equal(ws_head_field(&head, "host"), "x");
    assert_string_equal(ws_head_field(&head, "upgrade"), "WebSocket");
    assert_string_equal(ws_head_field(&head, "Empty"), "");
    assert_string_equal(ws_head_field(&head, "name"), "\xc3\xa4");
    assert_null(ws_head_field(&head, "Origin"));
    assert_true(ws_head_lists(&head, "Connection", "upgrade"));
    assert_true(ws_head_lists(&head, "Upgrade", "websocket"));
    assert_false(ws_head_lists(&head, "Connection", "keep"));
    assert_false(ws_head_lists(&head, "Origin", "x"));
    free(copy);
}

static void test_versions(void **state)
{
    (void)state;
    struct ws_head head;
    char *copy;
    assert_int_equal(parse(&head, &copy, "GET / HTTP/1.0\r\n\r\n", 18), 0);
    assert_false(head.http_1_1);
    assert_int_equal(head.field_count, 0);
    free(copy);
    REFUSED("PRI * HTTP/2.0\r\n\r\n");
    REFUSED("GET / HTTP/1.10\r\n\r\n");
    REFUSED("GET / http/1.1\r\n\r\n");
    REFUSED("GET /\r\n\r\n");
}

/* A repeated field is told as none: whoever asks for one must not get either. */
static void test_repeated(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nHOST: b\r\nUpgrade: websocket\r\n\r\n";
    struct ws_head head;
    char *copy;
    assert_int_equal(parse(&head, &copy, text, sizeof text - 1), 0);
    assert_null(ws_head_field(&head, "Host"));
    assert_true(ws_head_lists(&head, "Upgrade", "websocket"));
    free(copy);
}

static void test_malformed(void **state)
{
    (void)state;
    REFUSED("");
    REFUSED("\r\n");
    REFUSED("\r\n\r\n");
    REFUSED("\n\n");
    REFUSED("GET / HTTP/1.1\n\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\r\n\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\r\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\x7f\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\x1b\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost : x\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\n: x\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHo(st: x\r\n\r\n");
    REFUSED("GET  / HTTP/1.1\r\n\r\n");
    REFUSED("GET / x HTTP/1.1\r\n\r\n");
    REFUSED(" GET / HTTP/1.1\r\n\r\n");
    REFUSED("GET / HTTP/1.1\r\nHost: x\r\n");
    REFUSED("GET / HTTP/1.1\r\n\r\nHost: x\r\n\r\n");
}

static void test_too_many_fields(void **state)
{
    (void)state;
    char text[32 + (WS_HEAD_FIELDS_MAX + 1) * 6 + 3];
    struct ws_head head;
    char *copy;
    for (int more = 0; more <= 1; more++) {
        size_t len = (size_t)sprintf(text, "GET / HTTP/1.1\r\n");
        for (int i = 0; i < WS_HEAD_FIELDS_MAX + more; i++)
            len += (size_t)sprintf(text + len, "a: b\r\n");
        len += (size_t)sprintf(text + len, "\r\n");
        if (more) {
            refused(text, len, ERR_HEADERS_TOO_LARGE);
            continue;
        }
        assert_int_equal(parse(&head, &copy, text, len), 0);
        assert_int_equal(head.field_count, WS_HEAD_FIELDS_MAX);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end),      cmocka_unit_test(test_parts),     cmocka_unit_test(test_versions),
        cmocka_unit_test(test_repeated), cmocka_unit_test(test_malformed), cmocka_unit_test(test_too_many_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
