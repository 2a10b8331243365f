/* What a parameter, a body or an answer may be, as data; and the check of a value against it. */
#ifndef ABX_MODEL_SCHEMA_H
#define ABX_MODEL_SCHEMA_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/value.h"

#include <stdbool.h>
#include <stdint.h>

enum schema_type {
    SCHEMA_ANY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
    SCHEMA_PATH,   /* a string: bytes of a path, without NUL, 1 to 4095 of them; has a twin X_base64 */
    SCHEMA_ARRAY,  /* of `items` */
    SCHEMA_OBJECT, /* the declared `fields`, no others */
    SCHEMA_MAP,    /* any names, each value as `items` */
    SCHEMA_BYTES,  /* answers only: not JSON */
    SCHEMA_EVENTS, /* answers only: server-sent events */
};

struct schema_field;

/* Lives, with all it points to, in the arena of the tables that it was loaded with. */
struct schema {
    enum schema_type type;
    bool nullable;
    bool required;            /* as a field or parameter */
    const struct value *dflt; /* NULL: none. Checked by the loader, not again */
    bool has_min, has_max;    /* bounds of the number, of the length in bytes, or of the count of items */
    double min, max;
    const char **choices;        /* SCHEMA_STRING: NULL-terminated list, or NULL */
    struct schema *items;        /* SCHEMA_ARRAY, SCHEMA_MAP: NULL means anything */
    struct schema_field *fields; /* SCHEMA_OBJECT */
    size_t field_count;
};

struct schema_field {
    char *name;
    struct schema schema;
};

struct schema_field *schema_field_find(const struct schema *object, const char *name, size_t name_len);

/* One faulty field: path like "env.PATH" or "argv[2]". */
struct field_error {
    char field[96];
    char problem[160];
};

/* Faults found by one check; all of them, up to the maximum. `code` is what the whole answer gets: ERR_INVALID_PATH
 * where the first fault is a bad path, else ERR_INVALID_REQUEST. */
enum { FIELD_ERRORS_MAX = 32 };
struct field_errors {
    enum err_code code;
    size_t count;
    struct field_error list[FIELD_ERRORS_MAX];
};
void field_errors_add(struct field_errors *errors, enum err_code code, const char *field, const char *fmt, ...)
    ABX_PRINTF(4, 5);

/* Checks `object` against the fields of a SCHEMA_OBJECT schema and writes what a handler sees to *out (in the arena):
 * defaults filled in, twins X_base64 of paths decoded into X, undeclared names refused, or, where rest is not NULL,
 * gathered into an object member of that name (there even when empty). A member that is null counts as missing unless
 * nullable. Fields come out in the order of their declaration; what is missing and has no default is left out. Strings
 * and defaults are shared with `object` and the schema, not copied. Where the arena is full the code is
 * ERR_PAYLOAD_TOO_LARGE. 0, or -1 with at least one fault added. Touches nothing else: may run on the pool. */
int schema_check(const struct schema *schema, const struct value *object, const char *rest, struct arena *arena,
                 struct value *out, struct field_errors *errors) ABX_MUST_USE;

/* A query or path parameter is text: turns it into the value its schema wants ("true", "12"); text that does not fit
 * stays a string and schema_check then says what is wrong. The text is borrowed and must be NUL-terminated (it may hold
 * NUL). */
struct value schema_from_text(const struct schema *schema, const char *text, size_t len);

#endif
