/* Checks a value against a schema and makes what a handler sees of it; finds all faults, not only the first. */
#include "base/base64.h"
#include "base/json.h"
#include "model/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 4095 };

/* Where in the value the check stands; becomes text only when there is a fault. */
struct place {
    const struct place *parent;
    const char *name; /* NULL: an array's item */
    size_t index;
};

struct check {
    struct arena *arena;
    struct field_errors *errors;
    bool full; /* the arena: said once, then the check ends */
};

static int check_value(struct check *check, const struct schema *schema, const struct value *value,
                       const struct place *place, struct value *out);

/* --- faults: each answers -1 */

/* Writes "env.PATH" or "argv[2]"; answers how long it is (cut to size). */
static size_t place_text(const struct place *place, char *text, size_t size)
{
    size_t len = place->parent ? place_text(place->parent, text, size) : 0;
    if (!place->parent && !place->name)
        text[0] = '\0'; /* the checked object itself */
    else if (!place->name)
        snprintf(text + len, size - len, "[%zu]", place->index);
    else
        snprintf(text + len, size - len, len > 0 ? ".%s" : "%s", place->name);
    return len + strlen(text + len);
}

static int fault(struct check *check, const struct place *place, enum err_code code, const char *problem)
{
    char field[sizeof check->errors->list[0].field + 4]; /* longer than what is kept, so that it is seen to be cut */
    place_text(place, field, sizeof field);
    field_errors_add(check->errors, code, field, "%s", problem);
    return -1;
}

static int bad(struct check *check, const struct place *place, const char *problem)
{
    return fault(check, place, ERR_INVALID_REQUEST, problem);
}

static int arena_full(struct check *check)
{
    if (!check->full)
        field_errors_add(check->errors, ERR_PAYLOAD_TOO_LARGE, "", "needs too much memory");
    check->errors->code = ERR_PAYLOAD_TOO_LARGE;
    check->full = true;
    return -1;
}

/* "must be between 1 and 1000 bytes long", as far as there are bounds. `what` is what is counted, " item". */
static int out_of_bounds(struct check *check, const struct place *place, const struct schema *schema, const char *verb,
                         const char *what, const char *tail)
{
    char problem[128];
    struct buf text;
    buf_init(&text, sizeof problem - 1);
    bool exact = schema->has_min && schema->has_max && schema->min == schema->max;
    bool range = schema->has_min && schema->has_max && !exact;
    double last = schema->has_max ? schema->max : schema->min;
    if (buf_append_text(&text, verb) ||
        buf_append_text(&text, exact             ? " exactly "
                               : range           ? " between "
                               : schema->has_min ? " at least "
                                                 : " at most ") ||
        (range && (json_write_double(&text, schema->min) || buf_append_text(&text, " and "))) ||
        json_write_double(&text, last) || buf_append_text(&text, what) ||
        buf_append_text(&text, *what && last != 1 ? "s" : "") || buf_append_text(&text, tail))
        text.len = 0;
    snprintf(problem, sizeof problem, "%.*s", (int)text.len, text.data ? text.data : "");
    buf_deinit(&text);
    return bad(check, place, problem);
}

/* long double holds each int64 exactly on x86; elsewhere bounds past 2^53 are rounded. */
static bool within(const struct schema *schema, long double amount)
{
    return !(schema->has_min && amount < (long double)schema->min) &&
           !(schema->has_max && amount > (long double)schema->max);
}

/* --- scalars */

static int check_integer(struct check *check, const struct schema *schema, const struct value *value,
                         const struct place *place, struct value *out)
{
    const double exact_max = 9007199254740992.0; /* 2^53: beyond it doubles skip integers */
    int64_t integer;
    if (value->type == VALUE_INT)
        integer = value->as.integer;
    else if (value->type == VALUE_DOUBLE && fabs(value->as.number) <= exact_max &&
             value->as.number == trunc(value->as.number))
        integer = (int64_t)value->as.number;
    else
        return bad(check, place, "must be an integer");
    if (!within(schema, (long double)integer))
        return out_of_bounds(check, place, schema, "must be", "", "");
    *out = (struct value){.type = VALUE_INT, .as.integer = integer};
    return 0;
}

static int check_number(struct check *check, const struct schema *schema, const struct value *value,
                        const struct place *place, struct value *out)
{
    if (value->type != VALUE_INT && value->type != VALUE_DOUBLE)
        return bad(check, place, "must be a number");
    if (!within(schema, value->type == VALUE_INT ? (long double)value->as.integer : (long double)value->as.number))
        return out_of_bounds(check, place, schema, "must be", "", "");
    *out = *value;
    return 0;
}

static int check_choice(struct check *check, const struct schema *schema, const struct value *value,
                        const struct place *place)
{
    char problem[sizeof check->errors->list[0].problem] = "must be one of: ";
    size_t len = strlen(problem);
    for (const char **choice = schema->choices; *choice; choice++) {
        if (strlen(*choice) == value->as.string.len && memcmp(*choice, value->as.string.text, strlen(*choice)) == 0)
            return 0;
        if (len < sizeof problem)
            len += (size_t)snprintf(problem + len, sizeof problem - len, choice == schema->choices ? "%s" : ", %s",
                                    *choice);
    }
    return bad(check, place, problem);
}

