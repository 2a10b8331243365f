/* abx.tables: the declarations as written, for the handlers that describe them, and checks against a schema. Called by
 * scripts. */
#include "script/tables.h"

#include "script/bindings.h"
#include "script/lua_value.h"
#include "script/marks.h"
#include "script/nearest.h"
#include "script/schema_read.h"
#include "script/vm.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { CHECK_MAX_BYTES = 64 * 1024 * 1024 };

/* A new list with the members of the kept one: a script that sorts or empties it harms nobody else. */
static int push_list(lua_State *L, int list_ref)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, list_ref);
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    lua_createtable(L, (int)count, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, -2, i);
        lua_rawseti(L, -2, i);
    }
    lua_mark_array(L, -1);
    return 1;
}

static int tables_groups(lua_State *L)
{
    return push_list(L, vm_of(L)->groups);
}

static int tables_routes(lua_State *L)
{
    return push_list(L, vm_of(L)->routes);
}

static int tables_packs(lua_State *L)
{
    return push_list(L, vm_of(L)->packs);
}

static int tables_commands(lua_State *L)
{
    return push_list(L, vm_of(L)->commands);
}

/* tables.command(name) -> declaration | nil */
static int tables_command(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm_of(L)->commands);
    lua_Integer count = (lua_Integer)lua_rawlen(L, 2);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, 2, i);
        lua_getfield(L, 3, "name"); /* not raw: the declaration is a stand-in */
        if (lua_rawequal(L, 4, 1)) {
            lua_settop(L, 3);
            return 1;
        }
        lua_settop(L, 2);
    }
    return 0;
}

static void on_schema_fault(void *ctx, const char *where, const char *text)
{
    char *first = ctx;
    if (first[0] == '\0')
        snprintf(first, 256, "%s %s", where, text);
}

static int push_errors(lua_State *L, const struct field_errors *errors)
{
    lua_pushnil(L);
    lua_pushstring(L, err_code_name(errors->code));
    lua_pushfstring(L, "%s: %s", errors->list[0].field, errors->list[0].problem);
    lua_createtable(L, (int)errors->count, 0);
    for (size_t i = 0; i < errors->count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, errors->list[i].field);
        lua_setfield(L, -2, "field");
        lua_pushstring(L, errors->list[i].problem);
        lua_setfield(L, -2, "problem");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 4;
}

/* tables.check(fields, value) -> checked table | nil, code, message, errors */
static int tables_check(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    struct arena *arena = lua_push_arena(L, CHECK_MAX_BYTES);
    char fault[256] = "";
    struct schema_reader reader = {.L = L, .arena = arena, .on_fault = on_schema_fault, .ctx = fault};
    struct schema schema;
    struct value value, checked;
    struct err err;
    struct field_errors errors = {0};
    schema_read_fields(&reader, 1, "fields", &schema);
    if (reader.failed)
        return luaL_argerror(L, 1, lua_pushstring(L, fault));
    if (lua_to_value(L, 2, arena, &value, &err) != 0) {
        field_errors_add(&errors, ERR_INVALID_REQUEST, "", "%s", err.text);
        return push_errors(L, &errors);
    }
    if (value.type == VALUE_ARRAY && value.as.array.count == 0)
        value = (struct value){.type = VALUE_OBJECT}; /* {} is both in Lua */
    int status = schema_check(&schema, &value, NULL, arena, &checked, &errors);
    int results = 1;
    if (status != 0)
        results = push_errors(L, &errors);
    else
        lua_push_value(L, &checked);
    arena_deinit(arena); /* at once: the collector may take its time */
    return results;
}

/* tables.fault(message, level): the file there is faulty; loading goes on, to find the others. */
static int tables_fault(lua_State *L)
{
    struct faults *faults = vm_of(L)->faults;
    const char *message = luaL_checkstring(L, 1);
    int level = (int)lua_arg_opt_int(L, 2, 1, 1, 50);
    lua_Debug ar;
    if (faults == NULL) {
        luaL_where(L, level);
        lua_pushvalue(L, 1);
        lua_concat(L, 2);
        return lua_error(L);
    }
    if (lua_getstack(L, level, &ar) && lua_getinfo(L, "Sl", &ar) && ar.source[0] == '@')
        faults_add(faults, ar.source + 1, ar.currentline, "%s", message);
    else
        faults_add(faults, "?", 0, "%s", message);
    return 0;
}

/* tables.hint(written, known) -> " (did you mean 'min'?)" | "": the nearest of the names that are keys of `known` */
static int tables_hint(lua_State *L)
{
    struct nearest nearest;
    nearest_init(&nearest, luaL_checkstring(L, 1));
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_thaw(L, 2);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING)
            nearest_offer(&nearest, lua_tostring(L, -2));
    }
    lua_pushstring(L, nearest_hint(&nearest));
    return 1;
}

int tables_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"groups", tables_groups},     {"routes", tables_routes},   {"packs", tables_packs},
        {"commands", tables_commands}, {"command", tables_command}, {"check", tables_check},
        {"fault", tables_fault},       {"hint", tables_hint},       {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
