/* prim/mask: which names are secret, and what of texts and words is hidden. */
#include "prim/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { OUT_MAX = 1024 * 1024 };

static void tells_secret_names(void **state)
{
    (void)state;
    static const char *const secret[] = {
        "TOKEN",    "MY_TOKEN_FILE", "tokens",        "GithubToken",   "SECRET",     "AWS_SECRET_ACCESS_KEY",
        "Password", "DB_PASSWORD",   "passwd",        "MYPASSWDS",     "CREDENTIAL", "google_credentials",
        "KEY",      "key",           "API_KEY",       "KEY_ID",        "A_KEY_B",    "OPENAI_APIKEY",
        "MYAPIKEY", "ACCESSKEY",     "x_Secretkey_y", "SSHPRIVATEKEY", "_KEY_",      "K_KEY",
    };
    static const char *const open[] = {
        "MONKEY", "KEYS", "KEYBOARD",  "PATH",    "HOTKEY", "",     "_",    "PASS",
        "PWD",    "TOKE", "CREDENTIA", "APIKEYS", "MY-KEY", "KEY2", "KE_Y",
    };
    for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
        if (!mask_is_secret_name(secret[i], strlen(secret[i])))
            fail_msg("%s is secret", secret[i]);
    for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
        if (mask_is_secret_name(open[i], strlen(open[i])))
            fail_msg("%s is not secret", open[i]);
    assert_false(mask_is_secret_name("TOKEN", 4));
    assert_true(mask_is_secret_name("A\0TOKEN", 7));
}

typedef int (*mask_fn)(struct buf *out, const char *text, size_t len);

static void check(mask_fn mask, const char *text, size_t len, const char *want, size_t want_len)
{
    struct buf out;
    buf_init(&out, OUT_MAX);
    /* Exactly as large as the input, so that a read past its end is seen. */
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    assert_int_equal(mask(&out, copy, len), 0);
    if (out.len != want_len || (want_len > 0 && memcmp(out.data, want, want_len) != 0))
        fail_msg("%s became %.*s, not %s", text, (int)out.len, out.data ? out.data : "", want);
    free(copy);
    buf_deinit(&out);
}

static const char *const url_cases[][2] = {
    {"postgres://user:pw@host/db", "postgres://user:***@host/db"},
    {"redis://:pw@host:6379", "redis://:***@host:6379"},
    {"see https://u:p@h:1/x and git+ssh://a:b@c.", "see https://u:***@h:1/x and git+ssh://a:***@c."},
    {"x://u:p%40q@h", "x://u:***@h"},
    {"x://u:p@q:r@h/a@b:c@d", "x://u:***@h/a@b:c@d"},
    {"x://u:p@h?a=u:p@h", "x://u:***@h?a=u:p@h"},
    {"http://host:8080/a@b", "http://host:8080/a@b"},
    {"http://host:8080 a@b", "http://host:8080 a@b"},
    {"x://user@host", "x://user@host"},
    {"x://u:@host", "x://u:@host"},
    {"x://u:***@host", "x://u:***@host"},
    {"://u:p@h", "://u:p@h"},
    {"x://ü:pß@h", "x://ü:***@h"},
    {"x://u:p", "x://u:p"},
    {"a://a://u:p@h", "a://a://u:***@h"},
    {"x://", "x://"},
    {"x:/", "x:/"},
    {"https%3A//u%3Ahunter3B%40h", "https%3A//u%3A***%40h"},
    {"https:%2f%2fu:hunter2A@h", "https:%2f%2fu:***@h"},
    {"https%3A%2F%2Fu%3Apw%40h", "https%3A%2F%2Fu%3A***%40h"},
    {"https%3a%2F/u:p%40h%2fx%40y", "https%3a%2F/u:***%40h%2fx%40y"},
    {"https://u%3Ap@h", "https://u%3A***@h"},
    {"https://u:p%40h", "https://u:***%40h"},
    {"https://u:a%2Fb%3F@h/x%40y", "https://u:***@h/x%40y"},
    {"https:%2F%2Fu:a%2Fb@h", "https:%2F%2Fu:***@h"},
    {"https%3A%2F%2Fh%3A80%2Fa%40b", "https%3A%2F%2Fh%3A80%2Fa%40b"},
    {"https%3A//h%3A8080/a%40b", "https%3A//h%3A8080/a%40b"},
    {"https%3A%2F%2Fh%2Fa%3Ab%40c", "https%3A%2F%2Fh%2Fa%3Ab%40c"},
    {"a%3A%2F%2Fh%3Ax%3A%2F%2Fu%3Ap%40h", "a%3A%2F%2Fh%3A***%40h"},
    {"a%3A%2F%2Fh%3A80%2Fx%3A%2F%2Fu%3Ap%40h", "a%3A%2F%2Fh%3A80%2Fx%3A%2F%2Fu%3A***%40h"},
    {"https%3A%2F", "https%3A%2F"},
    {"https%3", "https%3"},
    {"https%3A%2F%2Fu%3Ap%4", "https%3A%2F%2Fu%3Ap%4"},
    {"https%3B%2F%2Fu%3Ap%40h", "https%3B%2F%2Fu%3Ap%40h"},
};

