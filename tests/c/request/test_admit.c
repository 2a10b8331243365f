/* Who is let in and to which route, and what every answer carries. */
#include "pipeline_fixture.h"

static void success_has_the_common_headers(void **state)
{
    (void)state;
    assert_int_equal(call("GET", "/health", anonymous, NULL), 200);
    assert_string_equal(body_text(), "{\"status\":\"ok\"}");
    assert_int_equal(strlen(header("X-Request-Id")), 17);
    assert_string_equal(header("Cache-Control"), "no-store");
    assert_string_equal(header("X-Content-Type-Options"), "nosniff");
    assert_int_equal(call("HEAD", "/health", anonymous, NULL), 200);
}

static void request_ids_are_echoed_if_they_are_proper(void **state)
{
    const char *headers[] = {"Host", "localhost", "x-request-id", "my.id_1-2", NULL};

    (void)state;
    call("GET", "/health", headers, NULL);
    assert_string_equal(header("X-Request-Id"), "my.id_1-2");
    headers[3] = "no good";
    call("GET", "/health", headers, NULL);
    assert_string_not_equal(header("X-Request-Id"), "no good");
    headers[3] = "12345678901234567890123456789012345678901234567890123456789012345";
    call("GET", "/health", headers, NULL);
    assert_int_equal(strlen(header("X-Request-Id")), 17);
}

static void without_a_token_all_is_401(void **state)
{
    static const char *const targets[] = {
        "/echo", "/nowhere", "/health/../echo",      "/health/%2e%2e/echo", "//echo", "/health%2f..%2fecho", "/echo%00",
        "/%zz",  "/off",     "http://localhost/echo"};
    const char *wrong[] = {"Host", "localhost", "Authorization", "Bearer nope", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_int_equal(call("GET", targets[i], anonymous, NULL), 401);
        assert_code("unauthorized");
        assert_string_equal(header("WWW-Authenticate"), "Bearer realm=\"abxd\"");
    }
    assert_int_equal(call("POST", "/health", anonymous, NULL), 401);
    assert_int_equal(call("OPTIONS", "/health", anonymous, NULL), 401);
    assert_int_equal(call("GET", "/echo", wrong, NULL), 401);
    assert_string_equal(header("WWW-Authenticate"), "Bearer realm=\"abxd\", error=\"invalid_token\"");
}

static void routing_failures(void **state)
{
    (void)state;
    assert_int_equal(call("GET", "/nowhere", plain, NULL), 404);
    assert_code("not_found");
    assert_int_equal(call("DELETE", "/echo", plain, NULL), 405);
    assert_code("method_not_allowed");
    assert_string_equal(header("Allow"), "GET, HEAD, POST, OPTIONS");
    assert_int_equal(call("BREW", "/wait", plain, NULL), 405);
    assert_string_equal(header("Allow"), "GET, HEAD, OPTIONS");
    assert_int_equal(call("OPTIONS", "/echo", plain, NULL), 204);
    assert_string_equal(header("Allow"), "GET, HEAD, POST, OPTIONS");
    assert_int_equal(call("GET", "/off", plain, NULL), 403);
    assert_code("capability_disabled");
    assert_non_null(strstr(body_text(), "browser"));
    assert_int_equal(call("GET", "/%zz", plain, NULL), 400);
    assert_code("invalid_request");
    assert_int_equal(call("GET", "/fail", plain, NULL), 404);
    assert_code("file_not_found");
}

static void hosts_and_origins(void **state)
{
    const char *headers[] = {"Host", "evil.example", "Origin", "https://app.example", NULL, NULL, NULL};

    (void)state;
    assert_int_equal(call("GET", "/health", headers, NULL), 403);
    assert_code("host_not_allowed");
    headers[1] = "localhost";
    assert_int_equal(call("GET", "/health", headers, NULL), 200);
    assert_string_equal(header("Access-Control-Allow-Origin"), "https://app.example");
    assert_string_equal(header("Vary"), "Origin");
    headers[4] = "Access-Control-Request-Method";
    headers[5] = "POST";
    assert_int_equal(call("OPTIONS", "/echo", headers, NULL), 204);
    assert_non_null(strstr(header("Access-Control-Allow-Headers"), "Authorization"));
    assert_string_equal(header("Access-Control-Allow-Origin"), "https://app.example");
    headers[3] = "https://evil.example";
    assert_int_equal(call("OPTIONS", "/echo", headers, NULL), 403);
    assert_code("origin_not_allowed");
    assert_string_equal(header("Access-Control-Allow-Origin"), "-");
    headers[4] = NULL;
    assert_int_equal(call("GET", "/health", headers, NULL), 403);
    assert_int_equal(call("GET", "/health", NULL, NULL), 400);
    assert_int_equal(call("GET", "http://evil.example/health", anonymous, NULL), 400);
    assert_int_equal(call("GET", "http://LOCALHOST/health", anonymous, NULL), 200);
}

static void expectations(void **state)
{
    const char *headers[] = {"Host", "localhost", "Authorization", "Bearer token", "Expect", "tea", NULL};

    (void)state;
    assert_int_equal(call("GET", "/echo?text=a", headers, NULL), 417);
    assert_code("expectation_failed");
    headers[5] = "100-Continue";
    assert_int_equal(call("GET", "/echo?text=a", headers, NULL), 200);
}

static void files_answer_conditions(void **state)
{
    const char *headers[] = {"Host", "localhost", "Authorization", "Bearer token", "Range", "bytes=2-4", NULL};

    (void)state;
    assert_int_equal(call("GET", "/file", plain, NULL), 200);
    assert_string_equal(header("ETag"), "\"e\"");
    assert_string_equal(header("Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_string_equal(header("Accept-Ranges"), "bytes");
    assert_int_equal(got.response.file.length, 10);
    assert_int_equal(call("GET", "/file", headers, NULL), 206);
    assert_string_equal(header("Content-Range"), "bytes 2-4/10");
    assert_int_equal(got.response.file.first, 2);
    assert_int_equal(got.response.file.length, 3);
    assert_int_equal(call("HEAD", "/file", headers, NULL), 200);
    headers[5] = "bytes=10-";
    assert_int_equal(call("GET", "/file", headers, NULL), 416);
    assert_code("range_not_satisfiable");
    assert_string_equal(header("Content-Range"), "bytes */10");
    headers[4] = "If-None-Match";
    headers[5] = "\"e\"";
    assert_int_equal(call("GET", "/file", headers, NULL), 304);
    assert_int_equal(got.response.file.fd, -1);
    assert_string_equal(header("ETag"), "\"e\"");
    headers[4] = "If-Match";
    headers[5] = "\"other\"";
    assert_int_equal(call("GET", "/file", headers, NULL), 412);
    assert_code("stale_write");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(success_has_the_common_headers),
        TEST(request_ids_are_echoed_if_they_are_proper),
        TEST(without_a_token_all_is_401),
        TEST(routing_failures),
        TEST(hosts_and_origins),
        TEST(expectations),
        TEST(files_answer_conditions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
