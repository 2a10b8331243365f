/* Who may open a terminal's WebSocket: each check, and that they come in the promised order. */
#include "net/ws_handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define TICKET "0123456789abcdef0123456789abcdef"
#define UPGRADE                                                                                                        \
    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY    \
    "\r\n"
#define HOST "Host: 127.0.0.1:8081\r\n"
#define BEARER "Authorization: Bearer token-1\r\n"

/* In place of the terminals: one of the id "t1", with one ticket. */
static struct terminal *const t1 = (struct terminal *)&t1;
static int tickets_taken;

struct terminal *terminals_lookup(struct terminals *terminals, const char *id, size_t len)
{
    (void)terminals;
    return len == 2 && memcmp(id, "t1", 2) == 0 ? t1 : NULL;
}

bool terminals_ticket_matches(struct terminals *terminals, const char *ticket, size_t len, const char *id)
{
    (void)terminals;
    return tickets_taken == 0 && len == strlen(TICKET) && memcmp(ticket, TICKET, len) == 0 && strcmp(id, "t1") == 0;
}

bool terminals_ticket_take(struct terminals *terminals, const char *ticket, size_t len, const char *id)
{
    bool good = terminals_ticket_matches(terminals, ticket, len, id);
    tickets_taken += good;
    return good;
}

static const char *const other_origins[] = {"https://good.example", NULL};
static struct auth_policy policy;
static struct ws_gate gate;
static struct ws_admission admission;
static struct ws_refusal refusal;

static int set_up(void **state)
{
    (void)state;
    policy =
        (struct auth_policy){.token = "token-1", .loopback = true, .allowed_origins = other_origins, .rest_port = 8080};
    gate = (struct ws_gate){.policy = &policy};
    tickets_taken = 0;
    return 0;
}

/* The status; 101 where it may be opened. admission.key is void then. */
static int check(const char *method, const char *target, const char *fields)
{
    struct ws_head head;
    struct err err;
    char text[4096];
    int len = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%s\r\n", method, target, fields);
    assert_in_range(len, 1, sizeof text - 1);
    if (ws_head_parse(&head, text, (size_t)len, &err) != 0)
        fail_msg("%s", err.text);
    if (ws_handshake_check(&gate, &head, &admission, &refusal) == 0) {
        assert_string_equal(admission.key, KEY);
        return 101;
    }
    return refusal.status ? refusal.status : err_code_status(refusal.err.code);
}

static void test_admitted(void **state)
{
    (void)state;
    assert_int_equal(check("GET", "/pty/t1?since=-1&cols=100&access=ro", HOST BEARER UPGRADE), 101);
    assert_string_equal(admission.id, "t1");
    assert_ptr_equal(admission.terminal, t1);
    assert_true(admission.query.read_only);
    assert_int_equal(admission.query.size.cols, 100);
    assert_false(admission.named);
    assert_false(admission.by_ticket);
    assert_int_equal(check("GET", "http://127.0.0.1:8081/pty/t1", HOST BEARER UPGRADE), 101);
}