static const char *const text_cases[][2] = {
    {"", ""},
    {"nothing here", "nothing here"},
    {"API_KEY=abc next", "API_KEY=*** next"},
    {"MONKEY=abc", "MONKEY=abc"},
    {"export TOKEN=a;ls", "export TOKEN=***;ls"},
    {"TOKEN=a|b", "TOKEN=***|b"},
    {"/x?token=abc&path=y", "/x?token=***&path=y"},
    {"TOKEN='a b' c", "TOKEN=*** c"},
    {"TOKEN=\"a \\\" b\" c", "TOKEN=*** c"},
    {"TOKEN=a\" b\"'c d'e f", "TOKEN=*** f"},
    {"TOKEN=a\\ b c", "TOKEN=*** c"},
    {"TOKEN='a b", "TOKEN=***"},
    {"TOKEN= x", "TOKEN= x"},
    {"TOKEN=", "TOKEN="},
    {"TOKEN", "TOKEN"},
    {"TOKEN+=x y", "TOKEN+=*** y"},
    {"-e \"TOKEN=a b\" c", "-e \"TOKEN=***\" c"},
    {"sh -c \"x TOKEN=a\" c", "sh -c \"x TOKEN=***\" c"},
    {"sh -c \"TOKEN='a b' c\" d", "sh -c \"TOKEN=***\" d"},
    {"sh -c \"x TOKEN=\\\"a b\\\" c\" d", "sh -c \"x TOKEN=*** c\" d"},
    {"can't take TOKEN=a b", "can't take TOKEN=*** b"},
    {"{\"a\":\"x\\nKEY=1\"}", "{\"a\":\"x\\nKEY=***\"}"},
    {"TOKEN=x://u:p@h y", "TOKEN=*** y"},
    {"URL=x://u:p@h y", "URL=x://u:***@h y"},
    {"--env=API_KEY=a b", "--env=API_KEY=*** b"},
    {"--api-key=a b", "--api-key=*** b"},
    {"-Dmy.password=a", "-Dmy.password=***"},
    {"cmd --password a --other b", "cmd --password *** --other b"},
    {"cmd --secret-key  'a b' c", "cmd --secret-key  *** c"},
    {"cmd --password --other b", "cmd --password --other b"},
    {"cmd --monkey a", "cmd --monkey a"},
    {"cmd --password", "cmd --password"},
    {"the password is wrong", "the password is wrong"},
    {"x-token y", "x-token y"},
    {"curl -H 'Authorization: Bearer abc.d-e' x", "curl -H 'Authorization: Bearer ***' x"},
    {"proxy-authorization:basic YTpi", "proxy-authorization:basic ***"},
    {"{\"Authorization\": \"Bearer abc\"}", "{\"Authorization\": \"Bearer ***\"}"},
    {"send Authorization: Bearer <token>", "send Authorization: Bearer <token>"},
    {"Authorization: Bearer", "Authorization: Bearer"},
    {"/x?u=http%3A%2F%2Fme%3Apw%40h%2Fp&v=a%40b", "/x?u=http%3A%2F%2Fme%3A***%40h%2Fp&v=a%40b"},
    {"/x?u=http%3a%2f%2fh%3a80", "/x?u=http%3a%2f%2fh%3a80"},
    {"ÄTOKEN=ü ß", "ÄTOKEN=*** ß"},
    {"{\"password\":\"x\"}", "{\"password\":\"***\"}"},
    {"{\"token\": \"x\", \"a\": \"b\"}", "{\"token\": \"***\", \"a\": \"b\"}"},
    {"{'api_key': 'x', 'a': 1}", "{'api_key': '***', 'a': 1}"},
    {"{\\\"password\\\":\\\"x\\\",\\\"a\\\":1}", "{\\\"password\\\":\\\"***\\\",\\\"a\\\":1}"},
    {"{\\\"password\\\" : \\\"a\\\\\\\"b\\\\\\\\\\\"}", "{\\\"password\\\" : \\\"***\\\"}"},
    {"{\"password\":\"a\\\"b\\\\\"}", "{\"password\":\"***\"}"},
    {"curl -d '{\"token\":\"a b\",\"x\":1}' TOKEN=c d", "curl -d '{\"token\":\"***\",\"x\":1}' TOKEN=*** d"},
    {"{\"pass_token\":-12.5e+3,\"a\":1} TOKEN=\"b c\" d", "{\"pass_token\":***,\"a\":1} TOKEN=*** d"},
    {"{\"tokens\":[\"a\",\"b]\"],\"credentials\":{\"a\":[\"b\"]},\"c\":1}",
     "{\"tokens\":***,\"credentials\":***,\"c\":1}"},
    {"{\"token\":\"\"}", "{\"token\":\"\"}"},
    {"{\"token\":null,\"a\":\"b\"}", "{\"token\":null,\"a\":\"b\"}"},
    {"{\"token\":\"cut", "{\"token\":\"***"},
    {"{\"token\":\"", "{\"token\":\""},
    {"{\"token\":", "{\"token\":"},
    {"{\"monkey\":\"x\"}", "{\"monkey\":\"x\"}"},
    {"{\\\"Authorization\\\": \\\"Bearer x\\\"}", "{\\\"Authorization\\\": \\\"Bearer ***\\\"}"},
    {"curl -H 'X-Auth-Token: a b' x", "curl -H 'X-Auth-Token: ***' x"},
    {"curl -H \"x-api-key: a\" x", "curl -H \"x-api-key: ***\" x"},
    {"curl -H x-api-key:a x", "curl -H x-api-key:*** x"},
    {"curl -Hx-token:a x", "curl -Hx-token:*** x"},
    {"curl -H X-Token:\\ a\\ b x", "curl -H X-Token:\\ *** x"},
    {"curl --header X-Token:a x", "curl --header X-Token:*** x"},
    {"curl --header='X-Token: a' x", "curl --header='X-Token: ***' x"},
    {"curl '--header=X-Token: a b' x", "curl '--header=X-Token: ***' x"},
    {"curl --header=X-Token:\\ a x", "curl --header=X-Token:\\ *** x"},
    {"curl --header=Authorization:\\ Bearer\\ a x", "curl --header=Authorization:\\ Bearer\\ *** x"},
    {"sh -c \"curl -H 'X-Token: a b' x\" y", "sh -c \"curl -H 'X-Token: ***' x\" y"},
    {"sh -c \"curl -H \\\"X-Token: a b\\\" x\" y", "sh -c \"curl -H \\\"X-Token: ***\\\" x\" y"},
    {"http h 'X-Token:a' x", "http h 'X-Token:***' x"},
    {"curl -H 'Cookie: a=b; token=c' x", "curl -H 'Cookie: a=b; token=***' x"},
    {"curl -H 'X-Token;' x", "curl -H 'X-Token;' x"},
    {"x.c:3: token: expected ',' or '}'", "x.c:3: token: expected ',' or '}'"},
    {"field \"token\": is required", "field \"token\": is required"},
    {"bad argument #1 to 'key': string expected", "bad argument #1 to 'key': string expected"},
    {"the password: it is wrong", "the password: it is wrong"},
    {"cargo test 'token::x'", "cargo test 'token::x'"},
    {"see 'token://x'", "see 'token://x'"},
    {"TOKEN=$(echo x) y", "TOKEN=*** y"},
    {"TOKEN=`echo x` y", "TOKEN=*** y"},
    {"TOKEN=(a x) y", "TOKEN=*** y"},
    {"TOKEN=a$(echo \"$(b ')' c)\" `d )`)e y", "TOKEN=*** y"},
    {"TOKEN=\"$(echo \"a b\" c)\" y", "TOKEN=*** y"},
    {"TOKEN=${X:-a b} y", "TOKEN=*** y"},
    {"TOKEN=$'a\\'b c' y", "TOKEN=*** y"},
    {"TOKEN=$(echo x", "TOKEN=***"},
    {"put `TOKEN=a` there", "put `TOKEN=***` there"},
    {"TOKEN[0]=x y", "TOKEN[0]=*** y"},
    {"TOKEN[a b]+=x y", "TOKEN[a b]+=*** y"},
    {"TOKEN[0] y", "TOKEN[0] y"},
    {"/x?user[password]=a&b=c", "/x?user[password]=***&b=c"},
    {"sh -c \"x 'TOKEN=a b' c\" d", "sh -c \"x 'TOKEN=***' c\" d"},
    {"sh -c \"x \\\"TOKEN=a b\\\" c\" d", "sh -c \"x \\\"TOKEN=***\\\" c\" d"},
    {"A=\"a\"TOKEN=\"b c\" d", "A=\"a\"TOKEN=*** d"},
    {"-e 'TOKEN=' d", "-e 'TOKEN=' d"},
    {"cmd --password --x", "cmd --password --x"},
    {"Authorization=Basic YTpi x", "Authorization=Basic *** x"},
};

