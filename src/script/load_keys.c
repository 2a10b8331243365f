/* Members of declaration tables: which may stand there, of which type, and reading them raw. Called by the load_*.c
 * files. */
#include "script/load.h"

#include <lauxlib.h>
#include <string.h>

/* How many letters must be changed, added or left out; 3 stands for many. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 24 };
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > LONGEST || b_len > LONGEST)
        return 3;
    int row[LONGEST + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= a_len; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_len; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[b_len] < 3 ? row[b_len] : 3;
}

static const struct key *find_key(const struct key *keys, const char *name)
{
    for (; keys->name != NULL; keys++) {
        if (strcmp(keys->name, name) == 0)
            return keys;
    }
    return NULL;
}

static void fault_unknown(struct loader *loader, const struct key *keys, const char *name, int line, const char *what)
{
    const char *nearest = NULL;
    int best = 3;
    for (; keys->name != NULL; keys++) {
        int steps = distance(keys->name, name);
        if (steps < best) {
            best = steps;
            nearest = keys->name;
        }
    }
    int own_line = load_line_of_key(loader, name, line);
    load_fault(loader, own_line ? own_line : line, "%s: unknown key '%.60s'%s%s%s", what, name,
               nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
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

void load_check_keys(struct loader *loader, int table, const struct key *keys, bool list, int line, const char *what)
{
    static const char *const type_names[] = {"anything",      "a string", "an integer",
                                             "true or false", "a table",  "a function"};
    lua_State *L = loader->L;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (list && lua_isinteger(L, -2))
            continue;
        if (lua_type(L, -2) != LUA_TSTRING) {
            load_fault(loader, line, "%s: a key is no string", what);
            continue;
        }
        const char *name = lua_tostring(L, -2);
        const struct key *key = find_key(keys, name);
        if (key == NULL) {
            fault_unknown(loader, keys, name, line, what);
        } else if (!fits(L, -1, key->type)) {
            int own_line = load_line_of_key(loader, name, line);
            load_fault(loader, own_line ? own_line : line, "%s: '%s' must be %s, not a %s", what, name,
                       type_names[key->type], luaL_typename(L, -1));
        }
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
                     lua_Integer max, int line, const char *what)
{
    lua_State *L = loader->L;
    lua_Integer value = dflt;
    load_push(L, table, name);
    if (fits(L, -1, KEY_INTEGER)) {
        value = lua_tointeger(L, -1);
        if (value < min || value > max) {
            int own_line = load_line_of_key(loader, name, line);
            load_fault(loader, own_line ? own_line : line, "%s: '%s' is %lld, which is not between %lld and %lld", what,
                       name, (long long)value, (long long)min, (long long)max);
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
