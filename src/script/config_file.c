/* Reads config/server.lua into plain values; see the header. Called by server/config. */
#include "script/config_file.h"

#include "script/vm.h"

#include <ctype.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONFIG_DEPTH_MAX = 8,
    CONFIG_KEY_MAX = 200,
    CONFIG_STEPS_MAX = 1000000,
    CONFIG_MEMORY_MAX_BYTES = 8 * 1024 * 1024
};

static void *config_alloc(void *used_ptr, void *block, size_t old_size, size_t new_size)
{
    size_t *used = used_ptr;
    size_t had = block ? old_size : 0;
    if (new_size == 0) {
        free(block);
        *used -= had;
        return NULL;
    }
    if (new_size > had && *used + (new_size - had) > CONFIG_MEMORY_MAX_BYTES)
        return NULL;
    void *moved = realloc(block, new_size);
    if (moved)
        *used += new_size - had;
    return moved;
}

/* Messages of Lua begin with it and the line; add_lua_error takes both off again. */
static const char chunk_name[] = "=config";

static void on_too_many_steps(lua_State *L, lua_Debug *where)
{
    lua_getinfo(L, "l", where);
    luaL_error(L, "config:%d: the configuration does not come to an end", where->currentline);
}

struct reading {
    struct config_file *file;
    struct arena *arena;
    struct faults *faults;
};

static bool copy_value(lua_State *L, int index, struct reading *reading, const char *key, int depth, struct value *out);

static bool fault(struct reading *reading, const char *key, const char *fmt, const char *detail)
{
    char text[128];
    snprintf(text, sizeof(text), fmt, detail);
    faults_add(reading->faults, reading->file->path, config_file_line(reading->file, key), "%s%s%s", key,
               *key ? " " : "", text);
    return false;
}

static void *take(lua_State *L, struct reading *reading, size_t size)
{
    void *block = arena_alloc(reading->arena, size ? size : 1);
    if (!block)
        luaL_error(L, "the configuration is too large");
    return block;
}

static const char *take_text(lua_State *L, struct reading *reading, int index, size_t *out_len)
{
    const char *text = lua_tolstring(L, index, out_len);
    char *copy = arena_strndup(reading->arena, text, *out_len);
    if (!copy)
        luaL_error(L, "the configuration is too large");
    return copy;
}

static bool copy_list(lua_State *L, int index, struct reading *reading, const char *key, int depth, struct value *out)
{
    bool good = true;
    out->type = VALUE_ARRAY;
    out->as.array.count = lua_rawlen(L, index);
    out->as.array.items = take(L, reading, out->as.array.count * sizeof(struct value));
    for (size_t i = 0; i < out->as.array.count && good; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        good = copy_value(L, lua_gettop(L), reading, key, depth + 1, &out->as.array.items[i]);
        lua_pop(L, 1);
    }
    return good;
}

/* A faulty member is left out, and the others are kept, so that their faults are told as well. */
static bool copy_table(lua_State *L, int index, struct reading *reading, const char *key, int depth, struct value *out)
{
    size_t length = lua_rawlen(L, index), count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (++count > length && length > 0)
            return fault(reading, key, "must be either a list or a table of names%s", "");
        if (length == 0 && lua_type(L, -2) != LUA_TSTRING)
            return fault(reading, key, "has a key that is a %s, not a name", luaL_typename(L, -2));
    }
    if (length > 0)
        return copy_list(L, index, reading, key, depth, out);
    out->type = VALUE_OBJECT;
    out->as.object.count = 0;
    out->as.object.members = take(L, reading, count * sizeof(struct value_member));
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        struct value_member *member = &out->as.object.members[out->as.object.count];
        char full[CONFIG_KEY_MAX];
        member->name = take_text(L, reading, -2, &member->name_len);
        snprintf(full, sizeof(full), "%s%s%s", key, *key ? "." : "", member->name);
        out->as.object.count += copy_value(L, lua_gettop(L), reading, full, depth + 1, &member->value);
    }
    return true;
}

/* False: a fault was added. */
static bool copy_value(lua_State *L, int index, struct reading *reading, const char *key, int depth, struct value *out)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, 4, "nested too deep");
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        out->type = VALUE_BOOL;
        out->as.boolean = lua_toboolean(L, index);
        return true;
    case LUA_TNUMBER:
        out->type = lua_isinteger(L, index) ? VALUE_INT : VALUE_DOUBLE;
        if (out->type == VALUE_INT)
            out->as.integer = lua_tointeger(L, index);
        else
            out->as.number = lua_tonumber(L, index);
        return true;
    case LUA_TSTRING:
        out->type = VALUE_STRING;
        out->as.string.text = take_text(L, reading, index, &out->as.string.len);
        return true;
    case LUA_TTABLE: {
        if (depth >= CONFIG_DEPTH_MAX)
            return fault(reading, key, "is nested too deep%s", "");
        bool good = copy_table(L, index, reading, key, depth, out);
        lua_settop(L, top); /* a walk that ended early leaves its key and value */
        return good;
    }
    default:
        return fault(reading, key, "is a %s; only text, numbers, booleans and tables are allowed",
                     luaL_typename(L, index));
    }
}

