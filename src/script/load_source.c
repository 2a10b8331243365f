/* Source files of the tables: finding them and running them. Called by the other load_*.c files. */
#include "script/load.h"

#include "script/budget.h"
#include "script/failure.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void load_fault(struct loader *loader, int line, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    faults_add(loader->faults, loader->source.display, line, "%s", text);
}

/* The message handler of a chunk: keeps the place of an error whose value does not tell it. Those of tables, nil, and
 * the end of the time for loading do not. */
static int on_error(lua_State *L)
{
    struct loader *loader = lua_touserdata(L, lua_upvalueindex(1));
    lua_Debug ar;
    loader->raised.line = 0;
    for (int level = 1; loader->raised.line <= 0 && lua_getstack(L, level, &ar); level++) {
        if (lua_getinfo(L, "Sl", &ar) == 0 || ar.currentline <= 0 || ar.source[0] != '@')
            continue;
        loader->raised.line = ar.currentline;
        snprintf(loader->raised.file, sizeof(loader->raised.file), "%s", ar.source + 1);
    }
    return 1;
}

/* As sandbox_run, with our message handler. */
static int run_chunk(struct loader *loader, const char *source, size_t len, const char *chunk_name)
{
    lua_State *L = loader->L;
    loader->raised.line = 0;
    lua_pushlightuserdata(L, loader);
    lua_pushcclosure(L, on_error, 1);
    int handler = lua_gettop(L);
    int status = luaL_loadbufferx(L, source, len, chunk_name, "t");
    if (status == LUA_OK) {
        loader->vm->requiring++;
        status = lua_pcall(L, 0, 1, handler);
        loader->vm->requiring--;
    }
    lua_remove(L, handler);
    return status;
}

/* A fault where the last error was raised. */
static void add_raised(struct loader *loader, const char *text)
{
    if (loader->raised.line > 0)
        faults_add(loader->faults, loader->raised.file, loader->raised.line, "%s", text);
    else
        load_fault(loader, 1, "%s", text);
}

/* Lua's messages begin with "file:line: ", maybe of a module that the file requires. */
static void add_lua_error(struct loader *loader)
{
    lua_State *L = loader->L;
    struct err err;
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error value that is no string";
    if (lua_type(L, -1) == LUA_TTABLE && failure_is(L, -1)) {
        failure_to_err(L, -1, &err);
        text = err.text;
    }
    for (const char *colon = strchr(text, ':'); colon != NULL; colon = strchr(colon + 1, ':')) {
        char *rest;
        long line = strtol(colon + 1, &rest, 10);
        if (rest > colon + 1 && rest[0] == ':' && rest[1] == ' ') {
            char file[256];
            snprintf(file, sizeof(file), "%.*s", (int)(colon - text), text);
            faults_add(loader->faults, file, (int)line, "%s", rest + 2);
            return;
        }
    }
    add_raised(loader, text);
}

static void add_out_of_time(struct loader *loader)
{
    char text[100];
    snprintf(text, sizeof(text), "the tables take more than %u ms of computing to load",
             loader->vm->limits.load_cpu_ms);
    add_raised(loader, text);
}

bool load_chunk(struct loader *loader, const char *path)
{
    lua_State *L = loader->L;
    struct err err;
    size_t len;
    loader->source = (struct source){.display = vm_display(loader->vm, path), .text = ""};
    if (loader->stop)
        return false;
    const char *chunk_name = lua_pushfstring(L, "@%s", loader->source.display);
    char *text = vm_read_source(path, &len, &err);
    if (text == NULL) {
        lua_pop(L, 1);
        load_fault(loader, 0, "%s", err.text);
        return false;
    }
    char *kept = arena_strndup(&loader->scratch, text, len);
    free(text);
    if (kept == NULL) {
        lua_pop(L, 1);
        load_fault(loader, 0, "out of memory");
        return false;
    }
    loader->source.text = kept;
    load_subject_file(loader, "file");
    int status = run_chunk(loader, kept, len, chunk_name);
    lua_remove(L, -2);
    if (budget_expired()) {
        loader->stop = true;
        add_out_of_time(loader);
    } else if (status == LUA_ERRMEM) {
        load_fault(loader, 1, "out of memory: all tables together may take %zu bytes", loader->vm->ceiling_bytes);
    } else if (status != LUA_OK) {
        add_lua_error(loader);
    } else if (!lua_istable(L, -1)) {
        load_fault(loader, 1, "must return a table, not %s",
                   lua_isnil(L, -1) ? "nothing" : lua_pushfstring(L, "a %s", luaL_typename(L, -1)));
    } else {
        return true;
    }
    lua_settop(L, 1); /* load_all keeps one value */
    return false;
}

static int only_lua(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 4 && strcmp(entry->d_name + len - 4, ".lua") == 0;
}

const char *load_path(struct loader *loader, const char *folder, const char *name)
{
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s/%s%s%s%s", loader->vm->lua_dir, folder, name ? "/" : "",
                       name ? name : "", name ? ".lua" : "");
    return len < (int)sizeof(path) ? arena_strndup(&loader->scratch, path, (size_t)len) : NULL;
}

char **load_names(struct loader *loader, const char *folder)
{
    struct dirent **entries;
    const char *path = load_path(loader, folder, NULL);
    int count = path ? scandir(path, &entries, only_lua, alphasort) : -1;
    if (count < 0) {
        faults_add(loader->faults, path ? vm_display(loader->vm, path) : folder, 0, "%s", strerror(errno));
        count = 0;
        entries = NULL;
    }
    char **names = arena_alloc(&loader->scratch, ((size_t)count + 1) * sizeof(*names));
    size_t kept = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (names != NULL && (names[kept] = arena_strndup(&loader->scratch, name, strlen(name) - 4)) != NULL)
            kept++;
        free(entries[i]);
    }
    free(entries);
    return names;
}
