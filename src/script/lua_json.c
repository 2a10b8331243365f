/* Lua values to JSON text, and value trees to Lua. Called by reply.c, out.c, abx.json and other bindings. */
#include "base/json.h"
#include "script/bindings.h"
#include "script/budget.h"
#include "script/marks.h"
#include "script/task_state.h"

#include <lauxlib.h>
#include <string.h>

enum { SORTED_KEYS_MAX = 48, RAW_MARGIN_BYTES = 4096 };

static const char null_key; /* its address is json.null */

void lua_push_null(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&null_key);
}

bool lua_is_null(lua_State *L, int index)
{
    return lua_islightuserdata(L, index) && lua_touserdata(L, index) == &null_key;
}

void lua_mark_array(lua_State *L, int index)
{
    mark_set(L, index, vm_of(L)->array_meta);
}

bool lua_is_array(lua_State *L, int index)
{
    if (!lua_istable(L, index))
        return false;
    lua_pushvalue(L, index);
    lua_thaw(L, -1);
    bool is = mark_has(L, -1, vm_of(L)->array_meta) || lua_rawlen(L, -1) > 0;
    lua_pop(L, 1);
    return is;
}

/* ---- value tree to Lua ---- */

static void push_value(lua_State *L, struct vm *vm, const struct value *value)
{
    luaL_checkstack(L, 4, "value nested too deep");
    switch (value->type) {
    case VALUE_NULL:
        lua_push_null(L);
        break;
    case VALUE_BOOL:
        lua_pushboolean(L, value->as.boolean);
        break;
    case VALUE_INT:
        lua_pushinteger(L, value->as.integer);
        break;
    case VALUE_DOUBLE:
        lua_pushnumber(L, value->as.number);
        break;
    case VALUE_STRING:
        lua_pushlstring(L, value->as.string.text, value->as.string.len);
        break;
    case VALUE_ARRAY:
        lua_createtable(L, value->as.array.count < INT32_MAX ? (int)value->as.array.count : 0, 0);
        for (size_t i = 0; i < value->as.array.count; i++) {
            push_value(L, vm, &value->as.array.items[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        mark_set(L, -1, vm->array_meta);
        break;
    case VALUE_OBJECT:
        lua_createtable(L, 0, value->as.object.count < INT32_MAX ? (int)value->as.object.count : 0);
        for (size_t i = 0; i < value->as.object.count; i++) {
            const struct value_member *member = &value->as.object.members[i];
            lua_pushlstring(L, member->name, member->name_len);
            push_value(L, vm, &member->value);
            lua_rawset(L, -3);
        }
        break;
    }
}

void lua_push_value(lua_State *L, const struct value *value)
{
    push_value(L, vm_of(L), value);
}

/* ---- Lua to JSON text ---- */

struct writer {
    lua_State *L;
    struct vm *vm;
    struct buf *out;
    struct err *err;
};

static int write_value(struct writer *w, int index, int depth);

static int full(struct writer *w)
{
    return err_set(w->err, ERR_INTERNAL, "the JSON text would be over %zu bytes", w->out->max);
}

static int put(struct writer *w, const char *text, size_t len)
{
    return buf_append_few(w->out, text, len) == 0 ? 0 : full(w);
}

static int no_object(struct writer *w)
{
    return err_set(w->err, ERR_INTERNAL, "a table has keys that are no strings and is no list either");
}

static int write_array(struct writer *w, int index, lua_Integer count, int depth)
{
    if (put(w, "[", 1) != 0)
        return -1;
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1 && put(w, ",", 1) != 0)
            return -1;
        lua_rawgeti(w->L, index, i);
        int status = write_value(w, lua_gettop(w->L), depth);
        lua_pop(w->L, 1);
        if (status != 0)
            return -1;
    }
    return put(w, "]", 1);
}

struct key {
    const char *text; /* the table keeps it alive */
    size_t len;
    int slot; /* of its value on the stack */
};

static bool comes_before(const struct key *a, const struct key *b)
{
    int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
    return order != 0 ? order < 0 : a->len < b->len;
}

/* The order of Lua's tables changes from run to run; that of answers should not. Leaves the values on the stack. 1: too
 * many keys to be worth it. */
static int sorted_keys(struct writer *w, int index, struct key keys[SORTED_KEYS_MAX], size_t *out_count)
{
    lua_State *L = w->L;
    int base = lua_gettop(L);
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        bool named = lua_type(L, -2) == LUA_TSTRING;
        if (!named || count == SORTED_KEYS_MAX) {
            lua_settop(L, base);
            return named ? 1 : no_object(w);
        }
        struct key key = {.slot = base + 1 + (int)count};
        key.text = lua_tolstring(L, -2, &key.len);
        lua_insert(L, -2); /* the value stays below the key that lua_next goes on from */
        size_t at = count++;
        for (; at > 0 && comes_before(&key, &keys[at - 1]); at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    *out_count = count;
    return 0;
}

static int write_member(struct writer *w, const struct key *key, bool first, int depth)
{
    if (!first && put(w, ",", 1) != 0)
        return -1;
    if (json_write_string(w->out, key->text, key->len) != 0 || put(w, ":", 1) != 0)
        return full(w);
    return write_value(w, key->slot, depth);
}

static int write_as_it_comes(struct writer *w, int index, int depth)
{
    lua_State *L = w->L;
    bool first = true;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), first = false) {
        struct key key = {.slot = lua_gettop(L)};
        if (lua_type(L, -2) == LUA_TSTRING)
            key.text = lua_tolstring(L, -2, &key.len);
        if ((key.text ? write_member(w, &key, first, depth) : no_object(w)) != 0)
            return -1;
    }
    return 0;
}

