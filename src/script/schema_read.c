/* Schemas from the tables that abx.params makes. Called by load_schema.c while tables load, and by tables.check. */
#include "script/schema_read.h"

#include "script/bindings.h"
#include "script/lua_value.h"
#include "script/nearest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 16, WHERE_MAX = 160, CHOICES_MAX = 1000 };

static void fault(struct schema_reader *reader, const char *where, const char *fmt, ...) ABX_PRINTF(3, 4);
static void fault(struct schema_reader *reader, const char *where, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    reader->failed = true;
    reader->on_fault(reader->ctx, where, text);
}

static int push(lua_State *L, int table, const char *name)
{
    lua_pushstring(L, name);
    return lua_rawget(L, table);
}

static void read_one(struct schema_reader *reader, int index, const char *where, int nesting, struct schema *out);

static bool read_bool(struct schema_reader *reader, int table, const char *name, const char *where)
{
    lua_State *L = reader->L;
    int type = push(L, table, name);
    bool value = lua_toboolean(L, -1);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        fault(reader, where, "'%s' must be true or false", name);
    lua_pop(L, 1);
    return value;
}

static bool read_bound(struct schema_reader *reader, int table, const char *name, const char *where, double *out)
{
    lua_State *L = reader->L;
    int type = push(L, table, name);
    *out = type == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    if (type != LUA_TNIL && (type != LUA_TNUMBER || !isfinite(*out)))
        fault(reader, where, "'%s' must be a number", name);
    lua_pop(L, 1);
    return type == LUA_TNUMBER;
}

static void read_bounds(struct schema_reader *reader, int table, const char *where, struct schema *out)
{
    out->has_min = read_bound(reader, table, "min", where, &out->min);
    out->has_max = read_bound(reader, table, "max", where, &out->max);
    bool counts = out->type == SCHEMA_STRING || out->type == SCHEMA_ARRAY || out->type == SCHEMA_MAP;
    if (counts && ((out->has_min && out->min < 0) || (out->has_max && out->max < 0)))
        fault(reader, where, "a length or count is never negative: 'min' and 'max' must not be");
    else if (out->has_min && out->has_max && out->min > out->max)
        fault(reader, where, "'min' is greater than 'max'");
}

/* Texts that only the descriptions of the API show. */
static void check_texts(struct schema_reader *reader, int table, const char *where)
{
    static const char *const names[] = {"doc", "format", "media"};
    lua_State *L = reader->L;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int type = push(L, table, names[i]);
        if (type != LUA_TNIL && type != LUA_TSTRING)
            fault(reader, where, "'%s' must be a string, not a %s", names[i], lua_typename(L, type));
        lua_pop(L, 1);
    }
}

static bool read_type(struct schema_reader *reader, int table, const char *where, enum schema_type *out)
{
    static const char *const names[] = {"any",   "string", "integer", "number", "boolean", "path",
                                        "array", "object", "map",     "bytes",  "events"};
    lua_State *L = reader->L;
    bool found = false;
    if (push(L, table, "type") != LUA_TSTRING) {
        fault(reader, where, "is no schema: it has no type (use the makers of abx.params)");
    } else {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++) {
            found = strcmp(names[i], lua_tostring(L, -1)) == 0;
            if (found)
                *out = (enum schema_type)i; /* the order of the enum */
        }
        if (!found)
            fault(reader, where, "unknown type '%.40s'", lua_tostring(L, -1));
        else if (*out >= SCHEMA_BYTES && !reader->answers)
            fault(reader, where, "the type %s is for answers only", lua_tostring(L, -1));
    }
    lua_pop(L, 1);
    return found;
}

/* The choice on top of the stack, which is to stand behind the `count` ones there are. */
static void read_choice(struct schema_reader *reader, const char *where, struct schema *out, size_t count)
{
    lua_State *L = reader->L;
    if (lua_type(L, -1) != LUA_TSTRING) {
        fault(reader, where, "'choices' must be a list of strings");
        return;
    }
    const char *text = lua_tostring(L, -1);
    if (strlen(text) != lua_rawlen(L, -1))
        fault(reader, where, "the choice '%.40s' holds a NUL byte", text);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(out->choices[i], text) == 0)
            fault(reader, where, "the choice '%.40s' is there twice", text);
    }
    out->choices[count] = arena_strndup(reader->arena, text, lua_rawlen(L, -1));
}

