/* Any request target must be refused or lead to at most one route, whose parameters are the target's own segments. */
#include "request/router.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct route routes[] = {
    {.method = METHOD_GET, .path = "/health", .name = "a"},
    {.method = METHOD_POST, .path = "/commands/{name}", .name = "b"},
    {.method = METHOD_GET, .path = "/processes/{id}", .name = "c"},
    {.method = METHOD_GET, .path = "/processes/{id}/output", .name = "d"},
    {.method = METHOD_POST, .path = "/processes/all/output", .name = "e"},
    {.method = METHOD_DELETE, .path = "/x/{a}/{b}/{c}", .name = "f"},
    {.method = METHOD_GET, .path = "/", .name = "g"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct router *router;
    struct router_match match;
    struct target target;
    struct arena arena;
    struct err err;
    char *raw;

    if (!router) {
        const struct route *list[sizeof(routes) / sizeof(routes[0])];

        for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
            list[i] = &routes[i];
        router = router_new(list, sizeof(routes) / sizeof(routes[0]));
    }
    if (size < 1 || !router)
        return 0;
    raw = strndup((const char *)data + 1, size - 1);
    arena_init(&arena, 1 << 24);
    if (raw && target_parse(&target, raw, &arena, &err) == 0) {
        router_find(router, (enum method)(data[0] % (METHOD_COUNT + 1)), &target, &match);
        for (size_t i = 0; i < match.param_count; i++) {
            const struct slice *value = &match.params[i].value;

            if (value->len == 0 || memchr(value->text, '\0', value->len) || value->text[value->len] != '\0')
                abort();
        }
        if (match.route && !(match.methods & 1u << match.route->method))
            abort();
    }
    arena_deinit(&arena);
    free(raw);
    return 0;
}
