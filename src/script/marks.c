/* The metatables that mark our values, and boxes for memory that must survive lua_error. Called by all of script/. */
#include "script/marks.h"

#include "script/bindings.h"
#include "script/failure.h"
#include "script/task_state.h"

#include <lauxlib.h>

struct box {
    enum { BOX_BUF, BOX_ARENA } kind;
    union {
        struct buf buf;
        struct arena arena;
    } as;
};

static int on_box_gc(lua_State *L)
{
    struct box *box = lua_touserdata(L, 1);
    if (box->kind == BOX_BUF)
        buf_deinit(&box->as.buf);
    else
        arena_deinit(&box->as.arena);
    return 0;
}

bool mark_has(lua_State *L, int index, int meta_ref)
{
    if (!lua_getmetatable(L, index))
        return false;
    lua_rawgeti(L, LUA_REGISTRYINDEX, meta_ref);
    bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

void mark_set(lua_State *L, int index, int meta_ref)
{
    index = lua_absindex(L, index);
    lua_rawgeti(L, LUA_REGISTRYINDEX, meta_ref);
    lua_setmetatable(L, index);
}

int mark_new(lua_State *L, const char *name, lua_CFunction index, lua_CFunction gc)
{
    lua_createtable(L, 0, 4);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    if (index != NULL) {
        lua_pushcfunction(L, index);
        lua_setfield(L, -2, "__index");
    }
    if (gc != NULL) {
        lua_pushcfunction(L, gc);
        lua_setfield(L, -2, "__gc");
    }
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

void marks_open(lua_State *L, struct vm *vm)
{
    vm->array_meta = mark_new(L, "array", NULL, NULL);
    vm->reply_meta = mark_new(L, "reply", NULL, NULL);
    vm->box_meta = mark_new(L, "box", NULL, on_box_gc);
    failure_open(L, vm);
    request_ud_open(L, vm);
    out_open(L, vm);
    file_ud_open(L, vm);
    raw_json_open(L, vm);
    lua_newtable(L);
    vm->modules = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    vm->groups = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    vm->routes = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    vm->packs = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    vm->commands = luaL_ref(L, LUA_REGISTRYINDEX);
}

struct buf *lua_push_buf(lua_State *L, size_t max_bytes)
{
    struct box *box = lua_newuserdatauv(L, sizeof(*box), 0);
    box->kind = BOX_BUF;
    buf_init(&box->as.buf, max_bytes);
    mark_set(L, -1, vm_of(L)->box_meta);
    return &box->as.buf;
}

struct arena *lua_push_arena(lua_State *L, size_t limit_bytes)
{
    struct box *box = lua_newuserdatauv(L, sizeof(*box), 0);
    box->kind = BOX_ARENA;
    arena_init(&box->as.arena, limit_bytes);
    mark_set(L, -1, vm_of(L)->box_meta);
    return &box->as.arena;
}
