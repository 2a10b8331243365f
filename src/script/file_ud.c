/* An open file on its way into reply{file=...}. Called by reply.c and by the bindings that open files. */
#include "script/bindings.h"
#include "script/marks.h"
#include "script/task_state.h"

#include <lauxlib.h>
#include <string.h>
#include <unistd.h>

static int file_index(lua_State *L)
{
    struct response_file *file = lua_touserdata(L, 1);
    const char *key = luaL_checkstring(L, 2);
    if (!mark_has(L, 1, vm_of(L)->file_meta))
        return luaL_typeerror(L, 1, "file");
    if (strcmp(key, "name") == 0)
        lua_getiuservalue(L, 1, 1);
    else if (strcmp(key, "size") == 0)
        lua_pushinteger(L, (lua_Integer)file->size);
    else
        return luaL_error(L, "a file has no field '%s'", key);
    return 1;
}

static int on_file_gc(lua_State *L)
{
    struct response_file *file = lua_touserdata(L, 1);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    return 0;
}

void file_ud_open(lua_State *L, struct vm *vm)
{
    vm->file_meta = mark_new(L, "file", file_index, on_file_gc);
}

/* The arguments of the protected part. */
struct new_file {
    struct response_file file;
    const char *name;
    size_t name_len;
};

static int new_file(lua_State *L)
{
    struct new_file *new = lua_touserdata(L, 1);
    struct response_file *file = lua_newuserdatauv(L, sizeof(*file), 1);
    file->fd = -1;
    mark_set(L, -1, vm_of(L)->file_meta);
    lua_pushlstring(L, new->name, new->name_len);
    lua_setiuservalue(L, -2, 1);
    *file = new->file; /* nothing can raise any more */
    return 1;
}

void lua_push_file(lua_State *L, struct response_file file, const char *name, size_t name_len)
{
    struct new_file new = {.file = file, .name = name, .name_len = name_len};
    lua_pushcfunction(L, new_file);
    lua_pushlightuserdata(L, &new);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        close(file.fd);
        lua_error(L);
    }
}

bool lua_take_file(lua_State *L, int index, struct response_file *out)
{
    struct response_file *file = lua_touserdata(L, index);
    if (file == NULL || !mark_has(L, index, vm_of(L)->file_meta) || file->fd < 0)
        return false;
    *out = *file;
    file->fd = -1;
    return true;
}
