/* What a handler gets as `req`: fields made when they are asked for. Called by task.c and by bindings that read bodies.
 */
#include "script/bindings.h"
#include "script/marks.h"
#include "script/task_state.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

enum { SLOT_PARAMS = 1, SLOT_HEADERS, SLOT_COUNT = 2 };

/* The request's memory ends with the task, but a script may keep this: the serial tells. */
struct request_ud {
    struct task *task;
    uint64_t serial;
};

static struct request *request_of(lua_State *L, int arg, int meta)
{
    struct request_ud *ud = lua_touserdata(L, arg);
    if (ud == NULL || !mark_has(L, arg, meta))
        luaL_typeerror(L, arg, meta == vm_of(L)->body_meta ? "request body" : "request");
    if (ud->task->serial != ud->serial || ud->task->request == NULL)
        luaL_error(L, "this request is over");
    return ud->task->request;
}

static void push_ud(lua_State *L, struct task *task, int slots, int meta)
{
    struct request_ud *ud = lua_newuserdatauv(L, sizeof(*ud), slots);
    ud->task = task;
    ud->serial = task->serial;
    mark_set(L, -1, meta);
}

void request_ud_push(lua_State *L, struct task *task)
{
    push_ud(L, task, SLOT_COUNT, task->vm->request_meta);
}

/* Names in lower case; the values of repeated ones joined by ", ". */
static void push_headers(lua_State *L, const struct request *request)
{
    lua_createtable(L, 0, (int)request->header_count);
    for (size_t i = 0; i < request->header_count; i++) {
        luaL_Buffer name;
        size_t len = strlen(request->headers[i].name);
        char *text = luaL_buffinitsize(L, &name, len);
        for (size_t k = 0; k < len; k++)
            text[k] = (char)tolower((unsigned char)request->headers[i].name[k]);
        luaL_pushresultsize(&name, len);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) == LUA_TSTRING) {
            lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), request->headers[i].value);
            lua_remove(L, -2);
        } else {
            lua_pop(L, 1);
            lua_pushstring(L, request->headers[i].value);
        }
        lua_rawset(L, -3);
    }
}

/* Pushes what the slot holds, or else makes it. */
static void push_slot(lua_State *L, const struct request *request, int slot)
{
    if (lua_getiuservalue(L, 1, slot) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    if (slot == SLOT_HEADERS)
        push_headers(L, request);
    else if (request->params.type == VALUE_OBJECT)
        lua_push_value(L, &request->params);
    else
        lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, slot);
}

static int request_index(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct request *request = request_of(L, 1, vm->request_meta);
    const char *key = luaL_checkstring(L, 2);
    if (strcmp(key, "params") == 0) {
        push_slot(L, request, SLOT_PARAMS);
    } else if (strcmp(key, "headers") == 0) {
        push_slot(L, request, SLOT_HEADERS);
    } else if (strcmp(key, "method") == 0) {
        lua_pushstring(L, request->method);
    } else if (strcmp(key, "path") == 0) {
        lua_pushlstring(L, request->target, strcspn(request->target, "?"));
    } else if (strcmp(key, "id") == 0) {
        lua_pushstring(L, request->id);
    } else if (strcmp(key, "accepts_sse") == 0) {
        lua_pushboolean(L, request_accepts(request, "text/event-stream"));
    } else if (strcmp(key, "body") == 0) {
        if (request->body != NULL)
            push_ud(L, ((struct request_ud *)lua_touserdata(L, 1))->task, 0, vm->body_meta);
        else
            lua_pushnil(L);
    } else {
        return luaL_error(L, "a request has no field '%s'", key);
    }
    return 1;
}

void request_ud_open(lua_State *L, struct vm *vm)
{
    vm->request_meta = mark_new(L, "request", request_index, NULL);
    vm->body_meta = mark_new(L, "request body", NULL, NULL);
}

struct body *lua_arg_body(lua_State *L, int arg)
{
    struct body *body = request_of(L, arg, vm_of(L)->body_meta)->body;
    if (body == NULL)
        luaL_argerror(L, arg, "the request has no body to read");
    return body;
}
