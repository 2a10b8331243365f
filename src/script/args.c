/* Arguments and fields of tables, checked and read raw. Called by the files of bind/. */
#include "script/bindings.h"

#include "script/nearest.h"
#include "script/vm.h"

#include <lauxlib.h>
#include <string.h>

void *script_host(lua_State *L)
{
    return vm_of(L)->host_parts;
}

struct loop *script_loop(lua_State *L)
{
    return vm_of(L)->loop;
}

lua_Integer lua_arg_int(lua_State *L, int arg, lua_Integer min, lua_Integer max)
{
    lua_Integer value = luaL_checkinteger(L, arg);
    if (value < min || value > max)
        luaL_argerror(
            L, arg,
            lua_pushfstring(L, "%I is not between %I and %I", (LUAI_UACINT)value, (LUAI_UACINT)min, (LUAI_UACINT)max));
    return value;
}

lua_Integer lua_arg_opt_int(lua_State *L, int arg, lua_Integer dflt, lua_Integer min, lua_Integer max)
{
    return lua_isnoneornil(L, arg) ? dflt : lua_arg_int(L, arg, min, max);
}

/* Pushes the member; its type. */
static int push_field(lua_State *L, int table, const char *name)
{
    table = lua_absindex(L, table);
    luaL_checktype(L, table, LUA_TTABLE);
    lua_pushvalue(L, table);
    lua_thaw(L, -1);
    lua_pushstring(L, name);
    int type = lua_rawget(L, -2);
    lua_remove(L, -2);
    return type;
}

lua_Integer lua_field_int(lua_State *L, int table, const char *name, lua_Integer dflt, lua_Integer min, lua_Integer max)
{
    if (push_field(L, table, name) == LUA_TNIL) {
        lua_pop(L, 1);
        return dflt;
    }
    int is_integer;
    lua_Integer value = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer || lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "'%s' must be an integer, not a %s", name, luaL_typename(L, -1));
    if (value < min || value > max)
        luaL_error(L, "'%s' is %I, which is not between %I and %I", name, (LUAI_UACINT)value, (LUAI_UACINT)min,
                   (LUAI_UACINT)max);
    lua_pop(L, 1);
    return value;
}

bool lua_field_bool(lua_State *L, int table, const char *name, bool dflt)
{
    int type = push_field(L, table, name);
    bool value = type == LUA_TNIL ? dflt : lua_toboolean(L, -1);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "'%s' must be true or false, not a %s", name, luaL_typename(L, -1));
    lua_pop(L, 1);
    return value;
}

const char *lua_field_string(lua_State *L, int table, const char *name, size_t *out_len)
{
    int type = push_field(L, table, name);
    if (type != LUA_TNIL && type != LUA_TSTRING)
        luaL_error(L, "'%s' must be a string, not a %s", name, luaL_typename(L, -1));
    const char *text = type == LUA_TNIL ? NULL : lua_tolstring(L, -1, out_len);
    lua_pop(L, 1);
    return text;
}

/* Raises. The nearest name is looked for only here: every call of a primitive comes through the check below. */
static int unknown_key(lua_State *L, const char *const *known, const char *what)
{
    const char *key = luaL_tolstring(L, -2, NULL); /* a copy: a key that is no string must stay what it is */
    struct nearest nearest;
    nearest_init(&nearest, key);
    for (const char *const *name = known; *name != NULL; name++)
        nearest_offer(&nearest, *name);
    return luaL_error(L, "%s: unknown key '%s'%s", what, key, nearest_hint(&nearest));
}

void lua_check_keys(lua_State *L, int table, const char *const *known, const char *what)
{
    luaL_checktype(L, table, LUA_TTABLE);
    lua_pushvalue(L, table);
    table = lua_gettop(L);
    lua_thaw(L, table);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        const char *const *name = known;
        while (*name != NULL && (key == NULL || strcmp(*name, key) != 0))
            name++;
        if (*name == NULL)
            unknown_key(L, known, what);
    }
    lua_settop(L, table - 1);
}
