/* Source files of the tables: finding them, running them, and telling in which line something stands. Called by the
 * other load_*.c files. */
#include "script/load.h"

#include "script/budget.h"
#include "script/failure.h"
#include "script/sandbox.h"

#include <ctype.h>
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
    load_fault(loader, 1, "%s", text);
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
    loader->source.len = len;
    int status = sandbox_run(L, kept, len, chunk_name);
    lua_remove(L, -2);
    if (budget_expired()) {
        loader->stop = true;
        load_fault(loader, 1, "the tables take more than %u ms of computing to load", loader->vm->limits.load_cpu_ms);
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

static const char *line_start(const struct loader *loader, int line)
{
    const char *at = loader->source.text;
    while (line-- > 1 && at != NULL) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return at;
}

static int line_of(const struct loader *loader, const char *where)
{
    int line = 1;
    for (const char *at = loader->source.text; at < where; at++)
        line += *at == '\n';
    return line;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether `key =` stands right before `at`. */
static bool follows_key(const struct loader *loader, const char *at, const char *key)
{
    const char *start = loader->source.text;
    size_t len = strlen(key);
    while (at > start && isspace((unsigned char)at[-1]))
        at--;
    if (at == start || *--at != '=')
        return false;
    while (at > start && isspace((unsigned char)at[-1]))
        at--;
    return (size_t)(at - start) >= len && strncmp(at - len, key, len) == 0 &&
           (at - len == start || !is_word(at[-(ptrdiff_t)len - 1]));
}

int load_line_of_member(const struct loader *loader, const char *key, const char *text)
{
    size_t len = strlen(text);
    for (const char *at = loader->source.text; len > 0 && (at = strstr(at, text)) != NULL; at += len) {
        bool quoted = at > loader->source.text && (at[-1] == '"' || at[-1] == '\'') && at[len] == at[-1];
        if (quoted && follows_key(loader, at - 1, key))
            return line_of(loader, at);
    }
    return 0;
}

int load_line_of_key(const struct loader *loader, const char *key, int from)
{
    const char *at = line_start(loader, from);
    size_t len = strlen(key);
    while (at != NULL && len > 0 && (at = strstr(at, key)) != NULL) {
        bool whole = at == loader->source.text || !is_word(at[-1]);
        const char *after = at + len;
        after += strspn(after, "\"'] \t");
        if (whole && after[0] == '=' && after[1] != '=')
            return line_of(loader, at);
        at += len;
    }
    return 0;
}
