/* Which URLs of remotes are taken, whom they name, and that all else is refused with the right word. */
#include "helper/git_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char base[64];
static struct git_call call;

static void test_origins(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host;
        unsigned port;
        bool https;
    } good[] = {
        {"http://host", "host", 80, false},
        {"https://host/", "host", 443, true},
        {"HTTP://HOST/x", "host", 80, false},
        {"hTTpS://Host.Example:8443/a/b.git?q#f", "host.example", 8443, true},
        {"http://host:1/x", "host", 1, false},
        {"http://host:65535", "host", 65535, false},
        {"http://host:00080/x", "host", 80, false},
        {"http://[::1]/x", "::1", 80, false},
        {"https://[FE80::1]:444/x", "fe80::1", 444, true},
        {"http://127.0.0.1?x", "127.0.0.1", 80, false},
        {"http://a_b-c.d/x", "a_b-c.d", 80, false},
        {"http://host/a@b:c", "host", 80, false},
        {"http://host/%00", "host", 80, false}, /* the server's to judge: nothing here decodes it */
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct git_origin origin;
        if (git_origin_of(good[i].url, &origin) != 0)
            fail_msg("refused: %s", good[i].url);
        assert_string_equal(origin.host, good[i].host);
        assert_int_equal(origin.port, good[i].port);
        assert_int_equal(origin.https, good[i].https);
        assert_true(git_origin_equal(&origin, &origin));
    }
}

static void test_origins_that_differ(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://a/", "https://a/", "http://b/", "http://a:81/", "https://a:80/"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        for (size_t k = 0; k < sizeof urls / sizeof urls[0]; k++) {
            struct git_origin one, two;
            assert_int_equal(git_origin_of(urls[i], &one), 0);
            assert_int_equal(git_origin_of(urls[k], &two), 0);
            assert_int_equal(git_origin_equal(&one, &two), i == k);
        }
}