/* Runs protected: everything that Lua raises ends here as a message. */
static int read_protected(lua_State *L)
{
    struct reading *reading = lua_touserdata(L, 1);
    if (luaL_loadbufferx(L, reading->file->text, reading->file->len, chunk_name, "t") != LUA_OK)
        return lua_error(L);
    /* No globals at all: a configuration states values, it does not compute them from the outside world. */
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "config:1: must return a table");
    if (lua_rawlen(L, -1) > 0)
        return luaL_error(L, "config:1: must return a table of names");
    lua_pushboolean(L, copy_value(L, lua_gettop(L), reading, "", 0, &reading->file->table));
    return 1;
}

static void add_lua_error(struct reading *reading, const char *text)
{
    char *rest = NULL;
    long line = strncmp(text, "config:", 7) == 0 ? strtol(text + 7, &rest, 10) : 0;
    if (line > 0 && strncmp(rest, ": ", 2) == 0)
        faults_add(reading->faults, reading->file->path, (int)line, "%s", rest + 2);
    else
        faults_add(reading->faults, reading->file->path, 0, "%s", text);
}

int config_file_read(const char *path, struct arena *arena, struct config_file *out, struct faults *faults)
{
    struct err err;
    size_t used = 0;
    *out = (struct config_file){.path = path};
    out->text = vm_read_source(path, &out->len, &err);
    if (!out->text) {
        faults_add(faults, path, 0, "%s", err.text);
        return -1;
    }
    lua_State *L = lua_newstate(config_alloc, &used);
    if (!L) {
        faults_add(faults, path, 0, "not enough memory to read it");
        return -1;
    }
    struct reading reading = {out, arena, faults};
    lua_sethook(L, on_too_many_steps, LUA_MASKCOUNT, CONFIG_STEPS_MAX);
    lua_pushcfunction(L, read_protected);
    lua_pushlightuserdata(L, &reading);
    bool good = lua_pcall(L, 1, 1, 0) == LUA_OK;
    if (good)
        good = lua_toboolean(L, -1);
    else
        add_lua_error(&reading, lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "raises an error");
    lua_close(L);
    return good ? 0 : -1;
}

void config_file_deinit(struct config_file *file)
{
    if (file->text)
        explicit_bzero(file->text, file->len); /* a token may stand in it */
    free(file->text);
    file->text = NULL;
}

/* Whether `name =` stands at `at`, perhaps as ["name"] =. */
static bool is_key(const char *at, const char *name, size_t len)
{
    if (strncmp(at, name, len) != 0)
        return false;
    at += len;
    at += strspn(at, "\"'] \t");
    return at[0] == '=' && at[1] != '=';
}

/* Behind a comment or a string that begins at `at`; else at + 1. */
static const char *next_piece(const char *at)
{
    if (strncmp(at, "--[[", 4) == 0) {
        const char *end = strstr(at, "]]");
        return end ? end + 2 : at + strlen(at);
    }
    if (strncmp(at, "--", 2) == 0)
        return at + strcspn(at, "\n");
    if (*at != '"' && *at != '\'')
        return at + 1;
    const char *end = at + 1;
    while (*end && *end != *at && *end != '\n')
        end += *end == '\\' && end[1] ? 2 : 1;
    return *end == *at ? end + 1 : end;
}

int config_file_line(const struct config_file *file, const char *key)
{
    int line = 1, found = 0, depth = 0, wanted = 1;
    const char *next;
    bool in_word = false;
    for (const char *at = file->text; *at && depth >= 0; at = next) {
        size_t len = strcspn(key, ".");
        next = next_piece(at);
        depth += (*at == '{') - (*at == '}');
        if (depth < wanted - 1)
            break; /* the table that should hold it has ended */
        if (depth == wanted && !in_word && is_key(at + (*at == '"' || *at == '\''), key, len)) {
            found = line;
            wanted++;
            key += len;
            if (!*key++)
                break;
        }
        in_word = isalnum((unsigned char)*at) || *at == '_';
        for (; at < next; at++)
            line += *at == '\n';
    }
    return found;
}
