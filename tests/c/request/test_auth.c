/* Token, Host and Origin. */
#include "request/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const hosts[] = {"box.example", NULL};
static const char *const origins[] = {"https://app.example", NULL};
static const struct auth_policy policy = {
    .token = "s3cret-token", .loopback = true, .allowed_hosts = hosts, .allowed_origins = origins, .rest_port = 8080};
static struct err err;

static enum err_code host(const char *value, const char *authority)
{
    struct auth_headers headers = {.host = value, .host_count = 1};

    return auth_check_host(&policy, &headers, authority, &err) < 0 ? err.code : ERR_NONE;
}

static enum err_code origin(const char *host, const char *value, const char *fetch_site)
{
    struct auth_headers headers = {
        .host = host, .host_count = 1, .origin = value, .origin_count = value != NULL, .fetch_site = fetch_site};

    return auth_check_origin(&policy, &headers, &err) < 0 ? err.code : ERR_NONE;
}

static enum err_code token(const char *value, size_t count, bool *sent)
{
    struct auth_headers headers = {.authorization = value, .authorization_count = count};

    return auth_check_token(&policy, &headers, sent, &err) < 0 ? err.code : ERR_NONE;
}

static void loopback_names_pass(void **state)
{
    static const char *const good[] = {"localhost", "LOCALHOST:8080", "127.0.0.1",      "127.0.0.1:1", "[::1]:8080",
                                       "[::1]",     "box.example",    "BOX.example:99", "127.1.2.3"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(host(good[i], NULL), ERR_NONE);
}

static void other_hosts_are_refused(void **state)
{
    static const char *const foreign[] = {"evil.example",
                                          "127.0.0.1.evil.example",
                                          "localhost.evil.example",
                                          "10.0.0.1",
                                          "[::2]",
                                          "xlocalhost",
                                          "box.example.evil",
                                          "128.0.0.1"};
    static const char *const malformed[] = {"",
                                            "localhost:80@evil",
                                            ":80",
                                            "local host",
                                            "localhost:8x",
                                            "localhost:123456",
                                            "[::1",
                                            "::1",
                                            "[]",
                                            "localhost,evil",
                                            "evil@localhost",
                                            "localhost/x"};

    (void)state;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        assert_int_equal(host(foreign[i], NULL), ERR_HOST_NOT_ALLOWED);
    assert_non_null(strstr(err.text, "allowed_hosts")); /* says what to do */
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(host(malformed[i], NULL), ERR_INVALID_REQUEST);
    }
}