/* Unknown ones are admitted, and closed with a code that browsers can see; none but the literal id is a terminal's. */
static void test_ids_are_literal(void **state)
{
    (void)state;
    static const char *const unknown[] = {"/pty/t2", "/pty/%741", "/pty/%2e%2e", "/pty/..", "/pty/t1%2F", "/pty/t1;x"};
    static const char *const elsewhere[] = {"/", "/pty", "/pty/", "/pty/t1/", "//pty/t1", "/x/../pty/t1", "/PTY/t1"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(check("GET", unknown[i], HOST BEARER UPGRADE), 101);
        assert_null(admission.terminal);
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        assert_int_equal(check("GET", elsewhere[i], HOST BEARER UPGRADE), 404);
    assert_int_equal(check("GET", "/pty/%zz", HOST BEARER UPGRADE), 400);
    assert_int_equal(check("GET", "/pty/t1%00", HOST BEARER UPGRADE), 400);
}

static void test_host_and_origin(void **state)
{
    (void)state;
    assert_int_equal(check("GET", "/pty/t1", BEARER UPGRADE), 400);
    assert_int_equal(check("GET", "/pty/t1", HOST HOST BEARER UPGRADE), 400);
    assert_int_equal(check("GET", "/pty/t1", "Host: evil.example\r\n" BEARER UPGRADE), 403);
    assert_int_equal(check("GET", "/pty/t1", "Host: [::1]:8081\r\n" BEARER UPGRADE), 101);
    assert_int_equal(check("GET", "http://evil.example/pty/t1", HOST BEARER UPGRADE), 400);

    static const char *const bad[] = {"https://evil.example", "null", "http://127.0.0.1.evil.example",
                                      "http://127.0.0.1:9999", ""};
    static const char *const good[] = {"http://127.0.0.1:8081", "http://127.0.0.1:8080", "https://good.example"};
    char fields[1024];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(fields, sizeof fields, HOST BEARER UPGRADE "Origin: %s\r\n", bad[i]);
        assert_int_equal(check("GET", "/pty/t1", fields), 403);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(fields, sizeof fields, HOST BEARER UPGRADE "Origin: %s\r\n", good[i]);
        assert_int_equal(check("GET", "/pty/t1", fields), 101);
        snprintf(fields, sizeof fields, HOST BEARER UPGRADE "Origin: %s\r\nOrigin: %s\r\n", good[i], good[i]);
        assert_int_equal(check("GET", "/pty/t1", fields), 403);
    }
    assert_int_equal(check("GET", "/pty/t1", HOST BEARER UPGRADE "Sec-Fetch-Site: cross-site\r\n"), 403);
}

static void test_credentials(void **state)
{
    (void)state;
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE), 401);
    assert_string_equal(refusal.name, "WWW-Authenticate");
    assert_string_equal(refusal.value, "Bearer realm=\"abxd\"");
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE "Authorization: Bearer token-2\r\n"), 401);
    assert_string_equal(refusal.value, "Bearer realm=\"abxd\", error=\"invalid_token\"");
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE BEARER BEARER), 401);

    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE "Sec-WebSocket-Protocol: abx.pty.v1, bearer.token-1\r\n"),
                     101);
    assert_true(admission.named);
    assert_int_equal(check("GET", "/pty/t1",
                           HOST UPGRADE "Sec-WebSocket-Protocol: bearer64.dG9rZW4tMQ\r\n"
                                        "Sec-WebSocket-Protocol: abx.pty.v1\r\n"),
                     101);
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE "Sec-WebSocket-Protocol: abx.pty.v1, bearer.token-2\r\n"),
                     401);
    /* The sub-protocol is looked at after the credentials. */
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE "Sec-WebSocket-Protocol: bearer.token-1\r\n"), 400);

    policy.token = NULL;
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE), 101);
}

static void test_ticket(void **state)
{
    (void)state;
    assert_int_equal(check("GET", "/pty/t2?ticket=" TICKET, HOST UPGRADE), 401);
    assert_int_equal(check("GET", "/x?ticket=" TICKET, HOST UPGRADE), 401);
    assert_int_equal(check("GET", "/pty/t1?ticket=" TICKET "&nope=1", HOST UPGRADE), 400);
    assert_int_equal(tickets_taken, 0);
    /* One that was not needed stays good. */
    assert_int_equal(check("GET", "/pty/t1?ticket=" TICKET, HOST BEARER UPGRADE), 101);
    ws_handshake_done(&gate, &admission);
    assert_int_equal(tickets_taken, 0);
    assert_int_equal(check("GET", "/pty/t1?ticket=" TICKET, HOST UPGRADE), 101);
    assert_true(admission.by_ticket);
    assert_int_equal(tickets_taken, 0);
    ws_handshake_done(&gate, &admission);
    assert_int_equal(tickets_taken, 1);
    assert_int_equal(check("GET", "/pty/t1?ticket=" TICKET, HOST UPGRADE), 401);
}

