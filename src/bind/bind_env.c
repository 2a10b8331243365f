/* abx.env: the environment of later processes. Called by lua/routes/system.lua. */
#include "bind/bind.h"
#include "bind/host.h"
#include "prim/env_overrides.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* Names and values together can be a MiB before the first change, each byte as \u0000. */
enum { ANSWER_MAX_BYTES = 64 * 1024 * 1024, NAMES_MAX = 65536 };

/* env.get() -> JSON: {env, overrides, masked} */
static int bind_env_get(lua_State *L)
{
    const struct host *host = script_host(L);
    struct buf *answer = lua_push_buf(L, ANSWER_MAX_BYTES);
    if (env_overrides_write(answer, process_table_overrides(host->processes)) != 0)
        return luaL_error(L, "out of memory for the answer");
    size_t len;
    char *text = buf_steal(answer, &len);
    lua_push_raw_json(L, text, len);
    return 1;
}

/* A vector as a userdata, which stays on the stack; its strings stay in their table. */
static struct env_var *push_vars(lua_State *L, size_t count)
{
    if (count > NAMES_MAX)
        luaL_error(L, "at most %d names", NAMES_MAX);
    return lua_newuserdatauv(L, (count + 1) * sizeof(struct env_var), 0);
}

static struct env_var *read_set(lua_State *L, int table, size_t *out_count)
{
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1))
        count++;
    struct env_var *vars = push_vars(L, count), *var = vars;
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1), var++) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "variables to set are strings by name");
        var->name = lua_tolstring(L, -2, &var->name_len);
        var->value = lua_tolstring(L, -1, &var->value_len);
    }
    *out_count = count;
    return vars;
}

static struct env_var *read_unset(lua_State *L, int table, size_t *out_count)
{
    size_t count = (size_t)lua_rawlen(L, table);
    struct env_var *vars = push_vars(L, count);
    for (size_t i = 0; i < count; i++) {
        if (lua_rawgeti(L, table, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_error(L, "variables to unset are names");
        vars[i] = (struct env_var){0};
        vars[i].name = lua_tolstring(L, -1, &vars[i].name_len);
        lua_pop(L, 1);
    }
    *out_count = count;
    return vars;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct env_var *)a)->name, ((const struct env_var *)b)->name);
}

/* Sorted; a name that was unset twice stands there once. */
static void set_names(lua_State *L, const char *field, struct env_var *vars, size_t count)
{
    qsort(vars, count, sizeof(*vars), compare_names);
    lua_newtable(L);
    lua_mark_array(L, -1);
    lua_Integer written = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(vars[i].name, vars[i - 1].name) == 0)
            continue;
        lua_pushlstring(L, vars[i].name, vars[i].name_len);
        lua_rawseti(L, -2, ++written);
    }
    lua_setfield(L, -2, field);
}

/* env.update(set, unset) -> {set={…}, unset={…}} | nil, code, message, field.  All or nothing. */
static int bind_env_update(lua_State *L)
{
    const struct host *host = script_host(L);
    struct env_change change;
    struct err err;
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_thaw(L, 1);
    lua_thaw(L, 2);
    change.set = read_set(L, 1, &change.set_count);
    change.unset = read_unset(L, 2, &change.unset_count);
    if (env_overrides_update(process_table_overrides(host->processes), &change, &err) != 0)
        return lua_push_err(L, &err);
    lua_newtable(L);
    set_names(L, "set", change.set, change.set_count);
    set_names(L, "unset", change.unset, change.unset_count);
    return 1;
}

int bind_env_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"get", bind_env_get}, {"update", bind_env_update}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