static enum err_code code_for(const char *text, bool must_exist, struct git_url *url)
{
    struct err err = {0};
    if (git_url_read(&call, "url", text, base, must_exist, url, &err) == 0)
        return ERR_NONE;
    assert_string_equal(err.field, "url");
    assert_null(strstr(err.text, "secret"));
    return err.code;
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        enum err_code code;
    } bad[] = {
        {"", ERR_URL_NOT_ALLOWED},
        {"http://", ERR_URL_NOT_ALLOWED},
        {"https://", ERR_URL_NOT_ALLOWED},
        {"http:///x", ERR_URL_NOT_ALLOWED},
        {"http://:80/x", ERR_URL_NOT_ALLOWED},
        {"http://?x", ERR_URL_NOT_ALLOWED},
        {"http:/x", ERR_URL_NOT_ALLOWED},
        {"http:x", ERR_URL_NOT_ALLOWED},
        {"https:host/x", ERR_URL_NOT_ALLOWED},
        {"http://a@b", ERR_URL_NOT_ALLOWED},
        {"http://a:secret@b/x", ERR_URL_NOT_ALLOWED},
        {"HTTPS://a:secret@b/x", ERR_URL_NOT_ALLOWED},
        {"http://@b/x", ERR_URL_NOT_ALLOWED},
        {"http://a%40b/x", ERR_URL_NOT_ALLOWED},
        {"http://good\\@evil/x", ERR_URL_NOT_ALLOWED},
        {"http://good\\evil/x", ERR_URL_NOT_ALLOWED},
        {"http://host/a\\b", ERR_URL_NOT_ALLOWED},
        {"http://host:0/x", ERR_URL_NOT_ALLOWED},
        {"http://host:65536/x", ERR_URL_NOT_ALLOWED},
        {"http://host:000080/x", ERR_URL_NOT_ALLOWED},
        {"http://host:/x", ERR_URL_NOT_ALLOWED},
        {"http://host:-1/x", ERR_URL_NOT_ALLOWED},
        {"http://host:+80/x", ERR_URL_NOT_ALLOWED},
        {"http://host:80x/x", ERR_URL_NOT_ALLOWED},
        {"http://host:80:81/x", ERR_URL_NOT_ALLOWED},
        {"http://[::1/x", ERR_URL_NOT_ALLOWED},
        {"http://[]/x", ERR_URL_NOT_ALLOWED},
        {"http://[::1]x/x", ERR_URL_NOT_ALLOWED},
        {"http://[fe80::1%25eth0]/x", ERR_URL_NOT_ALLOWED},
        {"http://::1/x", ERR_URL_NOT_ALLOWED},
        {"http://host\r\nHost: evil/x", ERR_URL_NOT_ALLOWED},
        {"http://host/x\r\nX: y", ERR_URL_NOT_ALLOWED},
        {"http://host/\nx", ERR_URL_NOT_ALLOWED},
        {"http://ho st/x", ERR_URL_NOT_ALLOWED},
        {"http://host/\x7f", ERR_URL_NOT_ALLOWED},
        {"http://h\xc3\xb6st/x", ERR_URL_NOT_ALLOWED},
        {"http://host%00.evil/x", ERR_URL_NOT_ALLOWED},
        {" http://host/x", ERR_URL_NOT_ALLOWED},
        {"ftp://host/x", ERR_URL_NOT_ALLOWED},
        {"ssh://host/x", ERR_URL_NOT_ALLOWED},
        {"git://host/x", ERR_URL_NOT_ALLOWED},
        {"git+ssh://host/x", ERR_URL_NOT_ALLOWED},
        {"git@host:x", ERR_URL_NOT_ALLOWED},
        {"host:x", ERR_URL_NOT_ALLOWED},
        {"ext::sh -c true", ERR_URL_NOT_ALLOWED},
        {"fd::3", ERR_URL_NOT_ALLOWED},
        {"http::http://host/x", ERR_URL_NOT_ALLOWED},
        {"file:x", ERR_URL_NOT_ALLOWED},
        {"file://", ERR_URL_NOT_ALLOWED},
        {"file://host/x", ERR_URL_NOT_ALLOWED},
        {"file://x", ERR_URL_NOT_ALLOWED},
        {"file:///%00", ERR_URL_NOT_ALLOWED},
        {"file:///%0", ERR_URL_NOT_ALLOWED},
        {"file:///%", ERR_URL_NOT_ALLOWED},
        {"file:///%zz", ERR_URL_NOT_ALLOWED},
        {"file:///etc", ERR_PATH_OUTSIDE_BASE},
        {"file://localhost/etc", ERR_PATH_OUTSIDE_BASE},
        {"FILE:///%65tc", ERR_PATH_OUTSIDE_BASE},
        {"/etc", ERR_PATH_OUTSIDE_BASE},
        {"../x", ERR_PATH_OUTSIDE_BASE},
        {"inside/../../x", ERR_PATH_OUTSIDE_BASE},
        {"out", ERR_PATH_OUTSIDE_BASE},
        {"-u", ERR_REPOSITORY_NOT_FOUND},
        {"--upload-pack=x", ERR_REPOSITORY_NOT_FOUND},
        {"nothing", ERR_REPOSITORY_NOT_FOUND},
        {"file", ERR_REPOSITORY_NOT_FOUND},
        {"./a:b", ERR_REPOSITORY_NOT_FOUND},
        {"inside", ERR_REPOSITORY_NOT_FOUND}, /* a directory, but none of git's */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct git_url url;
        enum err_code code = code_for(bad[i].url, true, &url);
        if (code != bad[i].code)
            fail_msg("%s: %s, not %s", bad[i].url, err_code_name(code), err_code_name(bad[i].code));
    }
}