static int check_string(struct check *check, const struct schema *schema, const struct value *value,
                        const struct place *place, struct value *out)
{
    if (value->type != VALUE_STRING)
        return bad(check, place, "must be a string");
    if (schema->choices && check_choice(check, schema, value, place) < 0)
        return -1;
    if (!within(schema, (long double)value->as.string.len))
        return out_of_bounds(check, place, schema, "must be", " byte", " long");
    *out = *value;
    return 0;
}

static int check_path(struct check *check, const struct value *value, const struct place *place, struct value *out)
{
    if (value->type != VALUE_STRING)
        return bad(check, place, "must be a string");
    size_t len = value->as.string.len;
    if (len == 0)
        return fault(check, place, ERR_INVALID_PATH, "must not be empty");
    if (memchr(value->as.string.text, '\0', len))
        return fault(check, place, ERR_INVALID_PATH, "must not hold NUL");
    if (len > PATH_MAX_BYTES)
        return fault(check, place, ERR_INVALID_PATH, "must be at most 4095 bytes long");
    *out = *value;
    return 0;
}

/* The twin of a path: its bytes as base64. A blank is a plus sign that a query made one. */
static int check_twin(struct check *check, const struct value *value, const struct place *place, struct value *out)
{
    if (value->type != VALUE_STRING)
        return bad(check, place, "must be a string");
    if (value->as.string.len > base64_encoded_len(PATH_MAX_BYTES))
        return fault(check, place, ERR_INVALID_PATH, "must be at most 4095 bytes long");
    char *text = arena_strndup(check->arena, value->as.string.text, value->as.string.len);
    if (!text)
        return arena_full(check);
    for (char *at = text; (at = memchr(at, ' ', (size_t)(text + value->as.string.len - at))) != NULL;)
        *at++ = '+';
    struct buf bytes;
    buf_init(&bytes, PATH_MAX_BYTES);
    if (base64_decode(&bytes, text, value->as.string.len) < 0) {
        buf_deinit(&bytes);
        return bad(check, place, "must be base64 of the standard alphabet");
    }
    size_t len = bytes.len;
    const char *copy = arena_strndup(check->arena, bytes.data, len);
    buf_deinit(&bytes);
    if (!copy)
        return arena_full(check);
    return check_path(check, &(struct value){.type = VALUE_STRING, .as.string = {copy, len}}, place, out);
}

/* --- containers */

static int check_array(struct check *check, const struct schema *schema, const struct value *value,
                       const struct place *place, struct value *out)
{
    if (value->type != VALUE_ARRAY)
        return bad(check, place, "must be an array");
    size_t count = value->as.array.count;
    if (!within(schema, (long double)count))
        return out_of_bounds(check, place, schema, "must hold", " item", "");
    if (!schema->items || count == 0) {
        *out = *value;
        return 0;
    }
    struct value *items = arena_alloc(check->arena, count * sizeof *items);
    if (!items)
        return arena_full(check);
    int rc = 0;
    for (size_t i = 0; i < count && !check->full; i++)
        rc |= check_value(check, schema->items, &value->as.array.items[i], &(struct place){place, NULL, i}, &items[i]);
    *out = (struct value){.type = VALUE_ARRAY, .as.array = {items, count}};
    return rc;
}

static int check_map(struct check *check, const struct schema *schema, const struct value *value,
                     const struct place *place, struct value *out)
{
    if (value->type != VALUE_OBJECT)
        return bad(check, place, "must be an object");
    size_t count = value->as.object.count;
    if (!within(schema, (long double)count))
        return out_of_bounds(check, place, schema, "must hold", " member", "");
    if (!schema->items || count == 0) {
        *out = *value;
        return 0;
    }
    struct value_member *members = arena_alloc(check->arena, count * sizeof *members);
    if (!members)
        return arena_full(check);
    int rc = 0;
    for (size_t i = 0; i < count && !check->full; i++) {
        const struct value_member *from = &value->as.object.members[i];
        members[i].name = from->name;
        members[i].name_len = from->name_len;
        rc |= check_value(check, schema->items, &from->value, &(struct place){place, from->name, 0}, &members[i].value);
    }
    *out = (struct value){.type = VALUE_OBJECT, .as.object = {members, count}};
    return rc;
}

/* What the object that is checked holds for one declared field. */
struct given {
    const struct value *value, *twin;
    const char *twin_name;
};

/* The path field that a name is the base64 twin of, or NULL. */
static struct schema_field *twin_of(const struct schema *schema, const struct value_member *member)
{
    static const char suffix[] = "_base64";
    size_t suffix_len = sizeof suffix - 1;
    if (member->name_len <= suffix_len || memcmp(member->name + member->name_len - suffix_len, suffix, suffix_len) != 0)
        return NULL;
    struct schema_field *field = schema_field_find(schema, member->name, member->name_len - suffix_len);
    return field && field->schema.type == SCHEMA_PATH ? field : NULL;
}

