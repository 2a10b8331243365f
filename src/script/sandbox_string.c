/* The `string` library of scripts. Called by sandbox.c. */
#include "script/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

enum { QUOTED_MAX_BYTES = 1024 * 1024, FORMAT_MAX_BYTES = 64 * 1024 * 1024, FORMAT_MAX_ITEMS = 10000 };

static lua_CFunction real_rep, real_format;

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

/* What Lua's own goes through byte by byte is bounded first: texts for %q, which become up to four times as long, and
 * those for %s with a width or precision, which it looks through for NUL bytes however little of them it takes. A
 * number takes it some 15 us at worst. */
static int string_format(lua_State *L)
{
    size_t len, quoted = 0, scanned = 0;
    const char *at = luaL_checklstring(L, 1, &len);
    int arg = 1;
    for (const char *end = at + len; at < end; at++) {
        if (*at != '%')
            continue;
        const char *start = ++at;
        at += strspn(at, "-+ #0123456789.");
        if (at < end && *at == '%')
            continue;
        bool text = lua_type(L, ++arg) == LUA_TSTRING;
        if (text && *at == 'q')
            quoted += lua_rawlen(L, arg);
        else if (text && *at == 's' && at > start)
            scanned += lua_rawlen(L, arg);
    }
    if (quoted > QUOTED_MAX_BYTES || scanned > FORMAT_MAX_BYTES || arg > FORMAT_MAX_ITEMS)
        return luaL_error(L, "too much to format");
    return real_format(L);
}

void sandbox_push_string(lua_State *L)
{
    static const char *const names[] = {
        "byte",     /* bounded by the stack */
        "char",     /* bounded by its arguments */
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
        {"format", string_format}, /* widths have two digits at most; __tostring is Lua code: the hook sees it */
        {"find", sandbox_find},    /* with the matcher that looks at the budget, as the next three */
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
    lua_getfield(L, -2, "format");
    real_format = lua_tocfunction(L, -1);
    lua_pop(L, 3);
}
