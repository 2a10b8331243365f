/* abx.browser: calls to the worker that drives the browser. Called by scripts. */
#include "base/json.h"
#include "bind/bind.h"
#include "bind/bind_worker.h"
#include "bind/browser_worker.h"
#include "bind/host.h"
#include "model/response.h"
#include "model/value.h"
#include "prim/worker_dir.h"
#include "script/bindings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARAMS_MAX_BYTES = WORKER_LINE_MAX_BYTES / 2,
    MEMBERS_MAX_BYTES = 8 * 1024 * 1024, /* where a page is may take a MiB */
    PICTURE_MAX_BYTES = 64 * 1024 * 1024,
};

/* browser.available() -> true | false, what is missing and how it is brought */
static int bind_browser_available(lua_State *L)
{
    struct browser_parts parts;
    struct err err;
    bool found = browser_worker_parts(script_host(L), &parts, &err) == 0;
    lua_pushboolean(L, found);
    if (found)
        return 1;
    lua_pushstring(L, err.text);
    return 2;
}

/* --- answers */

static int push_answer(lua_State *L, const char *answer, size_t len)
{
    char *text = malloc(len);
    if (!text)
        return luaL_error(L, "out of memory for the browser's answer");
    memcpy(text, answer, len);
    lua_push_raw_json(L, text, len);
    return 1;
}

static int bad_picture(lua_State *L, struct arena *arena, const char *why)
{
    struct err err;
    err_set(&err, ERR_INTERNAL, "the browser's picture cannot be taken: %.200s", why);
    arena_deinit(arena);
    return lua_push_err(L, &err);
}

/* {…, file: one for reply}. It lies in the worker's private directory, as so many bytes in the line would keep the loop
 * from all else. */
static int push_picture(lua_State *L, const struct worker *worker, const char *answer, size_t len)
{
    struct err err;
    struct value members;
    struct stat found;
    struct arena *arena = lua_push_arena(L, MEMBERS_MAX_BYTES);
    if (value_parse(arena, answer, len, &members, &err) != 0)
        return bad_picture(L, arena, err.text);
    const struct value *name = value_member(&members, "file", 4), *size = value_member(&members, "size", 4);
    if (!name || name->type != VALUE_STRING || !size || size->type != VALUE_INT || size->as.integer < 0 ||
        size->as.integer > PICTURE_MAX_BYTES)
        return bad_picture(L, arena, "no file was told");
    lua_push_value(L, &members);
    int fd = worker_dir_take(worker_private(worker), name->as.string.text, name->as.string.len,
                             (uint64_t)size->as.integer, &found, &err);
    if (fd < 0)
        return bad_picture(L, arena, err.text);
    struct response_file file = {
        .fd = fd, .size = (uint64_t)found.st_size, .length = (uint64_t)found.st_size, .modified_at = found.st_mtim};
    lua_push_file(L, file, "", 0);
    lua_setfield(L, -2, "file");
    arena_deinit(arena);
    return 1;
}

/* --- calls */

/* The members of the table at `table`, and where the parts are. */
static struct buf *push_params(lua_State *L, int table, const struct browser_parts *parts, uint64_t timeout_ms)
{
    struct err err;
    struct buf *out = lua_push_buf(L, PARAMS_MAX_BYTES);
    if (lua_write_json(L, table, out, &err) != 0)
        luaL_argerror(L, table, lua_pushstring(L, err.text));
    if (out->len == 0 || out->data[0] != '{')
        luaL_argerror(L, table, "a table of parameters is wanted");
    out->len--; /* its } */
    if (buf_printf(out, "%s\"timeout_ms\":%llu", out->len > 1 ? "," : "", (unsigned long long)timeout_ms) != 0 ||
        json_write_text(out, ",\"parts\":{\"library\":", parts->library) != 0 ||
        json_write_text(out, ",\"turndown\":", parts->turndown[0] ? parts->turndown : NULL) != 0 ||
        json_write_text(out, ",\"executable\":", parts->executable) != 0 || buf_append_text(out, "}}") != 0)
        luaL_error(L, "out of memory for the parameters");
    return out;
}

struct browser_ask {
    struct browser *browser;
    char page[BROWSER_PAGE_NAME_MAX + 1];
    bool begins; /* it may find a new page */
    bool lost;   /* the page was in a process that ended before this call was sent */
    bool picture;
};