static void read_choices(struct schema_reader *reader, int table, const char *where, struct schema *out)
{
    lua_State *L = reader->L;
    int type = push(L, table, "choices");
    lua_thaw(L, -1);
    size_t count = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    if (type != LUA_TNIL && count == 0) {
        fault(reader, where, "'choices' must be a list of strings");
    } else if (count > CHOICES_MAX) { /* each value is compared with all of them */
        fault(reader, where, "has over %d choices", CHOICES_MAX);
    } else if (count > 0) {
        out->choices = arena_alloc(reader->arena, (count + 1) * sizeof(*out->choices));
        for (size_t i = 0; i < count && out->choices != NULL; i++) {
            lua_rawgeti(L, -1, (lua_Integer)i + 1);
            read_choice(reader, where, out, i);
            lua_pop(L, 1);
            if (out->choices[i] == NULL)
                break;
        }
    }
    lua_pop(L, 1);
}

static bool is_finite(const struct value *value)
{
    bool finite = value->type != VALUE_DOUBLE || isfinite(value->as.number);
    for (size_t i = 0; value->type == VALUE_ARRAY && finite && i < value->as.array.count; i++)
        finite = is_finite(&value->as.array.items[i]);
    for (size_t i = 0; value->type == VALUE_OBJECT && finite && i < value->as.object.count; i++)
        finite = is_finite(&value->as.object.members[i].value);
    return finite;
}

/* Answers may hold members that are not declared, which schema_check refuses: their examples go by type only where they
 * are plain. */
static bool can_judge(const struct schema_reader *reader, const struct schema *schema)
{
    return !reader->answers || schema->type < SCHEMA_ARRAY;
}

static int check_sample(struct schema_reader *reader, const struct schema *schema, const char *name,
                        const struct value *sample, struct err *err)
{
    struct schema_field field = {.name = (char *)name, .schema = *schema};
    struct schema object = {.type = SCHEMA_OBJECT, .fields = &field, .field_count = 1};
    struct value_member member = {.name = name, .name_len = strlen(name), .value = *sample};
    struct value value = {.type = VALUE_OBJECT, .as.object = {&member, 1}}, checked;
    struct field_errors errors = {0};
    if (schema_check(&object, &value, NULL, reader->arena, &checked, &errors) == 0)
        return 0;
    return err_set(err, errors.code, "%s", errors.list[0].problem);
}

/* A default or an example, which must pass the schema itself; NULL where there is none, or a faulty one. Before dflt is
 * set: else a bad one would be filled in for itself. */
static const struct value *read_sample(struct schema_reader *reader, int table, const char *name, const char *where,
                                       const struct schema *schema)
{
    lua_State *L = reader->L;
    if (push(L, table, name) == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    struct err err;
    struct value *sample = arena_alloc(reader->arena, sizeof(*sample));
    int status = sample == NULL ? err_set(&err, ERR_INTERNAL, "out of memory")
                                : lua_to_value(L, lua_gettop(L), reader->arena, sample, &err);
    lua_pop(L, 1);
    if (status == 0 && schema->type == SCHEMA_ARRAY && sample->type == VALUE_OBJECT && sample->as.object.count == 0)
        *sample = (struct value){.type = VALUE_ARRAY};
    if (status == 0 && !is_finite(sample))
        status = err_set(&err, ERR_INVALID_REQUEST, "holds a number that JSON does not have");
    if (status == 0 && can_judge(reader, schema))
        status = check_sample(reader, schema, name, sample, &err);
    if (status == 0)
        return sample;
    fault(reader, where, "bad %s: %s", name, err.text);
    return NULL;
}

static void read_samples(struct schema_reader *reader, int table, const char *where, struct schema *out)
{
    read_sample(reader, table, "example", where, out);
    const struct value *dflt = read_sample(reader, table, "default", where, out);
    if (dflt != NULL && out->required)
        fault(reader, where, "is required, and has a default: only one of them makes sense");
    out->dflt = dflt;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct schema_field *)a)->name, ((const struct schema_field *)b)->name);
}

/* A path X is also taken as X_base64; a parameter of that name would never get its value. */
static void check_twins(struct schema_reader *reader, const char *where, const struct schema *object)
{
    static const char suffix[] = "_base64";
    const size_t suffix_len = sizeof(suffix) - 1;
    for (size_t i = 0; i < object->field_count; i++) {
        const char *name = object->fields[i].name;
        size_t len = strlen(name);
        if (len <= suffix_len || strcmp(name + len - suffix_len, suffix) != 0)
            continue;
        const struct schema_field *path = schema_field_find(object, name, len - suffix_len);
        if (path == NULL || path->schema.type != SCHEMA_PATH)
            continue;
        char inner[WHERE_MAX];
        snprintf(inner, sizeof(inner), "%s.%s", where, name);
        fault(reader, inner, "is what the path %.60s is in base64: that is there without being declared", path->name);
    }
}

