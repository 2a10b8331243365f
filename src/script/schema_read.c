/* Schemas from the tables that abx.params makes. Called by load_schema.c while tables load, and by tables.check. */
#include "script/schema_read.h"

#include "script/lua_value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 16, WHERE_MAX = 160 };

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
    if (type != LUA_TNIL && (type != LUA_TNUMBER || isnan(*out)))
        fault(reader, where, "'%s' must be a number", name);
    lua_pop(L, 1);
    return type == LUA_TNUMBER;
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

static void read_choices(struct schema_reader *reader, int table, const char *where, struct schema *out)
{
    lua_State *L = reader->L;
    int type = push(L, table, "choices");
    size_t count = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    if (type != LUA_TNIL && count == 0) {
        fault(reader, where, "'choices' must be a list of strings");
    } else if (count > 0) {
        out->choices = arena_alloc(reader->arena, (count + 1) * sizeof(*out->choices));
        for (size_t i = 0; i < count && out->choices != NULL; i++) {
            if (lua_rawgeti(L, -1, (lua_Integer)i + 1) == LUA_TSTRING)
                out->choices[i] = arena_strndup(reader->arena, lua_tostring(L, -1), lua_rawlen(L, -1));
            else
                fault(reader, where, "'choices' must be a list of strings");
            lua_pop(L, 1);
            if (out->choices[i] == NULL)
                break;
        }
    }
    lua_pop(L, 1);
}

/* The default must pass the schema itself. Before dflt is set: else a bad one would be filled in for itself. */
static void read_default(struct schema_reader *reader, int table, const char *where, struct schema *out)
{
    lua_State *L = reader->L;
    if (push(L, table, "default") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    struct err err;
    struct field_errors errors = {0};
    struct value *dflt = arena_alloc(reader->arena, sizeof(*dflt)), checked;
    int status = dflt == NULL ? err_set(&err, ERR_INTERNAL, "out of memory")
                              : lua_to_value(L, lua_gettop(L), reader->arena, dflt, &err);
    lua_pop(L, 1);
    if (out->required) {
        fault(reader, where, "is required, and has a default: only one of them makes sense");
    } else if (status != 0) {
        fault(reader, where, "bad default: %s", err.text);
    } else {
        if (out->type == SCHEMA_ARRAY && dflt->type == VALUE_OBJECT && dflt->as.object.count == 0)
            *dflt = (struct value){.type = VALUE_ARRAY};
        struct schema_field field = {.name = (char *)"default", .schema = *out};
        struct schema object = {.type = SCHEMA_OBJECT, .fields = &field, .field_count = 1};
        struct value_member member = {.name = "default", .name_len = strlen("default"), .value = *dflt};
        struct value value = {.type = VALUE_OBJECT, .as.object = {&member, 1}};
        if (schema_check(&object, &value, NULL, reader->arena, &checked, &errors) != 0)
            fault(reader, where, "bad default: %s", errors.list[0].problem);
        else
            out->dflt = dflt;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct schema_field *)a)->name, ((const struct schema_field *)b)->name);
}

static void read_fields(struct schema_reader *reader, int index, const char *where, int nesting, struct schema *out)
{
    lua_State *L = reader->L;
    size_t count = 0;
    out->type = SCHEMA_OBJECT;
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
        out->field_count++;
        snprintf(inner, sizeof(inner), "%s.%s", where, field->name);
        read_one(reader, lua_gettop(L), inner, nesting + 1, &field->schema);
    }
    if (out->field_count > 0) /* the order of a Lua table changes from run to run; that of errors must not */
        qsort(out->fields, out->field_count, sizeof(*out->fields), by_name);
}

static void check_keys(struct schema_reader *reader, int table, const char *where)
{
    static const char *const known[] = {"type",    "required", "nullable", "default", "min",
                                        "max",     "choices",  "items",    "fields",  "doc",
                                        "example", "format",   "media",    "order",   NULL};
    lua_State *L = reader->L;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "(no string)";
        const char *const *key = known;
        while (*key != NULL && strcmp(*key, name) != 0)
            key++;
        if (*key == NULL)
            fault(reader, where, "unknown key '%.60s'", name);
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
    if (!read_type(reader, index, where, &out->type))
        return;
    check_keys(reader, index, where);
    out->required = read_bool(reader, index, "required", where);
    out->nullable = read_bool(reader, index, "nullable", where);
    out->has_min = read_bound(reader, index, "min", where, &out->min);
    out->has_max = read_bound(reader, index, "max", where, &out->max);
    if (out->has_min && out->has_max && out->min > out->max)
        fault(reader, where, "'min' is greater than 'max'");
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
    if (!reader->failed) /* a default cannot be judged by a broken schema */
        read_default(reader, index, where, out);
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