static void hides_passwords_of_urls(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(url_cases) / sizeof(*url_cases); i++) {
        const char *text = url_cases[i][0], *want = url_cases[i][1];
        check(mask_text, text, strlen(text), want, strlen(want));
        check(mask_urls, text, strlen(text), want, strlen(want));
    }
}

static void hides_values_in_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(text_cases) / sizeof(*text_cases); i++) {
        const char *text = text_cases[i][0], *want = text_cases[i][1];
        check(mask_text, text, strlen(text), want, strlen(want));
        check(mask_text, want, strlen(want), want, strlen(want)); /* again changes nothing */
    }
    /* Which of the inner quotes open and which close is not known. */
    static const char inner[] = "sh -c \"A='a'TOKEN='b c' d\" e", inner_hidden[] = "sh -c \"A='a'TOKEN=*** d\" e";
    check(mask_text, inner, sizeof(inner) - 1, inner_hidden, sizeof(inner_hidden) - 1);
    /* Of a URL's own the value of a name in it is not masked by mask_urls. */
    check(mask_urls, "TOKEN=a", 7, "TOKEN=a", 7);
}

static void hides_passwords_that_were_cut(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"see x://u:pass", "see x://u:***"},
        {"x://u:p@h x://u:", "x://u:***@h x://u:"},
        {"x://u:p@ho", "x://u:***@ho"},
        {"x://host:80/p", "x://host:80/p"},
        {"x://host:80 y", "x://host:80 y"},
        {"x://host:65535: refused", "x://host:65535: refused"},
        {"x://u:123456: refused", "x://u:*** refused"},
        {"x://[::1]:80 x://[::1", "x://[::1]:80 x://[::1"},
        {"x://u:12a y", "x://u:*** y"},
        {"x://host: y", "x://host: y"},
        {"x://us", "x://us"},
        {"TOKEN=a", "TOKEN=***"},
        {"x%3A%2F%2Fu%3Ap", "x%3A%2F%2Fu%3A***"},
        {"see https%3A//u%3Apw", "see https%3A//u%3A***"},
        {"https%3A//h%3A80", "https%3A//h%3A80"},
        {"{\"token\": \"a", "{\"token\": \"***"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check(mask_cut_text, cases[i][0], strlen(cases[i][0]), cases[i][1], strlen(cases[i][1]));
}