static void read_fields(struct schema_reader *reader, int index, const char *where, int nesting, struct schema *out)
{
    lua_State *L = reader->L;
    size_t count = 0;
    out->type = SCHEMA_OBJECT;
    lua_thaw(L, index);
    if (!lua_istable(L, index)) {
        fault(reader, where, "must be a table of schemas by name");
        return;
    }
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    out->fields = arena_alloc(reader->arena, (count + 1) * sizeof(*out->fields));
    for (lua_pushnil(L); out->fields != NULL && lua_next(L, index); lua_pop(L, 1)) {
        char inner[WHERE_MAX];
        if (lua_type(L, -2) != LUA_TSTRING) {
            fault(reader, where, "has a member without a name");
            continue;
        }
        struct schema_field *field = &out->fields[out->field_count];
        field->name = arena_strndup(reader->arena, lua_tostring(L, -2), lua_rawlen(L, -2));
        if (field->name == NULL)
            continue;
        if (field->name[0] == '\0' || strlen(field->name) != lua_rawlen(L, -2)) {
            fault(reader, where, "has a member whose name is empty or holds a NUL byte");
            continue;
        }
        out->field_count++;
        snprintf(inner, sizeof(inner), "%s.%s", where, field->name);
        read_one(reader, lua_gettop(L), inner, nesting + 1, &field->schema);
    }
    if (out->field_count > 0) /* the order of a Lua table changes from run to run; that of errors must not */
        qsort(out->fields, out->field_count, sizeof(*out->fields), by_name);
    if (!reader->answers)
        check_twins(reader, where, out);
}

static void check_keys(struct schema_reader *reader, int table, const char *where)
{
    static const char *const known[] = {"type",    "required", "nullable", "default", "min",
                                        "max",     "choices",  "items",    "fields",  "doc",
                                        "example", "format",   "media",    "order",   NULL};
    lua_State *L = reader->L;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "(no string)";
        struct nearest nearest;
        nearest_init(&nearest, name);
        const char *const *key = known;
        for (; *key != NULL && strcmp(*key, name) != 0; key++)
            nearest_offer(&nearest, *key);
        if (*key == NULL)
            fault(reader, where, "unknown key '%.60s'%s", name, nearest_hint(&nearest));
    }
}

static void read_one(struct schema_reader *reader, int index, const char *where, int nesting, struct schema *out)
{
    lua_State *L = reader->L;
    char inner[WHERE_MAX];
    *out = (struct schema){.type = SCHEMA_ANY};
    if (!lua_istable(L, index)) {
        fault(reader, where, "must be a schema (see abx.params)");
        return;
    }
    if (nesting > NESTING_MAX || !lua_checkstack(L, 16)) {
        fault(reader, where, "is nested too deep");
        return;
    }
    lua_thaw(L, index);
    if (!read_type(reader, index, where, &out->type))
        return;
    bool failed_before = reader->failed;
    reader->failed = false;
    check_keys(reader, index, where);
    out->required = read_bool(reader, index, "required", where);
    out->nullable = read_bool(reader, index, "nullable", where);
    check_texts(reader, index, where);
    read_bounds(reader, index, where, out);
    read_choices(reader, index, where, out);
    if (push(L, index, "items") != LUA_TNIL) {
        snprintf(inner, sizeof(inner), "%s[]", where);
        out->items = arena_alloc(reader->arena, sizeof(*out->items));
        if (out->items != NULL)
            read_one(reader, lua_gettop(L), inner, nesting + 1, out->items);
    }
    lua_pop(L, 1);
    if (push(L, index, "fields") != LUA_TNIL)
        read_fields(reader, lua_gettop(L), where, nesting, out);
    lua_pop(L, 1);
    if (!reader->failed) /* they cannot be judged by a broken schema */
        read_samples(reader, index, where, out);
    reader->failed = reader->failed || failed_before;
}

void schema_read(struct schema_reader *reader, int index, const char *where, struct schema *out)
{
    read_one(reader, lua_absindex(reader->L, index), where, 0, out);
}

void schema_read_fields(struct schema_reader *reader, int index, const char *where, struct schema *out)
{
    *out = (struct schema){.type = SCHEMA_OBJECT};
    read_fields(reader, lua_absindex(reader->L, index), where, 0, out);
}