static void test_taken(void **state)
{
    (void)state;
    struct git_url url;
    assert_int_equal(code_for("HTTP://Host:81/X", true, &url), ERR_NONE);
    assert_false(url.is_path);
    assert_string_equal(url.text, "HTTP://Host:81/X");
    assert_int_equal(url.origin.port, 81);
    static const struct {
        const char *before, *after;
        bool with_base;
    } paths[] = {
        {"", "inside", false},
        {"./inside/.", "", false},
        {"", "/inside", true},
        {"file://", "/inside", true},
        {"file://localhost", "/%69nside", true},
        {"FILE://", "/inside/", true},
    };
    char expected[80], text[128];
    snprintf(expected, sizeof expected, "%s/inside", base);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(text, sizeof text, "%s%s%s", paths[i].before, paths[i].with_base ? base : "", paths[i].after);
        enum err_code code = code_for(text, false, &url);
        if (code != ERR_NONE)
            fail_msg("%s: %s", text, err_code_name(code));
        assert_true(url.is_path);
        assert_string_equal(url.text, expected);
    }
}

static void test_long_ones(void **state)
{
    (void)state;
    static const char *const begins[] = {"http://host/", "http://", "file:///", "", "http://[", "http://host:"};
    size_t size = 64 * 1024;
    char *text = malloc(size + 1);
    struct git_url url;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        memset(text, '1', size);
        text[size] = '\0';
        memcpy(text, begins[i], strlen(begins[i]));
        assert_int_not_equal(code_for(text, false, &url), ERR_NONE);
    }
    /* The longest host, and one more. */
    for (size_t len = sizeof url.origin.host - 1; len <= sizeof url.origin.host; len++) {
        memset(text, 'a', size);
        memcpy(text, "http://", 7);
        text[7 + len] = '\0';
        assert_int_equal(code_for(text, false, &url), len < sizeof url.origin.host ? ERR_NONE : ERR_URL_NOT_ALLOWED);
    }
    /* The longest URL, and one more. */
    for (size_t len = sizeof url.text - 1; len <= sizeof url.text; len++) {
        memset(text, 'a', size);
        memcpy(text, "http://host/", 12);
        text[len] = '\0';
        assert_int_equal(code_for(text, false, &url), len < sizeof url.text ? ERR_NONE : ERR_URL_NOT_ALLOWED);
    }
    free(text);
}

static void test_shown_without_credentials(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"http://ada:secret@host/x?y#z", "\"url\":\"http://host/x?y#z\""},
        {"http://a@b@host/x", "\"url\":\"http://host/x\""},
        {"ssh://git@host/x@y", "\"url\":\"ssh://host/x@y\""},
        {"http://host/x@y", "\"url\":\"http://host/x@y\""},
        {"../x", "\"url\":\"../x\""},
        {NULL, "\"url\":null"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct buf buf;
        buf_init(&buf, 4096);
        struct json_out out = {.buf = &buf};
        git_url_out(&out, "url", pairs[i][0]);
        assert_false(out.failed);
        assert_int_equal(buf.len, strlen(pairs[i][1]));
        assert_memory_equal(buf.data, pairs[i][1], buf.len);
        buf_deinit(&buf);
    }
}

static int set_up(void **state)
{
    (void)state;
    struct err err;
    char path[128];
    strcpy(base, "/tmp/test-url-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(path, sizeof path, "%s/inside", base);
    if (mkdir(path, 0700) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/out", base);
    if (symlink("/etc", path) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/file", base);
    FILE *file = fopen(path, "w");
    call.confine = confine_new(base, false, &err);
    return git_libgit2_init() > 0 && file && fclose(file) == 0 && call.confine ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    confine_free((struct confine *)call.confine);
    git_libgit2_shutdown();
    snprintf(command, sizeof command, "rm -r '%s'", base);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_origins),   cmocka_unit_test(test_origins_that_differ),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_taken),
        cmocka_unit_test(test_long_ones), cmocka_unit_test(test_shown_without_credentials),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