static void takes_any_bytes(void **state)
{
    (void)state;
    static const char nul[] = "A\0TOKEN=a\0b x://u:p\0@h", nul_hidden[] = "A\0TOKEN=***\0b x://u:p\0@h";
    check(mask_text, nul, sizeof(nul) - 1, nul_hidden, sizeof(nul_hidden) - 1);
    static const char odd[] = "\xff\xfeTOKEN=\xff\x80 \xc3", odd_hidden[] = "\xff\xfeTOKEN=*** \xc3";
    check(mask_text, odd, sizeof(odd) - 1, odd_hidden, sizeof(odd_hidden) - 1);
    check(mask_text, "TOKEN=\\", 7, "TOKEN=***", 9);
    check(mask_text, "TOKEN=\"\\", 8, "TOKEN=***", 9);
}

static void tells_a_buffer_that_is_too_small(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 8);
    assert_int_equal(mask_text(&out, "TOKEN=abc", 9), -1);
    buf_deinit(&out);
}

/* A unit again and again must not take longer a byte where there are more of it. */
static void takes_time_in_proportion(void **state)
{
    (void)state;
    static const char *const units[] = {"x://",
                                        "x://u:p@",
                                        "TOKEN=\\\"",
                                        "TOKEN=\"a",
                                        "TOKEN='",
                                        "--token ",
                                        "token",
                                        "\"TOKEN=",
                                        "_key",
                                        "Authorization:",
                                        "--token",
                                        "%3A%2F%2F",
                                        "a%3A%2F%2Fb%3A",
                                        "\\",
                                        "'\"",
                                        " ",
                                        "a%3A//h%3Ab",
                                        "a:%2F%2F9",
                                        "%2F9%2F",
                                        "\"token\":",
                                        "\"token\": \"",
                                        "\\\"token\\\":\\\"a",
                                        "-H token:",
                                        "'token: ",
                                        "TOKEN[",
                                        "TOKEN=(",
                                        "TOKEN=$(`",
                                        "TOKEN=`",
                                        "\"tokens\":[\"",
                                        "\"token\":-1",
                                        "--header=",
                                        "\\ ",
                                        "TOKEN=\\\"\\\\",
                                        "1"};
    enum { LARGE = 32 * 1024 };
    static char text[LARGE];
    clock_t start = clock();
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        size_t unit = strlen(units[i]);
        for (size_t at = 0; at < LARGE; at++)
            text[at] = units[i][at % unit];
        for (int run = 0; run < 4; run++) {
            struct buf out;
            buf_init(&out, OUT_MAX);
            assert_int_equal(mask_text(&out, text, LARGE), 0);
            buf_deinit(&out);
        }
    }
    /* CPU time; were one of them quadratic, this would be minutes. */
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10);
}