/* Sorts the members by field. Others are moved to *others, where they may stand, or are faults. */
static int sort_members(struct check *check, const struct schema *schema, const struct value *object,
                        const struct place *place, struct given *given, struct value *others)
{
    bool top = !place->parent;
    int rc = 0;
    for (size_t i = 0; i < object->as.object.count; i++) {
        const struct value_member *member = &object->as.object.members[i];
        struct schema_field *field = schema_field_find(schema, member->name, member->name_len);
        if (field) {
            given[field - schema->fields].value = &member->value;
        } else if (top && (field = twin_of(schema, member)) != NULL) {
            given[field - schema->fields].twin = &member->value;
            given[field - schema->fields].twin_name = member->name;
        } else if (others) {
            others->as.object.members[others->as.object.count++] = *member;
        } else {
            rc = bad(check, &(struct place){place, member->name, 0},
                     top ? "is not a known parameter" : "is not a known member");
        }
    }
    return rc;
}

static bool is_missing(const struct schema *schema, const struct value *value)
{
    return !value || (value->type == VALUE_NULL && !schema->nullable);
}

/* One declared field: 1 where it has a value, 0 where it is left out. */
static int check_field(struct check *check, const struct schema_field *field, const struct given *given,
                       const struct place *place, struct value *out)
{
    const struct schema *schema = &field->schema;
    struct place here = {place, field->name, 0};
    bool has_twin = given->twin && given->twin->type != VALUE_NULL;
    if (has_twin) {
        here.name = given->twin_name;
        if (given->value && given->value->type != VALUE_NULL) {
            char problem[128];
            snprintf(problem, sizeof problem, "cannot be given together with %.80s", field->name);
            return bad(check, &here, problem);
        }
        return check_twin(check, given->twin, &here, out) < 0 ? -1 : 1;
    }
    if (!is_missing(schema, given->value))
        return check_value(check, schema, given->value, &here, out) < 0 ? -1 : 1;
    if (schema->required)
        return bad(check, &here, "is required");
    if (!schema->dflt)
        return 0;
    *out = *schema->dflt;
    return 1;
}

/* rest is NULL for nested objects: they refuse what is not declared. */
static int check_object(struct check *check, const struct schema *schema, const struct value *value, const char *rest,
                        const struct place *place, struct value *out)
{
    if (value->type != VALUE_OBJECT)
        return bad(check, place, "must be an object");
    size_t field_count = schema->field_count, count = value->as.object.count;
    struct given *given = arena_alloc(check->arena, (field_count + 1) * sizeof *given);
    struct value_member *members = arena_alloc(check->arena, (field_count + 1) * sizeof *members);
    struct value others = {.type = VALUE_OBJECT};
    if (rest)
        others.as.object.members = arena_alloc(check->arena, (count + 1) * sizeof(struct value_member));
    if (!given || !members || (rest && !others.as.object.members))
        return arena_full(check);

    int rc = sort_members(check, schema, value, place, given, rest ? &others : NULL);
    size_t made = 0;
    for (size_t i = 0; i < field_count && !check->full; i++) {
        int found = check_field(check, &schema->fields[i], &given[i], place, &members[made].value);
        if (found > 0) {
            members[made].name = schema->fields[i].name;
            members[made++].name_len = strlen(schema->fields[i].name);
        } else if (found < 0) {
            rc = -1;
        }
    }
    if (rest)
        members[made++] = (struct value_member){rest, strlen(rest), others};
    *out = (struct value){.type = VALUE_OBJECT, .as.object = {members, made}};
    return check->full ? -1 : rc;
}

static int check_value(struct check *check, const struct schema *schema, const struct value *value,
                       const struct place *place, struct value *out)
{
    if (value->type == VALUE_NULL && schema->nullable) {
        *out = *value;
        return 0;
    }
    switch (schema->type) {
    case SCHEMA_STRING:
        return check_string(check, schema, value, place, out);
    case SCHEMA_INTEGER:
        return check_integer(check, schema, value, place, out);
    case SCHEMA_NUMBER:
        return check_number(check, schema, value, place, out);
    case SCHEMA_BOOLEAN:
        if (value->type != VALUE_BOOL)
            return bad(check, place, "must be true or false");
        break;
    case SCHEMA_PATH:
        return check_path(check, value, place, out);
    case SCHEMA_ARRAY:
        return check_array(check, schema, value, place, out);
    case SCHEMA_OBJECT:
        return check_object(check, schema, value, NULL, place, out);
    case SCHEMA_MAP:
        return check_map(check, schema, value, place, out);
    case SCHEMA_ANY:
    case SCHEMA_BYTES: /* answers only, nothing to check */
    case SCHEMA_EVENTS:
        break;
    }
    *out = *value;
    return 0;
}

int schema_check(const struct schema *schema, const struct value *object, const char *rest, struct arena *arena,
                 struct value *out, struct field_errors *errors)
{
    struct check check = {.arena = arena, .errors = errors};
    struct value checked;
    if (check_object(&check, schema, object, rest, &(struct place){0}, &checked) < 0)
        return -1;
    *out = checked;
    return 0;
}