static void on_sent(void *ctx, struct process *process)
{
    struct browser_ask *ask = ctx;
    ask->lost = browser_pages_lost(&ask->browser->pages, ask->page, process_started_ns(process));
}

/* What ended this call is told by it. */
static void on_done(void *ctx, const struct worker_call *call)
{
    struct browser_ask *ask = ctx;
    if (call->outcome == WORKER_ANSWERED || call->outcome == WORKER_REFUSED)
        browser_pages_see(&ask->browser->pages, ask->page, process_started_ns(call->process));
    else if (call->process)
        browser_pages_forget(&ask->browser->pages, ask->page);
}

static int push_lost(lua_State *L, struct browser_ask *ask)
{
    struct err err;
    browser_pages_forget(&ask->browser->pages, ask->page);
    err_set(&err, ERR_BROWSER_CRASHED, "the page %s is gone: the browser ended; navigate again", ask->page);
    return lua_push_err(L, &err);
}

static int push_result(lua_State *L, void *ctx, const char *answer, size_t len)
{
    struct browser_ask *ask = ctx;
    if (ask->lost && !ask->begins)
        return push_lost(L, ask);
    return ask->picture ? push_picture(L, ask->browser->worker, answer, len) : push_answer(L, answer, len);
}

/* On the stack, as it must outlive the call. */
static struct browser_ask *push_ask(lua_State *L, struct browser *browser)
{
    struct browser_ask *ask = lua_newuserdatauv(L, sizeof(*ask), 0);
    *ask = (struct browser_ask){.browser = browser,
                                .begins = lua_field_bool(L, 1, "begins", false),
                                .picture = lua_field_bool(L, 1, "picture", false)};
    const char *page = lua_field_string(L, 2, "page", NULL);
    if (!page)
        luaL_argerror(L, 2, "'page' is wanted");
    snprintf(ask->page, sizeof(ask->page), "%s", page);
    return ask;
}

static uint64_t living(const struct worker *worker)
{
    const struct process *process = worker_process(worker);
    return process ? process_started_ns(process) : 0;
}

static const char *const option_keys[] = {"operation", "timeout_ms", "begins", "picture", NULL};

/* browser.call({operation, timeout_ms, begins, picture}, {page=, …}) -> JSON; with picture: a table, and its file is
 * one for reply and fs.write | nil, code, message, field. begins: a page that was lost is no failure.  Yields; bounded
 * by timeout_ms. */
static int bind_browser_call(lua_State *L)
{
    struct host *host = script_host(L);
    struct browser_parts parts;
    struct err err;
    lua_settop(L, 2);
    lua_check_keys(L, 1, option_keys, "browser.call");
    luaL_checktype(L, 2, LUA_TTABLE);
    const char *operation = lua_field_string(L, 1, "operation", NULL);
    uint64_t timeout_ms = (uint64_t)lua_field_int(L, 1, "timeout_ms", 30000, 1, INT32_MAX);
    if (!operation || strspn(operation, "abcdefghijklmnopqrstuvwxyz_") != strlen(operation))
        return luaL_argerror(L, 1, "'operation' is wanted, a plain name");
    if (browser_worker_parts(host, &parts, &err) != 0)
        return lua_push_err(L, &err);
    struct browser *browser = browser_worker_open(host);
    if (!browser) {
        err_set(&err, ERR_UNAVAILABLE, "out of memory for the browser");
        return lua_push_err(L, &err);
    }
    struct browser_ask *ask = push_ask(L, browser);
    if (!ask->begins && browser_pages_lost(&browser->pages, ask->page, living(browser->worker)))
        return push_lost(L, ask);
    struct bind_worker call = {
        .worker = browser->worker,
        .what = lua_pushfstring(L, "browser %s", operation),
        .method = operation,
        .params = push_params(L, 2, &parts, timeout_ms),
        .timeout_ms = timeout_ms,
        .ended = ERR_BROWSER_CRASHED,
        .tells_late = true,
        .ctx = ask,
        .on_sent = on_sent,
        .on_done = on_done,
        .push = push_result,
    };
    return bind_worker_call(L, &call);
}

int bind_browser_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"available", bind_browser_available}, {"call", bind_browser_call}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
