/* The `string` library of scripts. Called by sandbox.c. */
#include "script/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <string.h>

enum {
    REPEATED_MAX_BYTES = INT32_MAX,
    QUOTED_MAX_BYTES = 1024 * 1024,
    FORMAT_MAX_BYTES = 64 * 1024 * 1024,
    FORMAT_MAX_ITEMS = 10000
};

static lua_CFunction real_format;

/* Lua's own copies piece by piece, which takes long for short ones, and repeats nothing 2^60 times. */
static int string_rep(lua_State *L)
{
    size_t len, separator_len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer count = luaL_checkinteger(L, 2);
    const char *separator = luaL_optlstring(L, 3, "", &separator_len);
    size_t piece = len + separator_len;
    if (count <= 0 || piece == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (piece > (size_t)REPEATED_MAX_BYTES / (size_t)count)
        return luaL_error(L, "resulting string too large");
    size_t total = piece * (size_t)count - separator_len;
    luaL_Buffer out;
    char *bytes = luaL_buffinitsize(L, &out, total); /* bounded by memory */
    memcpy(bytes, text, len);
    if (count > 1)
        memcpy(bytes + len, separator, separator_len);
    for (size_t done = piece; done < total; done *= 2) /* what is there already, once more */
        memcpy(bytes + done, bytes, done < total - done ? done : total - done);
    luaL_pushresultsize(&out, total);
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
    lua_getfield(L, -1, "format");
    real_format = lua_tocfunction(L, -1);
    lua_pop(L, 2);
}
