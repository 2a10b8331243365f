/* Schemas of parameters and answers while tables load. Called by load_routes.c and load_commands.c. */
#include "script/load.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* where is "params.cwd" or "params.env[]": the fault is shown where that parameter is written. */
static void on_fault(void *ctx, const char *where, const char *text)
{
    char outer[16], name[64];
    const char *start = strchr(where, '.');
    snprintf(outer, sizeof(outer), "%.*s", (int)strcspn(where, ".["), where);
    snprintf(name, sizeof(name), "%.*s", start ? (int)strcspn(start + 1, ".[") : 0, start ? start + 1 : "");
    load_fault_in(ctx, outer, name, "%s %s", where, text);
}

void load_params(struct loader *loader, int index, struct schema *out)
{
    struct schema_reader reader = {
        .L = loader->L, .arena = &loader->generation->arena, .on_fault = on_fault, .ctx = loader};
    schema_read_fields(&reader, index, "params", out);
}

void load_returns(struct loader *loader, int index)
{
    lua_State *L = loader->L;
    struct schema unused;
    struct schema_reader reader = {
        .L = L, .arena = &loader->scratch, .answers = true, .on_fault = on_fault, .ctx = loader};
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
            load_fault_at(loader, "returns", "'returns' must be a schema, or schemas by status");
            continue;
        }
        snprintf(where, sizeof(where), "returns[%d]", (int)lua_tointeger(L, -2));
        schema_read(&reader, lua_gettop(L), where, &unused);
    }
}
