/* The `string` library of scripts. Called by sandbox.c. */
#include "script/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>

static lua_CFunction real_rep;

/* Lua's own repeats nothing 2^60 times where the text is empty. */
static int string_rep(lua_State *L)
{
    size_t len, separator_len;
    luaL_checklstring(L, 1, &len);
    luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &separator_len);
    if (len + separator_len > 0)
        return real_rep(L);
    lua_pushliteral(L, "");
    return 1;
}

void sandbox_push_string(lua_State *L)
{
    static const char *const names[] = {
        "byte",     /* bounded by the stack */
        "char",     /* bounded by its arguments */
        "format",   /* widths have two digits at most; __tostring is Lua code: the hook sees it */
        "len",      /* reads */
        "lower",    /* linear */
        "pack",     /* linear */
        "packsize", /* linear */
        "reverse",  /* linear */
        "sub",      /* linear */
        "unpack",   /* linear */
        "upper",    /* linear */
        NULL,
    };
    static const luaL_Reg own[] = {
        {"find", sandbox_find}, /* with the matcher that looks at the budget, as the next three */
        {"gmatch", sandbox_gmatch},
        {"gsub", sandbox_gsub},
        {"match", sandbox_match},
        {"rep", string_rep}, /* its result is allocated first: bounded by memory */
        {NULL, NULL},
    };
    luaL_newlib(L, own);
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    for (const char *const *name = names; *name != NULL; name++) {
        lua_getfield(L, -1, *name);
        lua_setfield(L, -3, *name);
    }
    lua_getfield(L, -1, "rep");
    real_rep = lua_tocfunction(L, -1);
    lua_pop(L, 2);
}