static void masks_words_of_an_argv(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"mysql", "mysql"},
        {"--password", "--password"},
        {"a b;c", "***"},
        {"--password", "--password"},
        {"--host", "--host"},
        {"h", "h"},
        {"--api-key=a b;c", "--api-key=***"},
        {"--api-key=", "--api-key="},
        {"TOKEN=a b", "TOKEN=***"},
        {"password", "password"},
        {"plain", "plain"},
        {"-token", "-token"},
        {"abc", "***"},
        {"--token", "--token"},
        {"", ""},
        {"abc", "abc"},
        {"Authorization: Bearer abc", "Authorization: Bearer ***"},
        {"x TOKEN=a b x://u:p@h", "x TOKEN=*** b x://u:***@h"},
        {"--monkey", "--monkey"},
        {"a", "a"},
        {"X-Auth-Token: x y", "X-Auth-Token: ***"},
        {"x-api-key:x", "x-api-key:***"},
        {"-HX-Token: x y", "-HX-Token: ***"},
        {"--header=X-Token: x y", "--header=X-Token: ***"},
        {"--header=Authorization: Bearer x", "--header=Authorization: Bearer ***"},
        {"--proxy-header=X-Token: x y", "--proxy-header=X-Token: ***"},
        {"Cookie: a=b", "Cookie: a=b"},
        {"{\"password\":\"x\"}", "{\"password\":\"***\"}"},
        {"{\\\"password\\\":\\\"x\\\"}", "{\\\"password\\\":\\\"***\\\"}"},
        {"curl -H 'X-Token: x y' z", "curl -H 'X-Token: ***' z"},
        {"echo token: expected x", "echo token: expected x"},
        {"TOKEN[0]=x y", "TOKEN[0]=***"},
        {"TOKEN=$(echo x) y", "TOKEN=***"},
        {"TOKEN+=a", "TOKEN+=***"},
        {"https%3A//u%3Ahunter3B%40h", "https%3A//u%3A***%40h"},
        {"token::tests", "token::tests"},
        {"--token", "--token"},
        {"", ""},
        {"x", "x"},
        {"--password", "--password"},
        {"--x", "--x"},
    };
    bool secret_follows = false;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf out;
        buf_init(&out, OUT_MAX);
        assert_int_equal(mask_word(&out, cases[i][0], strlen(cases[i][0]), &secret_follows), 0);
        assert_int_equal(buf_append(&out, "", 1), 0);
        assert_string_equal(out.data, cases[i][1]);
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_secret_names),       cmocka_unit_test(hides_passwords_of_urls),
        cmocka_unit_test(hides_values_in_texts),    cmocka_unit_test(hides_passwords_that_were_cut),
        cmocka_unit_test(takes_any_bytes),          cmocka_unit_test(tells_a_buffer_that_is_too_small),
        cmocka_unit_test(takes_time_in_proportion), cmocka_unit_test(masks_words_of_an_argv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
