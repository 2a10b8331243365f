/* Members of declaration tables: which may stand there, of which type, and reading them raw. Called by the load_*.c
 * files. */
#include "script/load.h"
#include "script/nearest.h"

#include <lauxlib.h>
#include <string.h>

static const struct key *find_key(const struct key *keys, const char *name)
{
    for (; keys->name != NULL; keys++) {
        if (strcmp(keys->name, name) == 0)
            return keys;
    }
    return NULL;
}

static void fault_unknown(struct loader *loader, const struct key *keys, const char *name)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (; keys->name != NULL; keys++)
        nearest_offer(&nearest, keys->name);
    load_fault_at(loader, name, "unknown key '%.60s'%s", name, nearest_hint(&nearest));
}

static bool fits(lua_State *L, int index, enum key_type type)
{
    switch (type) {
    case KEY_STRING:
        return lua_type(L, index) == LUA_TSTRING;
    case KEY_INTEGER:
        return lua_type(L, index) == LUA_TNUMBER && lua_tointegerx(L, index, NULL) == lua_tonumber(L, index);
    case KEY_BOOLEAN:
        return lua_isboolean(L, index);
    case KEY_TABLE:
        return lua_istable(L, index);
    case KEY_FUNCTION:
        return lua_isfunction(L, index);
    case KEY_ANY:
        break;
    }
    return true;
}

void load_check_keys(struct loader *loader, int table, const struct key *keys, bool list)
{
    static const char *const type_names[] = {"anything",      "a string", "an integer",
                                             "true or false", "a table",  "a function"};
    lua_State *L = loader->L;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (list && lua_isinteger(L, -2))
            continue;
        if (lua_type(L, -2) != LUA_TSTRING) {
            load_fault_at(loader, NULL, "a key is no string");
            continue;
        }
        const char *name = lua_tostring(L, -2);
        const struct key *key = find_key(keys, name);
        if (key == NULL)
            fault_unknown(loader, keys, name);
        else if (!fits(L, -1, key->type))
            load_fault_at(loader, name, "'%s' must be %s, not a %s", name, type_names[key->type], luaL_typename(L, -1));
        else if (key->type == KEY_STRING && strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            load_fault_at(loader, name, "'%s' holds a NUL byte", name);
    }
}

int load_push(lua_State *L, int table, const char *name)
{
    lua_pushstring(L, name);
    return lua_rawget(L, table);
}

void load_set(lua_State *L, int table, const char *name)
{
    lua_pushstring(L, name);
    lua_insert(L, -2);
    lua_rawset(L, table);
}

char *load_strdup(struct loader *loader, const char *text)
{
    char *copy = arena_strndup(&loader->generation->arena, text, strlen(text));
    if (copy == NULL)
        luaL_error(loader->L, "the tables are too large");
    return copy;
}

char *load_string(struct loader *loader, int table, const char *name)
{
    char *text = NULL;
    if (load_push(loader->L, table, name) == LUA_TSTRING)
        text = load_strdup(loader, lua_tostring(loader->L, -1));
    lua_pop(loader->L, 1);
    return text;
}

bool load_bool(lua_State *L, int table, const char *name, bool dflt)
{
    bool value = load_push(L, table, name) == LUA_TBOOLEAN ? lua_toboolean(L, -1) : dflt;
    lua_pop(L, 1);
    return value;
}

lua_Integer load_int(struct loader *loader, int table, const char *name, lua_Integer dflt, lua_Integer min,
                     lua_Integer max)
{
    lua_State *L = loader->L;
    lua_Integer value = dflt;
    load_push(L, table, name);
    if (fits(L, -1, KEY_INTEGER)) {
        value = lua_tointeger(L, -1);
        if (value < min || value > max) {
            load_fault_at(loader, name, "'%s' is %lld, which is not between %lld and %lld", name, (long long)value,
                          (long long)min, (long long)max);
            value = dflt;
        }
    }
    lua_pop(L, 1);
    return value;
}

void load_list(struct loader *loader, int index, int list_ref)
{
    lua_State *L = loader->L;
    index = lua_absindex(L, index);
    lua_rawgeti(L, LUA_REGISTRYINDEX, list_ref);
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

bool load_good_name(const char *name, const char *more)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(name);
    if (len == 0 || len > 100 || strchr(plain, name[0]) == NULL)
        return false;
    for (const char *c = name; *c != '\0'; c++) {
        if (strchr(plain, *c) == NULL && strchr(more, *c) == NULL)
            return false;
    }
    return true;
}
