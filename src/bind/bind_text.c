/* abx.text: base64, UTF-8, and text without its secrets. Called by scripts. */
#include "base/base64.h"
#include "base/utf8.h"
#include "bind/bind.h"
#include "prim/mask.h"
#include "script/bindings.h"

#include <lauxlib.h>

enum { MASKED_MAX_BYTES = 1024 * 1024 };

/* Pushes what is in the box at `index`, and empties it. */
static void push_and_free(lua_State *L, struct buf *buf)
{
    lua_pushlstring(L, buf->len ? buf->data : "", buf->len);
    buf_deinit(buf);
}

/* text.base64_encode(bytes) -> text */
static int bind_text_base64_encode(lua_State *L)
{
    size_t len;
    const char *bytes = luaL_checklstring(L, 1, &len);
    struct buf *out = lua_push_buf(L, base64_encoded_len(len));
    if (base64_encode(out, bytes, len) != 0)
        return luaL_error(L, "out of memory");
    push_and_free(L, out);
    return 1;
}

/* text.base64_decode(text) -> bytes | nil, code, message */
static int bind_text_base64_decode(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    struct buf *out = lua_push_buf(L, len);
    if (base64_decode(out, text, len) != 0) {
        struct err err;
        err_set(&err, ERR_INVALID_REQUEST, "not base64 (RFC 4648, with padding and without white space)");
        return lua_push_err(L, &err);
    }
    push_and_free(L, out);
    return 1;
}

/* text.utf8_scrub(bytes) -> text, lossy */
static int bind_text_utf8_scrub(lua_State *L)
{
    size_t len;
    bool lossy = false;
    const char *bytes = luaL_checklstring(L, 1, &len);
    if (utf8_valid(bytes, len)) {
        lua_settop(L, 1);
    } else {
        struct buf *out = lua_push_buf(L, 3 * len); /* U+FFFD takes three bytes */
        if (utf8_append_scrubbed(out, bytes, len, &lossy) != 0)
            return luaL_error(L, "out of memory");
        push_and_free(L, out);
    }
    lua_pushboolean(L, lossy);
    return 2;
}

static int bind_text_is_utf8(lua_State *L)
{
    size_t len;
    const char *bytes = luaL_checklstring(L, 1, &len);
    lua_pushboolean(L, utf8_valid(bytes, len));
    return 1;
}

/* text.mask(text) -> text, with what is secret in it as "***" (prim/mask): for what quotes a client's words */
static int bind_text_mask(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    struct buf *out = lua_push_buf(L, MASKED_MAX_BYTES);
    if (mask_cut_text(out, text, len) != 0)
        return luaL_error(L, "out of memory");
    push_and_free(L, out);
    return 1;
}

int bind_text_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"base64_encode", bind_text_base64_encode},
        {"base64_decode", bind_text_base64_decode},
        {"utf8_scrub", bind_text_utf8_scrub},
        {"is_utf8", bind_text_is_utf8},
        {"mask", bind_text_mask},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
