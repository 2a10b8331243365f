/* The global `require`: bindings by name, else lua_dir/NAME.lua, once for each generation. All requests share what it
 * answers, so that is read-only for them; what a module keeps to itself (a local that its functions use) is not. */
#include "script/bindings.h"
#include "script/sandbox.h"
#include "script/tables.h"
#include "script/vm.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

static const char loading_key; /* the module table holds its address while a module is being loaded */

static bool good_name(const char *name, size_t len)
{
    return len > 0 && len <= 128 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == len && name[0] != '.' &&
           name[len - 1] != '.' && strstr(name, "..") == NULL;
}

static lua_CFunction find_binding(const struct vm *vm, const char *name)
{
    if (strcmp(name, "abx.tables") == 0)
        return tables_open;
    for (const struct script_binding *binding = vm->bindings; binding != NULL && binding->name != NULL; binding++) {
        if (strcmp(binding->name, name) == 0)
            return binding->open;
    }
    return NULL;
}

/* Leaves the module's one value; or an error value, and answers false. */
static bool load_file(lua_State *L, struct vm *vm, const char *name)
{
    luaL_Buffer path;
    luaL_buffinit(L, &path);
    luaL_addstring(&path, vm->lua_dir);
    luaL_addchar(&path, '/');
    for (const char *c = name; *c != '\0'; c++)
        luaL_addchar(&path, *c == '.' ? '/' : *c);
    luaL_addstring(&path, ".lua");
    luaL_pushresult(&path);
    const char *file = lua_tostring(L, -1), *display = vm_display(vm, file);

    const char *chunk_name = lua_pushfstring(L, "@%s", display);
    luaL_checkstack(L, 8, NULL);
    size_t len;
    struct err err;
    char *source = vm_read_source(file, &len, &err);
    if (source == NULL) {
        luaL_where(L, 1);
        lua_pushfstring(L, err.code == ERR_FILE_NOT_FOUND ? "no module '%s' (%s)" : "module '%s' cannot be read: %s %s",
                        name, display, err.text);
        lua_concat(L, 2);
        return false;
    }
    int status = sandbox_run(L, source, len, chunk_name);
    free(source);
    return status == LUA_OK;
}

int sandbox_require(lua_State *L)
{
    struct vm *vm = vm_of(L);
    size_t len;
    const char *name = luaL_checklstring(L, 1, &len);
    lua_settop(L, 1);
    if (!good_name(name, len))
        return luaL_error(L, "bad module name '%s'", name);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->modules);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, 2) != LUA_TNIL) {
        if (lua_islightuserdata(L, -1) && lua_touserdata(L, -1) == &loading_key)
            return luaL_error(L, "module '%s' is required in a circle", name);
        return 1;
    }
    lua_CFunction open = find_binding(vm, name);
    lua_settop(L, 2);
    if (open != NULL) {
        lua_pushcfunction(L, open);
        lua_call(L, 0, 1);
        sandbox_freeze(L);
    } else {
        lua_pushvalue(L, 1);
        lua_pushlightuserdata(L, (void *)&loading_key);
        lua_rawset(L, 2);
        if (!load_file(L, vm, name)) {
            lua_pushvalue(L, 1); /* a later try may find it mended */
            lua_pushnil(L);
            lua_rawset(L, 2);
            return lua_error(L);
        }
        if (lua_isnil(L, -1))
            lua_pushboolean(L, true); /* as Lua's own does */
        if (vm->faults == NULL)       /* what is loaded before is frozen once the declarations have been read from it */
            sandbox_freeze_deep(L);
    }
    lua_pushvalue(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, 2);
    return 1;
}