static int write_members(struct writer *w, int index, int depth)
{
    struct key keys[SORTED_KEYS_MAX];
    size_t count = 0;
    int unsorted = sorted_keys(w, index, keys, &count);
    if (unsorted != 0)
        return unsorted < 0 ? -1 : write_as_it_comes(w, index, depth);
    /* Large texts come side by side (stdout and stderr): growing for one after the other would copy the first again. */
    size_t raw_len = 0;
    for (size_t i = 0; i < count; i++)
        if (lua_type(w->L, keys[i].slot) == LUA_TUSERDATA)
            raw_len += raw_json_len(w->L, keys[i].slot);
    if (raw_len > 0 && buf_reserve(w->out, raw_len + RAW_MARGIN_BYTES) != 0)
        return full(w);
    for (size_t i = 0; i < count; i++)
        if (write_member(w, &keys[i], i == 0, depth) != 0)
            return -1;
    return 0;
}

static int write_object(struct writer *w, int index, int depth)
{
    int top = lua_gettop(w->L);
    if (put(w, "{", 1) != 0 || write_members(w, index, depth) != 0 || put(w, "}", 1) != 0)
        return -1;
    lua_settop(w->L, top);
    return 0;
}

/* Whether all keys are integers from 1 to count; only then the table is a list. */
static bool only_list_keys(lua_State *L, int index, lua_Integer count)
{
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 || lua_tointeger(L, -2) > count) {
            lua_pop(L, 2);
            return false;
        }
    }
    return true;
}

static int write_table(struct writer *w, int index, int depth)
{
    if (depth > JSON_DEPTH_MAX || !lua_checkstack(w->L, SORTED_KEYS_MAX + 8))
        return err_set(w->err, ERR_INTERNAL, "a table contains itself, or is nested over %d deep", JSON_DEPTH_MAX);
    lua_thaw(w->L, index);
    lua_Integer count = (lua_Integer)lua_rawlen(w->L, index);
    bool marked = mark_has(w->L, index, w->vm->array_meta);
    if (!marked && count == 0)
        return write_object(w, index, depth);
    if (!only_list_keys(w->L, index, count))
        return err_set(w->err, ERR_INTERNAL, "a list has keys that do not belong there, or holes");
    return write_array(w, index, count, depth);
}

static int write_value(struct writer *w, int index, int depth)
{
    lua_State *L = w->L;
    const char *text;
    size_t len;
    if (budget_expired()) /* a table may be long, and shared tables make a short one a very long text */
        return err_set(w->err, ERR_HANDLER_TIMEOUT, "the time for computing is over");
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        return put(w, "null", 4);
    case LUA_TBOOLEAN:
        return lua_toboolean(L, index) ? put(w, "true", 4) : put(w, "false", 5);
    case LUA_TNUMBER:
        if (lua_isinteger(L, index) ? json_write_int(w->out, lua_tointeger(L, index)) != 0
                                    : json_write_double(w->out, lua_tonumber(L, index)) != 0)
            return full(w);
        return 0;
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &len);
        return json_write_string(w->out, text, len) == 0 ? 0 : full(w);
    case LUA_TTABLE:
        return write_table(w, index, depth + 1);
    default:
        if (lua_is_null(L, index))
            return put(w, "null", 4);
        if (raw_json_is(L, index))
            return raw_json_append(L, index, w->out) == 0 ? 0 : full(w);
        return err_set(w->err, ERR_INTERNAL, "a %s is not JSON", luaL_typename(L, index));
    }
}

int lua_write_json(lua_State *L, int index, struct buf *out, struct err *err)
{
    struct writer writer = {.L = L, .vm = vm_of(L), .out = out, .err = err};
    int top = lua_gettop(L);
    if (!lua_checkstack(L, 8))
        return err_set(err, ERR_INTERNAL, "out of memory");
    int status = write_value(&writer, lua_absindex(L, index), 0);
    lua_settop(L, top); /* a failure leaves what it was at */
    return status;
}
