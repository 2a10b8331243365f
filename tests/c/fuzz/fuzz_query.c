/* Any query must be refused, or become one checked object in which no name stands twice. */
#include "request/validate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct schema_field fields[] = {
    {.name = "flag", .schema = {.type = SCHEMA_BOOLEAN}},
    {.name = "limit", .schema = {.type = SCHEMA_INTEGER, .has_min = true, .has_max = true, .min = 0, .max = 100}},
    {.name = "path", .schema = {.type = SCHEMA_PATH}},
    {.name = "ratio", .schema = {.type = SCHEMA_NUMBER}},
    {.name = "text", .schema = {.type = SCHEMA_STRING}},
};
static const struct route route = {.path = "/x", .params = {.type = SCHEMA_OBJECT, .fields = fields, .field_count = 5}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct router_match match = {.route = &route};
    struct field_errors errors = {0};
    struct value params;
    struct arena arena;
    struct err err;
    char *query = strndup((const char *)data, size);

    arena_init(&arena, 1 << 24);
    if (query && validate_query(&route, &match, query, &arena, &params, &errors, &err) == 0) {
        if (params.type != VALUE_OBJECT)
            abort();
        for (size_t i = 0; i < params.as.object.count; i++) {
            const struct value_member *member = &params.as.object.members[i];

            if (value_member(&params, member->name, member->name_len) != &member->value)
                abort();
        }
    }
    arena_deinit(&arena);
    free(query);
    return 0;
}
