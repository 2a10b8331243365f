/* The routing trie: one level for each path segment; made by pipeline_use, asked once a request. */
#include "request/router.h"

#include <stdlib.h>
#include <string.h>

struct node {
    char *text; /* the literal; NULL for a parameter and for the root */
    size_t len;
    struct node **literals; /* sorted by text */
    size_t literal_count;
    struct node *parameter;
    const struct route *routes[METHOD_COUNT];
    unsigned methods;
};

struct router {
    struct node root;
};

static void node_deinit(struct node *node)
{
    for (size_t i = 0; i < node->literal_count; i++) {
        node_deinit(node->literals[i]);
        free(node->literals[i]);
    }
    if (node->parameter) {
        node_deinit(node->parameter);
        free(node->parameter);
    }
    free(node->literals);
    free(node->text);
}

static int compare(const struct node *node, const char *text, size_t len)
{
    int order = memcmp(node->text, text, node->len < len ? node->len : len);

    if (order != 0)
        return order;
    return node->len < len ? -1 : node->len > len;
}

/* The literal child of that text; else *out_slot is where it belongs. */
static struct node *literal_find(const struct node *node, const char *text, size_t len, size_t *out_slot)
{
    size_t low = 0, high = node->literal_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(node->literals[middle], text, len);

        if (order == 0)
            return node->literals[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *out_slot = low;
    return NULL;
}

static struct node *literal_add(struct node *node, const char *text, size_t len)
{
    size_t slot = 0;
    struct node *child = literal_find(node, text, len, &slot);
    struct node **grown;

    if (child)
        return child;
    grown = realloc(node->literals, (node->literal_count + 1) * sizeof(struct node *));
    if (!grown)
        return NULL;
    node->literals = grown;
    child = calloc(1, sizeof(*child));
    if (!child)
        return NULL;
    child->text = strndup(text, len);
    child->len = len;
    if (!child->text) {
        free(child);
        return NULL;
    }
    memmove(&grown[slot + 1], &grown[slot], (node->literal_count - slot) * sizeof(struct node *));
    grown[slot] = child;
    node->literal_count++;
    return child;
}

static struct node *child_add(struct node *node, const char *segment, size_t len)
{
    if (len < 2 || segment[0] != '{')
        return literal_add(node, segment, len);
    if (!node->parameter)
        node->parameter = calloc(1, sizeof(*node->parameter));
    return node->parameter;
}

static int route_add(struct router *router, const struct route *route)
{
    struct node *node = &router->root;

    for (const char *p = route->path; *p == '/';) {
        const char *end = strchrnul(p + 1, '/');

        node = child_add(node, p + 1, (size_t)(end - p - 1));
        if (!node)
            return -1;
        p = end;
    }
    if (!node->routes[route->method]) {
        node->routes[route->method] = route;
        node->methods |= 1u << route->method;
    }
    return 0;
}

struct router *router_new(const struct route *const *routes, size_t count)
{
    struct router *router = calloc(1, sizeof(*router));

    for (size_t i = 0; router && i < count; i++) {
        if (route_add(router, routes[i]) < 0) {
            router_free(router);
            return NULL;
        }
    }
    return router;
}

void router_free(struct router *router)
{
    if (!router)
        return;
    node_deinit(&router->root);
    free(router);
}

/* Depth first, literal before parameter. Each node of the trie is visited once at most, so a path of many segments that
 * fit both ways costs no more than the table has nodes. The recursion is as deep as the longest route. */
static const struct route *find(const struct node *node, enum method method, const struct slice *segments, size_t count,
                                unsigned *methods)
{
    const struct route *route = NULL;
    const struct node *literal;
    size_t slot;

    if (count == 0) {
        *methods |= node->methods;
        return method < METHOD_COUNT ? node->routes[method] : NULL;
    }
    literal = literal_find(node, segments[0].text, segments[0].len, &slot);
    if (literal)
        route = find(literal, method, segments + 1, count - 1, methods);
    if (!route && node->parameter && segments[0].len > 0)
        route = find(node->parameter, method, segments + 1, count - 1, methods);
    return route;
}

static void take_params(struct router_match *match, const struct target *target)
{
    size_t index = 0;

    for (const char *p = match->route->path; *p == '/' && index < target->segment_count; index++) {
        const char *end = strchrnul(p + 1, '/');

        if (p[1] == '{' && match->param_count < ROUTER_PARAMS_MAX) {
            match->params[match->param_count++] = (struct router_param){
                .name = {.text = p + 2, .len = (size_t)(end - p - 3)},
                .value = target->segments[index],
            };
        }
        p = end;
    }
}

void router_find(const struct router *router, enum method method, const struct target *target, struct router_match *out)
{
    *out = (struct router_match){0};
    if (target->segment_count == 0)
        return;
    out->route = find(&router->root, method, target->segments, target->segment_count, &out->methods);
    if (out->route)
        take_params(out, target);
}