static void exactly_one_host(void **state)
{
    struct auth_headers none = {0}, two = {.host = "localhost", .host_count = 2};

    (void)state;
    assert_int_equal(auth_check_host(&policy, &none, NULL, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
    assert_int_equal(auth_check_host(&policy, &two, NULL, &err), -1);
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
}

static void absolute_form_must_agree(void **state)
{
    (void)state;
    assert_int_equal(host("localhost:8080", "LOCALHOST:8080"), ERR_NONE);
    assert_int_equal(host("localhost:8080", "evil.example"), ERR_INVALID_REQUEST);
    assert_int_equal(host("localhost:8080", "localhost"), ERR_INVALID_REQUEST);
    assert_int_equal(host("localhost", "user@localhost"), ERR_INVALID_REQUEST);
}

static void hosts_beyond_loopback(void **state)
{
    static const char *const no_hosts[] = {NULL};
    static const char *const addresses[] = {"10.0.0.1:8080", "[fd00::1]", "127.0.0.1", "localhost"};
    static const char *const names[] = {"anything.example:1", "10.0.0.1.example", "10.0.0", "[::1.example]"};
    struct auth_policy open = policy;

    (void)state;
    open.loopback = false;
    for (int round = 0; round < 3; round++) {
        open.token = round == 0 ? "s3cret-token" : NULL; /* allowed_hosts alone, no token alone, both */
        open.allowed_hosts = round == 1 ? no_hosts : hosts;
        for (size_t i = 0; i < 4; i++) {
            struct auth_headers address = {.host = addresses[i], .host_count = 1};
            struct auth_headers name = {.host = names[i], .host_count = 1};
            struct auth_headers listed = {.host = "box.example:1", .host_count = 1};

            assert_int_equal(auth_check_host(&open, &address, NULL, &err), 0);
            assert_int_equal(auth_check_host(&open, &name, NULL, &err), -1);
            assert_int_equal(err.code, i < 3 ? ERR_HOST_NOT_ALLOWED : ERR_INVALID_REQUEST);
            assert_int_equal(auth_check_host(&open, &listed, NULL, &err), round == 1 ? -1 : 0);
        }
    }

    struct auth_headers any = {.host = "anything.example:1", .host_count = 1};
    open.token = "s3cret-token";
    open.allowed_hosts = no_hosts;
    assert_int_equal(auth_check_host(&open, &any, NULL, &err), 0);
    open.allowed_hosts = NULL;
    assert_int_equal(auth_check_host(&open, &any, NULL, &err), 0);
}

static void own_and_allowed_origins_pass(void **state)
{
    (void)state;
    assert_int_equal(origin("localhost:8080", NULL, NULL), ERR_NONE);
    assert_int_equal(origin("localhost:8080", "http://localhost:8080", "same-origin"), ERR_NONE);
    assert_int_equal(origin("localhost:8080", "https://LOCALHOST:8080", NULL), ERR_NONE);
    assert_int_equal(origin("localhost:8081", "http://localhost:8080", NULL), ERR_NONE); /* terminals' port */
    assert_int_equal(origin("[::1]:8081", "http://[::1]:8080", NULL), ERR_NONE);
    assert_int_equal(origin("localhost:8080", "https://app.example", "cross-site"), ERR_NONE);
}

static void foreign_origins_are_refused(void **state)
{
    static const char *const bad[] = {"https://evil.example",
                                      "null",
                                      "",
                                      "http://127.0.0.1.evil.example",
                                      "http://localhost:9999",
                                      "http://localhost",
                                      "localhost:8080",
                                      "ftp://localhost:8080",
                                      "https://app.example.evil",
                                      "https://app.example:444"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(origin("localhost:8080", bad[i], NULL), ERR_ORIGIN_NOT_ALLOWED);
    assert_int_equal(origin("localhost:8080", NULL, "cross-site"), ERR_ORIGIN_NOT_ALLOWED);
    assert_int_equal(origin("localhost:8080", NULL, "same-site"), ERR_NONE);
    assert_int_equal(origin("localhost:8080", NULL, "none"), ERR_NONE);
}

static void tokens(void **state)
{
    struct auth_policy open = policy;
    struct auth_headers none = {0};
    bool sent;

    (void)state;
    assert_int_equal(token("Bearer s3cret-token", 1, &sent), ERR_NONE);
    assert_int_equal(token("bearer   s3cret-token", 1, &sent), ERR_NONE);
    assert_int_equal(token("Bearer s3cret-toke", 1, &sent), ERR_UNAUTHORIZED);
    assert_true(sent);
    assert_int_equal(token("Bearer s3cret-token ", 1, &sent), ERR_UNAUTHORIZED);
    assert_int_equal(token("Bearer ", 1, &sent), ERR_UNAUTHORIZED);
    assert_int_equal(token("Basic s3cret-token", 1, &sent), ERR_UNAUTHORIZED);
    assert_int_equal(token("Bearer s3cret-token", 2, &sent), ERR_UNAUTHORIZED);
    assert_int_equal(token(NULL, 0, &sent), ERR_UNAUTHORIZED);
    assert_false(sent);
    open.token = NULL;
    assert_int_equal(auth_check_token(&open, &none, &sent, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_names_pass),
        cmocka_unit_test(other_hosts_are_refused),
        cmocka_unit_test(exactly_one_host),
        cmocka_unit_test(absolute_form_must_agree),
        cmocka_unit_test(hosts_beyond_loopback),
        cmocka_unit_test(own_and_allowed_origins_pass),
        cmocka_unit_test(foreign_origins_are_refused),
        cmocka_unit_test(tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
