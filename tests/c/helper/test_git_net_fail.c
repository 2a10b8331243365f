/* What clients are told when a server, its certificate or a system call ends an operation. */
#include "helper/git_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EXPIRED "The certificate validity has expired"
#define FUTURE "The certificate validity starts in the future"
#define OTHER "The certificate Common Name (CN) does not match with the expected CN"
#define UNKNOWN "The certificate is not correctly signed by the trusted CA"
#define TRUST                                                                                                          \
    " (abxd trusts whom its environment names in GIT_SSL_CAINFO, SSL_CERT_FILE or SSL_CERT_DIR, else the system's "    \
    "authorities)"

static struct err fail_with(struct git_net *net, int git_code, int class, const char *message)
{
    struct err err = {0};
    git_stop_reset();
    git_error_set_str(class, message);
    assert_int_equal(git_net_fail(net, git_code, "cannot fetch", &err), -1);
    return err;
}

static void test_certificates(void **state)
{
    (void)state;
    static const struct {
        const char *host, *reason, *text;
    } cases[] = {
        {"host.example", EXPIRED, "cannot fetch: the certificate of host.example has expired"},
        {"host.example", FUTURE, "cannot fetch: the certificate of host.example is not valid yet"},
        {"host.example", OTHER, "cannot fetch: the certificate of host.example is for another host"},
        {"127.0.0.1", OTHER,
         "cannot fetch: the certificate of 127.0.0.1 is for another host (addresses count only where they stand as a "
         "DNS "
         "name)"},
        {"::1", OTHER,
         "cannot fetch: the certificate of ::1 is for another host (addresses count only where they stand as a DNS "
         "name)"},
        {"host.example", UNKNOWN, "cannot fetch: the certificate of host.example is not trusted" TRUST},
        {"host.example", EXPIRED "\n" OTHER "\n" UNKNOWN,
         "cannot fetch: the certificate of host.example has expired, is for another host, is not trusted" TRUST},
        {"host.example", "The certificate is signed with an unacceptable hash.\nBut",
         "cannot fetch: the certificate of host.example is not accepted: the SSL certificate is invalid: 0x8 - The "
         "certificate is signed with an unacceptable hash.;But"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct git_net net = {.port = 443};
        char message[512];
        snprintf(net.host, sizeof net.host, "%s", cases[i].host);
        snprintf(message, sizeof message, "the SSL certificate is invalid: 0x8 - %s", cases[i].reason);
        struct err err = fail_with(&net, GIT_ECERTIFICATE, GIT_ERROR_SSL, message);
        assert_int_equal(err.code, ERR_GIT_NETWORK);
        assert_string_equal(err.text, cases[i].text);
    }
}

static void test_tls(void **state)
{
    (void)state;
    struct git_net net = {.host = "host.example", .port = 8443};
    struct err err =
        fail_with(&net, -1, GIT_ERROR_SSL, "SSL error: 0xffff8e00 - SSL - An invalid SSL record was received");
    assert_int_equal(err.code, ERR_GIT_NETWORK);
    assert_string_equal(err.text,
                        "cannot fetch: TLS with host.example port 8443 failed: An invalid SSL record was received");
    err = fail_with(&net, -1, GIT_ERROR_SSL, "SSL error: unknown error");
    assert_string_equal(err.text, "cannot fetch: TLS with host.example port 8443 failed: SSL error: unknown error");
}

/* Whatever a server says stays on one line, and is UTF-8. */
static void test_what_the_server_says(void **state)
{
    (void)state;
    struct git_net net = {.said = "not\xff now\x1b[1m\nfor you\n\n"};
    struct err err = fail_with(&net, -1, GIT_ERROR_NET, "early EOF");
    assert_int_equal(err.code, ERR_GIT_NETWORK);
    assert_string_equal(err.text, "cannot fetch: early EOF (the server says: not? now [1m;for you)");
    net.said[0] = '\0';
    err = fail_with(&net, -1, GIT_ERROR_NET, "early EOF");
    assert_string_equal(err.text, "cannot fetch: early EOF");
    /* A broken stream, not a broken repository. */
    assert_int_equal(fail_with(&net, GIT_ERROR, GIT_ERROR_ZLIB, "x").code, ERR_GIT_NETWORK);
    assert_int_equal(fail_with(&net, GIT_ERROR, GIT_ERROR_CONFIG, "x").code, ERR_INVALID_REQUEST);
    assert_int_equal(fail_with(&net, -1, GIT_ERROR_HTTP, "unexpected http status code: 404").code,
                     ERR_REPOSITORY_NOT_FOUND);
}

/* The system's reason is found, and told, behind the longest path. */
static void test_system_calls(void **state)
{
    (void)state;
    struct git_net net = {0};
    char message[2048];
    snprintf(message, sizeof message, "could not write '/%01500d': No space left on device", 0);
    struct err err = fail_with(&net, -1, GIT_ERROR_OS, message);
    assert_int_equal(err.code, ERR_NO_SPACE);
    assert_non_null(strstr(err.text, "cannot fetch: could not write '/0000"));
    assert_string_equal(err.text + strlen(err.text) - 25, ": No space left on device");
    err = fail_with(&net, -1, GIT_ERROR_OS, "could not write 'x': No space left on device");
    assert_string_equal(err.text, "cannot fetch: could not write 'x': No space left on device");
    assert_int_equal(fail_with(&net, -1, GIT_ERROR_OS, "Permission denied as such").code, ERR_INTERNAL);
}

static void test_credentials_are_dropped(void **state)
{
    (void)state;
    struct git_net net = {0};
    char message[1024];
    snprintf(message, sizeof message, "%0150d bad URL 'http://ada:secret%0100d@host/x' or http://b:secret@c/", 0, 0);
    struct err err = fail_with(&net, -1, GIT_ERROR_NET, message);
    assert_null(strstr(err.text, "secret"));
    assert_non_null(strstr(err.text, "'http://host/x' or http://c/"));
}

static int set_up(void **state)
{
    (void)state;
    return git_libgit2_init() > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    git_libgit2_shutdown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_what_the_server_says),
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_credentials_are_dropped),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