static void test_upgrade(void **state)
{
    (void)state;
    assert_int_equal(check("GET", "/pty/t1", HOST BEARER), 404);
    assert_int_equal(check("POST", "/pty/t1", HOST BEARER UPGRADE), 404);
    assert_int_equal(check("GET", "/pty/t1", HOST BEARER "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"),
                     404);
    assert_int_equal(check("OPTIONS", "*", HOST BEARER), 404);
#define WITH(version, key) HOST BEARER "Connection: upgrade\r\nUpgrade: WebSocket\r\n" version key
    assert_int_equal(check("GET", "/pty/t1", WITH("Sec-WebSocket-Version: 8\r\n", "Sec-WebSocket-Key: " KEY "\r\n")),
                     426);
    assert_string_equal(refusal.name, "Sec-WebSocket-Version");
    assert_string_equal(refusal.value, "13");
    assert_int_equal(check("GET", "/pty/t1", WITH("", "Sec-WebSocket-Key: " KEY "\r\n")), 426);
    static const char *const keys[] = {"",
                                       "x",
                                       "dGhlIHNhbXBsZSBub25jZQ=",
                                       "dGhlIHNhbXBsZSBub25jZSE=",
                                       "dGhlIHNhbXBsZSBub25jZ*==",
                                       "dGhlIHNhbXBsZSBub25jZR=="};
    char fields[1024];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(fields, sizeof fields, WITH("Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Key: %s\r\n"), keys[i]);
        assert_int_equal(check("GET", "/pty/t1", fields), 400);
    }
    assert_int_equal(check("GET", "/pty/t1", WITH("Sec-WebSocket-Version: 13\r\n", "")), 400);
    assert_int_equal(check("GET", "/pty/t1", HOST BEARER UPGRADE "Sec-WebSocket-Protocol: chat\r\n"), 400);
}

static void test_query_and_draining(void **state)
{
    (void)state;
    assert_int_equal(check("GET", "/pty/t1?cols=0", HOST BEARER UPGRADE), 400);
    assert_string_equal(refusal.err.field, "cols");
    gate.draining = true;
    assert_int_equal(check("GET", "/pty/t1?cols=0", HOST BEARER UPGRADE), 400);
    assert_int_equal(check("GET", "/pty/t1", HOST BEARER UPGRADE), 503);
    assert_int_equal(check("GET", "/pty/t1", HOST UPGRADE), 401);
}

/* Each refusal hides those that come later. */
static void test_order(void **state)
{
    (void)state;
    gate.draining = true;
    assert_int_equal(check("POST", "/x?y", "Host: evil.example\r\nOrigin: null\r\n"), 403);
    assert_int_equal(refusal.err.code, ERR_HOST_NOT_ALLOWED);
    assert_int_equal(check("POST", "/x?y", HOST "Origin: null\r\n"), 403);
    assert_int_equal(refusal.err.code, ERR_ORIGIN_NOT_ALLOWED);
    assert_int_equal(check("POST", "/x?y", HOST), 401);
    assert_int_equal(check("POST", "/x?y", HOST BEARER), 404);
}

/* The example of RFC 6455. */
static void test_accept(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 28);
    assert_int_equal(ws_handshake_accept(&out, KEY), 0);
    assert_int_equal(out.len, 28);
    assert_memory_equal(out.data, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 28);
    assert_int_equal(ws_handshake_accept(&out, KEY), -1);
    assert_int_equal(out.len, 28);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_admitted, set_up),
        cmocka_unit_test_setup(test_ids_are_literal, set_up),
        cmocka_unit_test_setup(test_host_and_origin, set_up),
        cmocka_unit_test_setup(test_credentials, set_up),
        cmocka_unit_test_setup(test_ticket, set_up),
        cmocka_unit_test_setup(test_upgrade, set_up),
        cmocka_unit_test_setup(test_query_and_draining, set_up),
        cmocka_unit_test_setup(test_order, set_up),
        cmocka_unit_test(test_accept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
