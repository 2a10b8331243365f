/* A JSON value as plain data in an arena: what a body or a query becomes before it is checked and handed to Lua. */
#ifndef ABX_MODEL_VALUE_H
#define ABX_MODEL_VALUE_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_type {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_DOUBLE,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_OBJECT,
};

struct value_member;

struct value {
    enum value_type type;
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct {
            const char *text; /* NUL-terminated, and may hold NUL */
            size_t len;
        } string;
        struct {
            struct value *items;
            size_t count;
        } array;
        struct {
            struct value_member *members; /* in document order */
            size_t count;
        } object;
    } as;
};

struct value_member {
    const char *name; /* NUL-terminated, and may hold NUL */
    size_t name_len;
    struct value value;
};

/* Builds the tree of one document in the arena. ERR_INVALID_JSON as json_scan, and for duplicate keys;
 * ERR_PAYLOAD_TOO_LARGE where the arena is full. Touches nothing else: may run on the pool. */
int value_parse(struct arena *arena, const char *text, size_t len, struct value *out, struct err *err) ABX_MUST_USE;

/* The member of that name, or NULL (also where object is no object). */
struct value *value_member(const struct value *object, const char *name, size_t name_len);
/* "a string", "an object", ... for messages. */
const char *value_type_name(enum value_type type);

#endif
