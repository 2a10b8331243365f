/* The globals `try` and `fail`: expected failures on their way to the problem reply. Called by the sandbox and task.c.
 */
#include "script/failure.h"

#include "script/bindings.h"
#include "script/marks.h"
#include "script/sandbox.h"

#include <lauxlib.h>

static int failure_tostring(lua_State *L)
{
    struct err err;
    if (!failure_is(L, 1))
        return luaL_argerror(L, 1, "a failure is wanted");
    failure_to_err(L, 1, &err);
    lua_pushfstring(L, "%s: %s", err_code_name(err.code), err.text);
    return 1;
}

void failure_open(lua_State *L, struct vm *vm)
{
    vm->failure_meta = mark_new(L, "failure", NULL, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->failure_meta);
    lua_pushcfunction(L, failure_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
}

bool failure_is(lua_State *L, int index)
{
    return lua_istable(L, index) && mark_has(L, index, vm_of(L)->failure_meta);
}

/* The member as text; valid while the table is. Looks at its type first: lua_tostring would convert it in place. */
static const char *member(lua_State *L, int index, int place)
{
    const char *text = lua_rawgeti(L, index, place) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_pop(L, 1);
    return text;
}

void failure_to_err(lua_State *L, int index, struct err *err)
{
    index = lua_absindex(L, index);
    const char *code = member(L, index, 1), *message = member(L, index, 2), *field = member(L, index, 3);
    enum err_code known = code ? err_code_find(code) : ERR_NONE;
    err_set(err, known != ERR_NONE ? known : ERR_INTERNAL, "%s", message ? message : code ? code : "failed");
    if (field != NULL)
        err_field(err, field);
}

/* Raises code, message, field, which stand at `first`. */
static int raise(lua_State *L, int first)
{
    lua_settop(L, first + 2);
    if (lua_type(L, first) != LUA_TSTRING)
        return luaL_error(L, "failed, and no code tells why");
    if (err_code_find(lua_tostring(L, first)) == ERR_NONE)
        return luaL_error(L, "unknown failure code '%s' (%s)", lua_tostring(L, first),
                          luaL_tolstring(L, first + 1, NULL));
    if (lua_istable(L, first + 2)) { /* the list of errors that tables.check answers: the first one's field */
        if (lua_rawgeti(L, first + 2, 1) == LUA_TTABLE) {
            lua_pushliteral(L, "field");
            lua_rawget(L, -2);
        }
        lua_replace(L, first + 2);
        lua_settop(L, first + 2);
    }
    static const char *const names[] = {"code", "message", "field"};
    lua_createtable(L, 3, 3);
    for (int i = 0; i < 3; i++) {
        lua_pushvalue(L, first + i);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, i + 1);     /* for us */
        lua_setfield(L, -2, names[i]); /* for a script that catches it */
    }
    mark_set(L, -1, vm_of(L)->failure_meta);
    return lua_error(L);
}

int failure_try(lua_State *L)
{
    if (lua_toboolean(L, 1))
        return lua_gettop(L);
    return raise(L, 2);
}

int failure_fail(lua_State *L)
{
    luaL_checkstring(L, 1);
    return raise(L, 1);
}

int lua_push_err(lua_State *L, const struct err *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err_code_name(err->code));
    lua_pushstring(L, err->text);
    if (err->field[0] != '\0')
        lua_pushstring(L, err->field);
    else
        lua_pushnil(L);
    return 4;
}
