/* The configuration's sources: lists, their order, and every fault of each. */
#include "server/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS_MAX = 12 };

static struct config config;
static struct faults faults;
static char path[] = "/tmp/test-config-XXXXXX";

static int setup(void **state)
{
    (void)state;
    clearenv();
    int fd = mkstemp(path);
    close(fd);
    return fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

/* Reads with the text as the file and these flags, NULL-terminated; answers the faults, as one text. */
static const char *read_with(const char *text, const char *const *flags)
{
    static char found[16 * 1024];
    char *argv[WORDS_MAX], copies[WORDS_MAX][64];
    int argc = 0;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const char *words[WORDS_MAX] = {"--config", path, "--lua-dir", "/"};
    for (int i = 0; flags && flags[i]; i++)
        words[4 + i] = flags[i];
    for (; words[argc]; argc++) /* tokens are wiped in place */
        argv[argc] = strcpy(copies[argc], words[argc]);
    faults_init(&faults);
    int status = config_read(&config, argc, argv, "/nowhere", &faults);
    assert_int_equal(status, faults.count == 0 ? 0 : -1);
    snprintf(found, sizeof(found), "%.*s", (int)faults.text.len, faults.text.len ? faults.text.data : "");
    faults_deinit(&faults);
    return found;
}

/* The same, and the configuration is thrown away. */
static const char *faults_of(const char *text, const char *const *flags)
{
    const char *found = read_with(text, flags);
    config_deinit(&config);
    return found;
}

static const char *in_file(const char *line_and_text)
{
    static char full[256];
    snprintf(full, sizeof(full), "%s:%s\n", path, line_and_text);
    return full;
}

static const char *joined(const char *const *list)
{
    static char text[256];
    text[0] = '\0';
    for (; list && *list; list++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s|", *list);
    return text;
}

static void test_lists(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a b", "a|b|"}, {"a b c d e", "a|b|c|d|e|"}, {"a,b", "a|b|"}, {"a\tb\t\tc", "a|b|c|"}, {"", ""},
        {",", ""},       {" , a ,, b\n", "a|b|"},     {"abc", "abc|"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const flags[] = {"--enabled-groups", cases[i][0], NULL};
        assert_string_equal(read_with("return {}", flags), "");
        assert_non_null(config.enabled_groups);
        assert_string_equal(joined(config.enabled_groups), cases[i][1]);
        config_deinit(&config);
    }
    assert_string_equal(read_with("return { packs = { 'a b', 'c' }, disabled_groups = {} }", NULL), "");
    assert_string_equal(joined(config.packs), "a b|c|");
    assert_non_null(config.disabled_groups);
    assert_null(config.disabled_groups[0]);
    assert_null(config.enabled_groups);
    config_deinit(&config);
}

static void test_order(void **state)
{
    (void)state;
    static const char *const flags[] = {"--limits-terminals=33", "--watch", NULL};
    setenv("ABX_SERVER_LIMITS_TERMINALS", "22", 1);
    setenv("ABX_SERVER_LIMITS_REQUESTS", "23", 1);
    assert_string_equal(read_with("return { limits = { terminals = 11, requests = 12, processes = 13 } }", flags), "");
    assert_int_equal(config.limits.terminals, 33);
    assert_int_equal(config.limits.requests, 23);
    assert_int_equal(config.limits.processes, 13);
    assert_int_equal(config.port, 8080);
    assert_int_equal(config.ws_port, 8081);
    assert_true(config.watch);
    config_deinit(&config);
    /* The flag says which file; the variable's is not even there. */
    setenv("ABX_SERVER_CONFIG", "/nonexistent/server.lua", 1);
    assert_string_equal(read_with("return { port = 1 }", NULL), "");
    assert_int_equal(config.port, 1);
    assert_string_equal(config.config, path);
    config_deinit(&config);
    clearenv();
}

static void test_all_faults_of_a_file(void **state)
{
    (void)state;
    char wanted[2048];
    const char *text = "return {\n"
                       "  -- port = 1, allowed_origins = {}\n"
                       "  [\"port\"] = 'x',\n"
                       "  --[[ host = 1,\n"
                       "  ]] host = 1, base_dir = \"{host = 1\",\n"
                       "  limits = {\n"
                       "    requests = 0,\n"
                       "    prot = 1,\n"
                       "    processes = 1.5,\n"
                       "  }, mcp = 5, browser = { 'x' },\n"
                       "  prot = 1,\n"
                       "  allowed_origins = { 'https://a.example/' },\n"
                       "  log_level = 'loud', watch = function() end,\n"
                       "  config = 'x',\n"
                       "  packs = { 1, x = 2 },\n"
                       "  token = 's3cret token',\n"
                       "}\n";
    /* Values that cannot be copied come first, in no order. */
    static const char *const copying[] = {
        "13: watch is a function; only text, numbers, booleans and tables are allowed",
        "15: packs must be either a list or a table of names"};
    static const char *const reading[] = {
        "3: port must be a whole number, not a string",
        "5: host must be a string, not an integer",
        "7: limits.requests must be between 1 and 100000",
        "8: unknown key 'limits.prot'",
        "9: limits.processes must be a whole number, not a number",
        "10: browser must be a table of names",
        "10: mcp must be a table of names",
        "11: unknown key 'prot' (did you mean 'port'?)",
        "12: allowed_origins: 'https://a.example/' is no origin, scheme://host[:port]",
        "13: log_level must be debug, info, warn, error or off",
        "14: config is a flag or a variable only",
        "16: token may hold visible ASCII characters only",
    };
    const char *found = faults_of(text, NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(found, in_file(copying[i]));
        assert_non_null(at);
    }
    wanted[0] = '\0';
    for (size_t i = 0; i < sizeof(reading) / sizeof(reading[0]); i++)
        strcat(wanted, in_file(reading[i]));
    const char *rest = strstr(found, in_file(reading[0]));
    assert_non_null(rest);
    assert_string_equal(rest, wanted);
}

static void test_files_that_are_none(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"return {\n  port = = 1\n}", "2: unexpected symbol near '='"},
        {"\nreturn 1", "1: must return a table"},
        {"return { 1 }", "1: must return a table of names"},
        {"\nwhile true do end", "2: the configuration does not come to an end"},
        {"\nreturn { x = os.time() }", "2: attempt to index a nil value (global 'os')"},
        {"return {\n  limits = 5,\n}", "2: limits must be a table of names"},
        {"return { port = 1,\n\n port = 70000 }", "1: port must be between 0 and 65535"},
        {"\x1bLua", " is compiled Lua, only source text is taken"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(faults_of(cases[i][0], NULL), in_file(cases[i][1]));
    static const char *const missing[] = {"--config", "/nonexistent/x.lua", NULL};
    assert_string_equal(faults_of("return {}", missing), "/nonexistent/x.lua: No such file or directory\n");
}

static void test_flags_and_variables(void **state)
{
    (void)state;
    static const struct {
        const char *flags[4], *faults;
    } cases[] = {
        {{"--port", "x", "--watch=perhaps"},
         "abxd: --port must be a whole number\nabxd: --watch must be true or false\n"},
        {{"--prot", "1"}, "abxd: unknown flag --prot (did you mean --port?); abxd --help lists them\n"},
        {{"--limits-cpu-m=5"},
         "abxd: unknown flag --limits-cpu-m (did you mean --limits-cpu-ms?); abxd --help lists them\n"},
        {{"-x"}, "abxd: unknown flag -x; abxd --help lists them\n"},
        {{"check"}, "abxd: unexpected argument check; the command comes first, then flags\n"},
        {{"--port"}, "abxd: --port needs a value\n"},
        {{"--log-format", "xml"}, "abxd: --log-format must be json or text\n"},
        {{"--host", ""}, "abxd: host must not be empty\n"},
        {{"--host", "0.0.0.0"},
         "abxd: host 0.0.0.0 is not loopback: set a token, or allow_unauthenticated=true to serve everybody\n"},
        {{"--allowed-hosts", "a.example b:1"}, "abxd: --allowed-hosts: 'b:1' is no name or address without port\n"},
        {{"--allowed-hosts", "a.example [::1] 10.0.0.1"}, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(faults_of("return {}", cases[i].flags), cases[i].faults);
    setenv("ABX_SERVER_PORT", "x", 1);
    setenv("ABX_SERVER_LIMITS_REQUESTS", "0", 1);
    assert_string_equal(faults_of("return {}", NULL),
                        "abxd: ABX_SERVER_PORT must be a whole number\n"
                        "abxd: ABX_SERVER_LIMITS_REQUESTS must be between 1 and 100000\n");
    clearenv();
}

static void test_origins(void **state)
{
    (void)state;
    static const char *const good[] = {"https://a.example", "http://localhost:3000", "http://[::1]:80", "x-app://y"};
    static const char *const bad[] = {"*",           "null",         "a.example",        "https://",   "https://a/",
                                      "https://a:",  "https://a:1x", "https://a:123456", "://a",       "1x://a",
                                      "https://a?b", "https://[::1", "https://[]",       "https://u@a"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_string_equal(faults_of("return {}", (const char *[]){"--allowed-origins", good[i], NULL}), "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_non_null(
            strstr(faults_of("return {}", (const char *[]){"--allowed-origins", bad[i], NULL}), "is no origin"));
}

static void test_ws_public_url(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"ws://a.example", "ws://a.example"},
        {"wss://a.example:8443/", "wss://a.example:8443"},
        {"wss://[::1]:1/x/y/", "wss://[::1]:1/x/y"},
        {"ws://127.0.0.1/a%20b//", "ws://127.0.0.1/a%20b"},
    };
    static const char *const bad[] = {
        "a.example", "https://a.example", "WS://a",        "ws://",      "ws:///x",  "ws://a?x=1", "ws://a/?x=1",
        "ws://a/#b", "ws://a:",           "ws://a:123456", "ws://u@a",   "ws://a b", "ws://a/b c", "ws://a/\"b",
        "ws://a\\b", "ws://a/\xc3\xbc",   "ws://a/\n",     "wss://[::1", "/"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_string_equal(read_with("return {}", (const char *[]){"--ws-public-url", good[i][0], NULL}), "");
        assert_string_equal(config.ws_public_url, good[i][1]);
        config_deinit(&config);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(
            faults_of("return {}", (const char *[]){"--ws-public-url", bad[i], NULL}),
            "abxd: --ws-public-url must be ws://host[:port][/path] or wss://\xe2\x80\xa6, without query\n");
    assert_string_equal(read_with("return { ws_public_url = 'wss://a.example/' }", NULL), "");
    assert_string_equal(config.ws_public_url, "wss://a.example");
    config_deinit(&config);
    assert_string_equal(read_with("return { ws_public_url = '' }", NULL), "");
    assert_null(config.ws_public_url);
    config_deinit(&config);
    assert_string_equal(faults_of("return { ws_public_url = 5 }", NULL),
                        in_file("1: ws_public_url must be a string, not an integer"));
}

static void test_unknown_variables(void **state)
{
    (void)state;
    setenv("ABX_SERVER_LIMITS_CPU_SM", "5", 1);
    setenv("ABX_SERVER_PORT", "5", 1);
    setenv("ABX_SERVERS", "x", 1);
    assert_string_equal(read_with("return {}", NULL), "");
    assert_string_equal(joined(config.warnings), "unknown variable ABX_SERVER_LIMITS_CPU_SM is ignored|");
    config_deinit(&config);
    clearenv();
    setenv("ABX_SERVER_BASE_DRI", "secret", 1);
    assert_string_equal(read_with("return {}", NULL), "");
    assert_string_equal(joined(config.warnings),
                        "unknown variable ABX_SERVER_BASE_DRI is ignored (did you mean ABX_SERVER_BASE_DIR?)|");
    config_deinit(&config);
    clearenv();
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "ABX_SERVER_%d", i);
        setenv(name, "x", 1);
    }
    assert_string_equal(faults_of("return {}", NULL), ""); /* told up to a limit */
    clearenv();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_all_faults_of_a_file),
        cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_flags_and_variables),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_ws_public_url),
        cmocka_unit_test(test_unknown_variables),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
