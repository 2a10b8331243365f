/* Fields by name, the faults that a check collects, and text parameters as values; loader, router and check use it. */
#include "model/schema.h"
#include "base/json.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct schema_field *schema_field_find(const struct schema *object, const char *name, size_t name_len)
{
    for (size_t i = 0; i < object->field_count; i++) {
        const char *known = object->fields[i].name;
        if (strlen(known) == name_len && memcmp(known, name, name_len) == 0)
            return &object->fields[i];
    }
    return NULL;
}

void field_errors_add(struct field_errors *errors, enum err_code code, const char *field, const char *fmt, ...)
{
    if (errors->count == 0)
        errors->code = code;
    if (errors->count == FIELD_ERRORS_MAX)
        return;
    struct field_error *error = &errors->list[errors->count++];
    int wanted = snprintf(error->field, sizeof error->field, "%s", field);
    utf8_mend(error->field, wanted >= (int)sizeof error->field); /* texts of query and path may be no UTF-8 */
    for (size_t i = 0; i + 1 < errors->count; i++) {
        if (field[0] != '\0' && strcmp(errors->list[i].field, error->field) == 0) {
            errors->count--; /* the first fault of a field tells; what follows from it is no news */
            return;
        }
    }
    va_list args;
    va_start(args, fmt);
    wanted = vsnprintf(error->problem, sizeof error->problem, fmt, args);
    va_end(args);
    utf8_mend(error->problem, wanted >= (int)sizeof error->problem);
}

static int on_int(void *ctx, int64_t integer, struct err *err)
{
    (void)err;
    *(struct value *)ctx = (struct value){.type = VALUE_INT, .as.integer = integer};
    return 0;
}

static int on_double(void *ctx, double number, struct err *err)
{
    (void)err;
    *(struct value *)ctx = (struct value){.type = VALUE_DOUBLE, .as.number = number};
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

struct value schema_from_text(const struct schema *schema, const char *text, size_t len)
{
    static const struct json_events numbers = {.on_int = on_int, .on_double = on_double};
    struct value value = {.type = VALUE_STRING, .as.string = {text, len}};
    struct err ignored;
    switch (schema->type) {
    case SCHEMA_BOOLEAN:
        if ((len == 4 && memcmp(text, "true", 4) == 0) || (len == 5 && memcmp(text, "false", 5) == 0))
            value = (struct value){.type = VALUE_BOOL, .as.boolean = len == 4};
        break;
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
        /* Numbers are written as in JSON; the scanner alone would allow white space around them. */
        if (len > 0 && (text[0] == '-' || is_digit(text[0])) && is_digit(text[len - 1]) &&
            json_scan(text, len, &numbers, &value, &ignored) < 0)
            value = (struct value){.type = VALUE_STRING, .as.string = {text, len}};
        break;
    default:
        break;
    }
    return value;
}
