/* Which route a method and path lead to. */
#include "request/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct route routes[] = {
    {.method = METHOD_GET, .path = "/health", .name = "health"},
    {.method = METHOD_GET, .path = "/processes", .name = "list"},
    {.method = METHOD_POST, .path = "/processes", .name = "start"},
    {.method = METHOD_GET, .path = "/processes/{id}", .name = "one"},
    {.method = METHOD_POST, .path = "/processes/{pid}/signal", .name = "signal"},
    {.method = METHOD_POST, .path = "/processes/all", .name = "all"},
    {.method = METHOD_GET, .path = "/processes/all/output", .name = "all.output"},
    {.method = METHOD_DELETE, .path = "/a/{x}/{y}", .name = "two"},
    {.method = METHOD_GET, .path = "/", .name = "root"},
};
static struct router *router;
static struct router_match match;

static int set_up(void **state)
{
    const struct route *list[sizeof(routes) / sizeof(routes[0])];

    (void)state;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        list[i] = &routes[i];
    router = router_new(list, sizeof(routes) / sizeof(routes[0]));
    return router ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    router_free(router);
    return 0;
}

static const char *find(enum method method, const char *raw)
{
    static struct arena arena;
    struct target target;
    struct err err;

    arena_deinit(&arena);
    arena_init(&arena, 1 << 20);
    assert_int_equal(target_parse(&target, raw, &arena, &err), 0);
    router_find(router, method, &target, &match);
    if (match.param_count > 0)
        assert_non_null(match.params[0].value.text);
    return match.route ? match.route->name : "-";
}

static void assert_param(size_t index, const char *name, const char *value)
{
    assert_true(index < match.param_count);
    assert_int_equal(match.params[index].name.len, strlen(name));
    assert_memory_equal(match.params[index].name.text, name, strlen(name));
    assert_int_equal(match.params[index].value.len, strlen(value));
}

static void literals_and_parameters(void **state)
{
    (void)state;
    assert_string_equal(find(METHOD_GET, "/health"), "health");
    assert_string_equal(find(METHOD_GET, "/"), "root");
    assert_string_equal(find(METHOD_POST, "/processes"), "start");
    assert_string_equal(find(METHOD_GET, "/processes/p-1"), "one");
    assert_param(0, "id", "p-1");
    assert_string_equal(find(METHOD_POST, "/processes/7/signal"), "signal");
    assert_param(0, "pid", "7");
    assert_string_equal(find(METHOD_GET, "/processes/a%2Fb"), "one");
    assert_param(0, "id", "a/b");
    assert_string_equal(find(METHOD_DELETE, "/a/1/22"), "two");
    assert_param(0, "x", "1");
    assert_param(1, "y", "22");
}

static void literal_beats_parameter(void **state)
{
    (void)state;
    assert_string_equal(find(METHOD_POST, "/processes/all"), "all");
    assert_int_equal(match.param_count, 0);
    assert_string_equal(find(METHOD_GET, "/processes/all"), "one");
    assert_param(0, "id", "all");
    assert_string_equal(find(METHOD_POST, "/processes/all/signal"), "signal");
    assert_string_equal(find(METHOD_GET, "/processes/all/output"), "all.output");
}

static void what_matches_nothing(void **state)
{
    static const char *const wrong[] = {"/HEALTH",  "/health/",  "//health",    "/./health", "/health/../health",
                                        "/healt",   "/health;x", "/processes/", "/a/1",      "/a//2",
                                        "/a/1/2/3", "/%2Fhealth"};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        for (int method = 0; method <= METHOD_COUNT; method++)
            assert_string_equal(find((enum method)method, wrong[i]), "-");
        assert_int_equal(match.methods, 0);
    }
}

static void other_methods_are_told(void **state)
{
    (void)state;
    assert_string_equal(find(METHOD_DELETE, "/processes"), "-");
    assert_int_equal(match.methods, 1u << METHOD_GET | 1u << METHOD_POST);
    assert_string_equal(find(METHOD_COUNT, "/processes/all"), "-");
    assert_int_equal(match.methods, 1u << METHOD_GET | 1u << METHOD_POST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literals_and_parameters),
        cmocka_unit_test(literal_beats_parameter),
        cmocka_unit_test(what_matches_nothing),
        cmocka_unit_test(other_methods_are_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
