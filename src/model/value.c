/* Builds value trees from JSON; request (bodies), bind and the workers' protocol read them. */
#include "model/value.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { SORT_FROM_COUNT = 16 };

/* Items of containers that are still open lie on one stack; a container that ends moves its part into the arena. */
struct builder {
    struct arena *arena;
    struct value_member *stack; /* items of arrays use `value` only */
    size_t len, cap;
    int depth;
    struct {
        bool object;
        size_t first;
    } open[JSON_DEPTH_MAX];
};

static int too_large(struct err *err)
{
    return err_set(err, ERR_PAYLOAD_TOO_LARGE, "the JSON document needs too much memory");
}

static int push(struct builder *builder, const struct value_member *member, struct err *err)
{
    if (builder->len == builder->cap) {
        /* What cannot end in the arena is not worth stacking: "[0,0,0..." would take twenty times its length. */
        size_t room = builder->arena->limit_bytes - builder->arena->used_bytes;
        if (builder->len > room / sizeof(struct value))
            return too_large(err);
        size_t cap = builder->cap ? builder->cap * 2 : 32;
        struct value_member *stack = realloc(builder->stack, cap * sizeof *stack);
        if (!stack)
            return too_large(err);
        builder->stack = stack;
        builder->cap = cap;
    }
    builder->stack[builder->len++] = *member;
    return 0;
}

static int add(struct builder *builder, struct value value, struct err *err)
{
    if (builder->depth > 0 && builder->open[builder->depth - 1].object) {
        builder->stack[builder->len - 1].value = value; /* on_key pushed the member */
        return 0;
    }
    return push(builder, &(struct value_member){.value = value}, err);
}

static int on_null(void *ctx, struct err *err)
{
    return add(ctx, (struct value){.type = VALUE_NULL}, err);
}

static int on_bool(void *ctx, bool boolean, struct err *err)
{
    return add(ctx, (struct value){.type = VALUE_BOOL, .as.boolean = boolean}, err);
}

static int on_int(void *ctx, int64_t integer, struct err *err)
{
    return add(ctx, (struct value){.type = VALUE_INT, .as.integer = integer}, err);
}

static int on_double(void *ctx, double number, struct err *err)
{
    return add(ctx, (struct value){.type = VALUE_DOUBLE, .as.number = number}, err);
}

static int on_string(void *ctx, const char *text, size_t len, struct err *err)
{
    struct builder *builder = ctx;
    const char *copy = arena_strndup(builder->arena, text, len);
    if (!copy)
        return too_large(err);
    return add(builder, (struct value){.type = VALUE_STRING, .as.string = {copy, len}}, err);
}

static int on_key(void *ctx, const char *text, size_t len, struct err *err)
{
    struct builder *builder = ctx;
    const char *copy = arena_strndup(builder->arena, text, len);
    if (!copy)
        return too_large(err);
    return push(builder, &(struct value_member){.name = copy, .name_len = len}, err);
}

static int on_begin(void *ctx, bool object, struct err *err)
{
    struct builder *builder = ctx;
    (void)err;
    builder->open[builder->depth].object = object;
    builder->open[builder->depth++].first = builder->len;
    return 0;
}

static int compare_names(const struct value_member *a, const struct value_member *b)
{
    if (a->name_len != b->name_len)
        return a->name_len < b->name_len ? -1 : 1;
    return memcmp(a->name, b->name, a->name_len);
}

static int compare_pointers(const void *a, const void *b)
{
    return compare_names(*(const struct value_member *const *)a, *(const struct value_member *const *)b);
}

/* *out_twice is a member whose name stands twice, or NULL. Sorting rather than hashing: no keys can be made that are
 * slow. */
static int find_duplicate(const struct value_member *members, size_t count, const struct value_member **out_twice,
                          struct err *err)
{
    *out_twice = NULL;
    if (count < SORT_FROM_COUNT) {
        for (size_t i = 1; i < count; i++)
            for (size_t j = 0; j < i; j++)
                if (compare_names(&members[i], &members[j]) == 0)
                    *out_twice = &members[i];
        return 0;
    }
    const struct value_member **sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return too_large(err);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &members[i];
    qsort(sorted, count, sizeof *sorted, compare_pointers);
    for (size_t i = 1; i < count && !*out_twice; i++)
        if (compare_names(sorted[i - 1], sorted[i]) == 0)
            *out_twice = sorted[i];
    free(sorted);
    return 0;
}

static int end_object(struct builder *builder, size_t first, size_t count, struct value *out, struct err *err)
{
    if (count == 0)
        return 0;
    const struct value_member *members = builder->stack + first, *twice;
    if (find_duplicate(members, count, &twice, err) < 0)
        return -1;
    if (twice)
        return err_set(err, ERR_INVALID_JSON, "the member \"%.64s\" stands twice in one object", twice->name);
    struct value_member *copy = arena_alloc(builder->arena, count * sizeof *copy);
    if (!copy)
        return too_large(err);
    memcpy(copy, members, count * sizeof *copy);
    out->as.object.members = copy;
    out->as.object.count = count;
    return 0;
}

static int end_array(struct builder *builder, size_t first, size_t count, struct value *out, struct err *err)
{
    if (count == 0)
        return 0;
    struct value *items = arena_alloc(builder->arena, count * sizeof *items);
    if (!items)
        return too_large(err);
    for (size_t i = 0; i < count; i++)
        items[i] = builder->stack[first + i].value;
    out->as.array.items = items;
    out->as.array.count = count;
    return 0;
}

static int on_end(void *ctx, bool object, struct err *err)
{
    struct builder *builder = ctx;
    size_t first = builder->open[--builder->depth].first, count = builder->len - first;
    struct value value = {.type = object ? VALUE_OBJECT : VALUE_ARRAY};
    if ((object ? end_object : end_array)(builder, first, count, &value, err) < 0)
        return -1;
    builder->len = first;
    return add(builder, value, err);
}

int value_parse(struct arena *arena, const char *text, size_t len, struct value *out, struct err *err)
{
    static const struct json_events events = {on_null, on_bool, on_int, on_double, on_string, on_key, on_begin, on_end};
    struct builder builder = {.arena = arena};
    int rc = json_scan(text, len, &events, &builder, err);
    if (rc == 0)
        *out = builder.stack[0].value;
    free(builder.stack);
    return rc;
}

struct value *value_member(const struct value *object, const char *name, size_t name_len)
{
    if (object->type != VALUE_OBJECT)
        return NULL;
    for (size_t i = 0; i < object->as.object.count; i++) {
        struct value_member *member = &object->as.object.members[i];
        if (member->name_len == name_len && memcmp(member->name, name, name_len) == 0)
            return &member->value;
    }
    return NULL;
}

const char *value_type_name(enum value_type type)
{
    static const char *const names[] = {
        [VALUE_NULL] = "null",        [VALUE_BOOL] = "a boolean",  [VALUE_INT] = "an integer",
        [VALUE_DOUBLE] = "a number",  [VALUE_STRING] = "a string", [VALUE_ARRAY] = "an array",
        [VALUE_OBJECT] = "an object",
    };
    return names[type];
}
