/* What a handler returned, as an answer; and the global `reply`, which marks a table as a full one. Called by task.c.
 */
#include "script/bindings.h"
#include "script/marks.h"
#include "script/sandbox.h"
#include "script/task_state.h"

#include <lauxlib.h>
#include <string.h>
#include <strings.h>

enum { HEADER_MAX_BYTES = 4 * 1024, HEADERS_MAX_BYTES = 8 * 1024 }; /* what the listener has room for */

static const char *const reply_keys[] = {"status", "headers", "json", "bytes", "file", "stream", NULL};
static const char *const *const body_keys = reply_keys + 2;

/* reply{status=, headers={}, json=|bytes=|file=|stream=}: mistakes are told where they are made. */
int reply_mark(lua_State *L)
{
    int bodies = 0;
    lua_check_keys(L, 1, reply_keys, "reply");
    lua_settop(L, 1);
    for (const char *const *name = body_keys; *name != NULL; name++) {
        lua_pushstring(L, *name);
        bodies += lua_rawget(L, 1) != LUA_TNIL;
    }
    luaL_argcheck(L, bodies <= 1, 1, "json, bytes, file and stream exclude each other");
    lua_settop(L, 1);
    if (lua_getmetatable(L, 1))
        return luaL_argerror(L, 1, "a plain table is wanted");
    mark_set(L, 1, vm_of(L)->reply_meta);
    return 1;
}

static int push_member(lua_State *L, int index, const char *name)
{
    lua_pushstring(L, name);
    return lua_rawget(L, index);
}

static bool set_headers(lua_State *L, struct task *task, int table)
{
    if (push_member(L, table, "headers") == LUA_TNIL) {
        lua_pop(L, 1);
        return true;
    }
    if (!lua_istable(L, -1)) {
        task_fail_internal(task, "reply: 'headers' must be a table");
        return false;
    }
    int headers = lua_gettop(L);
    size_t all_len = 0;
    lua_thaw(L, headers);
    for (lua_pushnil(L); lua_next(L, headers); lua_pop(L, 1)) {
        int type = lua_type(L, -1);
        if (lua_type(L, -2) != LUA_TSTRING || (type != LUA_TSTRING && type != LUA_TNUMBER)) {
            task_fail_internal(task, "reply: headers must be strings by name");
            return false;
        }
        size_t len;
        const char *name = lua_tostring(L, -2), *value = lua_tolstring(L, -1, &len);
        all_len += len + lua_rawlen(L, -2);
        if (len > HEADER_MAX_BYTES || all_len > HEADERS_MAX_BYTES) {
            task_fail_internal(task, "reply: header '%.100s' makes the headers too large (%d bytes each, %d in all)",
                               name, HEADER_MAX_BYTES, HEADERS_MAX_BYTES);
            return false;
        }
        if (strlen(value) != len || strlen(name) != lua_rawlen(L, -2) ||
            response_header(&task->response, name, value) != 0) {
            task_fail_internal(task, "reply: header '%.100s' cannot be sent (controls, a bad name, or too many)", name);
            return false;
        }
    }
    lua_pop(L, 1);
    return true;
}

/* name and value are literals. */
static bool default_header(struct task *task, const char *name, const char *value)
{
    if (response_header_find(&task->response, name) != NULL || response_header_fixed(&task->response, name, value) == 0)
        return true;
    task_fail_internal(task, "reply: too many headers");
    return false;
}

static int reply_json(lua_State *L, struct task *task, int index)
{
    struct err err;
    task->response.kind = RESPONSE_BYTES;
    if (lua_write_json(L, index, &task->response.bytes, &err) != 0)
        task_fail_internal(task, "the handler's result cannot be sent: %s", err.text);
    else
        default_header(task, "Content-Type", "application/json");
    return 0;
}

static int reply_bytes(lua_State *L, struct task *task, int index)
{
    size_t len;
    if (lua_type(L, index) != LUA_TSTRING) {
        task_fail_internal(task, "reply: 'bytes' must be a string, not a %s", luaL_typename(L, index));
        return 0;
    }
    const char *bytes = lua_tolstring(L, index, &len);
    task->response.kind = RESPONSE_BYTES;
    if (buf_append(&task->response.bytes, bytes, len) != 0)
        task_fail_internal(task, "reply: 'bytes' is too large");
    else
        default_header(task, "Content-Type", "application/octet-stream");
    return 0;
}

static int reply_file(lua_State *L, struct task *task, int index)
{
    if (!lua_take_file(L, index, &task->response.file)) {
        task_fail_internal(task, "reply: 'file' must be an open file that was not sent before");
        return 0;
    }
    task->response.kind = RESPONSE_FILE;
    default_header(task, "Content-Type", "application/octet-stream");
    return 0;
}

static bool is_sse(const struct response *response)
{
    static const char media[] = "text/event-stream";
    const char *type = response_header_find(response, "Content-Type");
    size_t len = sizeof(media) - 1;
    return type != NULL && strncasecmp(type, media, len) == 0 && (type[len] == '\0' || strchr("; \t", type[len]));
}

/* Leaves the stream function on top. */
static int reply_stream(lua_State *L, struct task *task, int index)
{
    if (lua_type(L, index) != LUA_TFUNCTION) {
        task_fail_internal(task, "reply: 'stream' must be a function, not a %s", luaL_typename(L, index));
        return 0;
    }
    if (!default_header(task, "Content-Type", "application/octet-stream"))
        return 0;
    bool sse = is_sse(&task->response);
    if (sse && (!default_header(task, "Cache-Control", "no-cache") ||
                !default_header(task, "X-Accel-Buffering", "no"))) /* or nginx keeps the events back */
        return 0;
    struct sink *sink = sink_new();
    if (sink == NULL) {
        task_fail_internal(task, "out of memory");
        return 0;
    }
    task->response.kind = RESPONSE_STREAM;
    task->response.sink = sink;
    out_begin(task, sink, sse);
    lua_pushvalue(L, index);
    return 1;
}

/* The table at index is a reply{}. */
static int make_full(lua_State *L, struct task *task, int index)
{
    static int (*const makers[])(lua_State *, struct task *, int) = {reply_json, reply_bytes, reply_file, reply_stream};
    int type = push_member(L, index, "status");
    if (type != LUA_TNIL) {
        int is_integer;
        lua_Integer status = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer || status < 200 || status > 599) { /* 1xx is no end of a request */
            task_fail_internal(task, "reply: 'status' must be an integer from 200 to 599");
            return 0;
        }
        task->response.status = (int)status;
    }
    lua_pop(L, 1);
    if (!set_headers(L, task, index))
        return 0;
    for (int i = 0; body_keys[i] != NULL; i++) {
        if (push_member(L, index, body_keys[i]) != LUA_TNIL)
            return makers[i](L, task, lua_gettop(L));
        lua_pop(L, 1);
    }
    return 0; /* headers only */
}

int reply_make(lua_State *L, struct task *task)
{
    int index = lua_gettop(L);
    response_init(&task->response);
    task->responded = true;
    task->response.kind = RESPONSE_BYTES;
    task->response.status = task->route->status;
    task->response.bytes.max = RESPONSE_BODY_MAX_BYTES;
    if (!lua_istable(L, index)) {
        task_fail_internal(task, "the handler returned a %s instead of a table; reply {json = …} takes what is none",
                           luaL_typename(L, index));
        return 0;
    }
    return mark_has(L, index, task->vm->reply_meta) ? make_full(L, task, index) : reply_json(L, task, index);
}
