/* Schemas of parameters and answers while tables load. Called by load_routes.c and load_commands.c. */
#include "script/load.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

struct schema_faults {
    struct loader *loader;
    int line;
    const char *what;
};

/* where is "params.cwd" or "params.env[]": the fault is shown where that parameter is written. */
static void on_fault(void *ctx, const char *where, const char *text)
{
    struct schema_faults *faults = ctx;
    char name[64];
    const char *start = strchr(where, '.');
    snprintf(name, sizeof(name), "%.*s", start ? (int)strcspn(start + 1, ".[") : 0, start ? start + 1 : "");
    int line = load_line_of_key(faults->loader, name, faults->line);
    load_fault(faults->loader, line ? line : faults->line, "%s: %s %s", faults->what, where, text);
}

void load_params(struct loader *loader, int index, int line, const char *what, struct schema *out)
{
    struct schema_faults faults = {.loader = loader, .line = line, .what = what};
    struct schema_reader reader = {
        .L = loader->L, .arena = &loader->generation->arena, .on_fault = on_fault, .ctx = &faults};
    schema_read_fields(&reader, index, "params", out);
}

void load_returns(struct loader *loader, int index, int line, const char *what)
{
    lua_State *L = loader->L;
    struct schema unused;
    struct schema_faults faults = {.loader = loader, .line = line, .what = what};
    struct schema_reader reader = {
        .L = L, .arena = &loader->scratch, .answers = true, .on_fault = on_fault, .ctx = &faults};
    index = lua_absindex(L, index);
    int type = load_push(L, index, "type");
    lua_pop(L, 1);
    if (type == LUA_TSTRING) {
        schema_read(&reader, index, "returns", &unused);
        return;
    }
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        char where[40];
        if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 200 || lua_tointeger(L, -2) > 599) {
            load_fault(loader, line, "%s: 'returns' must be a schema, or schemas by status", what);
            continue;
        }
        snprintf(where, sizeof(where), "returns[%d]", (int)lua_tointeger(L, -2));
        schema_read(&reader, lua_gettop(L), where, &unused);
    }
}
