/* string.find, match, gmatch and gsub of scripts, over pattern.c. Called by sandbox_string.c. */
#include "script/sandbox.h"

#include "script/pattern.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

/* A position as Lua counts it, negative from the end, as an offset; len + 1 where it lies behind the end. */
static size_t offset_arg(lua_State *L, int arg, size_t len)
{
    lua_Integer position = luaL_optinteger(L, arg, 1);
    if (position > 0)
        return (lua_Unsigned)position > len ? len + (position > (lua_Integer)len + 1) : (size_t)position - 1;
    if (position == 0 || position < -(lua_Integer)len)
        return 0;
    return len - (size_t)-position;
}

static int find(lua_State *L, bool positions)
{
    size_t len, pattern_len;
    const char *subject = luaL_checklstring(L, 1, &len);
    const char *text = luaL_checklstring(L, 2, &pattern_len);
    size_t first = offset_arg(L, 3, len);
    if (first > len) {
        lua_pushnil(L);
        return 1;
    }
    if (positions && (lua_toboolean(L, 4) || !pattern_has_specials(text, pattern_len))) {
        const char *found = memmem(subject + first, len - first, text, pattern_len);
        if (found == NULL) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushinteger(L, found - subject + 1);
        lua_pushinteger(L, found - subject + (lua_Integer)pattern_len);
        return 2;
    }
    struct pattern pattern;
    pattern_init(&pattern, L, subject, len, text, pattern_len);
    bool anchored = pattern_len > 0 && text[0] == '^';
    for (const char *at = subject + first; at <= pattern.subject_end; at++) {
        const char *end = pattern_match_at(&pattern, at, text + anchored);
        if (end != NULL) {
            if (!positions)
                return pattern_push_captures(&pattern, at, end, true);
            lua_pushinteger(L, at - subject + 1);
            lua_pushinteger(L, end - subject);
            return pattern_push_captures(&pattern, at, end, false) + 2;
        }
        if (anchored)
            break;
    }
    lua_pushnil(L);
    return 1;
}

int sandbox_find(lua_State *L)
{
    return find(L, true);
}

int sandbox_match(lua_State *L)
{
    return find(L, false);
}

/* Upvalues: subject, pattern, where to go on, where the last match ended (-1: nowhere). */
static int gmatch_next(lua_State *L)
{
    size_t len, pattern_len;
    const char *subject = lua_tolstring(L, lua_upvalueindex(1), &len);
    const char *text = lua_tolstring(L, lua_upvalueindex(2), &pattern_len);
    lua_Integer first = lua_tointeger(L, lua_upvalueindex(3));
    lua_Integer last_end = lua_tointeger(L, lua_upvalueindex(4));
    struct pattern pattern;
    pattern_init(&pattern, L, subject, len, text, pattern_len);
    for (; first <= (lua_Integer)len; first++) {
        const char *end = pattern_match_at(&pattern, subject + first, text);
        if (end == NULL || end - subject == last_end)
            continue;
        lua_pushinteger(L, end - subject);
        lua_copy(L, -1, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return pattern_push_captures(&pattern, subject + first, end, true);
    }
    return 0;
}

int sandbox_gmatch(lua_State *L)
{
    size_t len;
    luaL_checklstring(L, 1, &len);
    luaL_checkstring(L, 2);
    size_t first = offset_arg(L, 3, len);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)first);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, gmatch_next, 4);
    return 1;
}

/* A replacement text with its %0 to %9 and %%. */
static void add_template(struct pattern *pattern, luaL_Buffer *out, const char *from, const char *end)
{
    lua_State *L = pattern->L;
    size_t len;
    const char *text = lua_tolstring(L, 3, &len);
    for (const char *limit = text + len; text < limit; text++) {
        pattern_work(pattern, 1); /* a million times %1 may add nothing */
        const char *percent = memchr(text, '%', (size_t)(limit - text));
        luaL_addlstring(out, text, (size_t)((percent ? percent : limit) - text));
        if (percent == NULL)
            return;
        text = percent + 1;
        if (text < limit && *text == '%') {
            luaL_addchar(out, '%');
        } else if (text < limit && *text == '0') {
            luaL_addlstring(out, from, (size_t)(end - from));
        } else if (text < limit && isdigit((unsigned char)*text)) {
            pattern_push_capture(pattern, *text - '1', from, end);
            luaL_tolstring(L, -1, NULL); /* a position becomes text */
            lua_remove(L, -2);
            luaL_addvalue(out);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
}

/* Adds what stands for one match; whether that is something new. */
static bool add_replacement(struct pattern *pattern, luaL_Buffer *out, const char *from, const char *end, int type)
{
    lua_State *L = pattern->L;
    if (type != LUA_TSTRING && type != LUA_TNUMBER)
        pattern_work(pattern, 64); /* what is called may be C, which no hook sees */
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, pattern_push_captures(pattern, from, end, true), 1);
    } else if (type == LUA_TTABLE) {
        pattern_push_capture(pattern, 0, from, end);
        lua_gettable(L, 3);
    } else {
        add_template(pattern, out, from, end);
        return true;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(out, from, (size_t)(end - from));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(out);
    return true;
}

int sandbox_gsub(lua_State *L)
{
    size_t len, pattern_len;
    const char *subject = luaL_checklstring(L, 1, &len);
    const char *text = luaL_checklstring(L, 2, &pattern_len);
    int type = lua_type(L, 3);
    luaL_argexpected(L, type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                     "string/function/table");
    lua_Integer max = luaL_optinteger(L, 4, (lua_Integer)len + 1), count = 0;
    bool anchored = pattern_len > 0 && text[0] == '^', changed = false;
    struct pattern pattern;
    pattern_init(&pattern, L, subject, len, text, pattern_len);
    const char *at = subject, *last_end = NULL;
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    while (count < max) {
        const char *end = pattern_match_at(&pattern, at, text + anchored);
        if (end != NULL && end != last_end) {
            count++;
            changed |= add_replacement(&pattern, &out, at, end, type);
            at = last_end = end;
        } else if (at < pattern.subject_end) {
            luaL_addchar(&out, *at++);
        } else {
            break;
        }
        if (anchored)
            break;
    }
    if (!changed) {
        lua_pushvalue(L, 1);
    } else {
        luaL_addlstring(&out, at, (size_t)(pattern.subject_end - at));
        luaL_pushresult(&out);
    }
    lua_pushinteger(L, count);
    return 2;
}
