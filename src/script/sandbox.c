/* The globals of scripts, by allow-list with the reason beside each. Called once for each Lua state, by vm.c.
 *
 * Left out: io, os but for the clock, debug, package, dofile, loadfile, string.dump, rawset on frozen tables, __gc,
 * coroutine.running (a task's own coroutine is nobody's to resume), and every way to load bytecode. */
#include "script/sandbox.h"

#include "base/log.h"
#include "script/budget.h"
#include "script/failure.h"
#include "script/marks.h"
#include "script/task_state.h"
#include "script/vm.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

enum { LOAD_PIECE_BYTES = 256, PRINT_MAX_BYTES = 16 * 1024, DATE_FORMAT_MAX_BYTES = 1024 };

static lua_CFunction real_date;

/* Only tables: the metatables of strings and of our userdata are shared by all and not for scripts. */
static int base_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (!lua_istable(L, 1) || !lua_getmetatable(L, 1))
        return 0;
    luaL_getmetafield(L, 1, "__metatable"); /* pushes nothing where there is none */
    return 1;
}

static int base_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL) /* no hook ever interrupts a finalizer */
            return luaL_error(L, "__gc is not allowed");
        lua_pop(L, 1);
    }
    lua_setmetatable(L, 1);
    return 1;
}

static int base_collectgarbage(lua_State *L)
{
    if (strcmp(luaL_optstring(L, 1, "count"), "count") != 0)
        return luaL_argerror(L, 1, "only \"count\" is allowed");
    lua_pushnumber(L, (lua_Number)vm_of(L)->used_bytes / 1024);
    return 1;
}

struct load_text {
    const char *text;
    size_t len;
};

/* In small pieces, to look at the budget in between: a name in deeply nested functions takes the compiler long. */
static const char *on_load_read(lua_State *L, void *ctx, size_t *out_len)
{
    struct load_text *rest = ctx;
    const char *piece = rest->text;
    if (budget_expired())
        luaL_error(L, "the time for computing is over");
    *out_len = rest->len < LOAD_PIECE_BYTES ? rest->len : LOAD_PIECE_BYTES;
    rest->text += *out_len;
    rest->len -= *out_len;
    return piece;
}

static int base_load(lua_State *L)
{
    size_t len;
    luaL_argexpected(L, lua_type(L, 1) == LUA_TSTRING, 1, "string"); /* a yield in a reader is lost in silence */
    const char *text = lua_tolstring(L, 1, &len);
    luaL_argcheck(L, len <= VM_SOURCE_MAX_BYTES, 1, "chunk too long");
    const char *name = luaL_optstring(L, 2, "=(load)");
    bool has_env = !lua_isnone(L, 4);
    struct load_text rest = {text, len};
    if (lua_load(L, on_load_read, &rest, name, "t") != LUA_OK) {
        if (budget_expired())
            return budget_die(L);
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_env) {
        lua_pushvalue(L, 4);
        lua_setupvalue(L, -2, 1);
    }
    return 1;
}

/* The message handler of xpcall runs while the hook's error is on its way, with hooks switched off: it could loop for
 * ever, so it is left out once the time is over. */
static int on_xpcall_error(lua_State *L)
{
    if (budget_expired())
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int xpcall_done(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    bool ok = status == LUA_OK || status == LUA_YIELD;
    lua_pushboolean(L, ok);
    lua_replace(L, 1);
    if (!ok) { /* handler, error */
        lua_pushvalue(L, 1);
        lua_pushvalue(L, -2);
        return 2;
    }
    lua_remove(L, 2);
    return lua_gettop(L);
}

static int base_xpcall(lua_State *L)
{
    luaL_checkany(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    int arguments = lua_gettop(L) - 2;
    lua_pushboolean(L, true); /* slot 1: the result; slot 2: the handler; then the function and its arguments */
    lua_insert(L, 1);
    lua_pushvalue(L, 3);
    lua_pushcclosure(L, on_xpcall_error, 1);
    lua_replace(L, 3);
    lua_pushvalue(L, 2);
    lua_remove(L, 2);
    lua_insert(L, 3);
    int status = lua_pcallk(L, arguments, LUA_MULTRET, 2, 0, xpcall_done);
    return xpcall_done(L, status, 0);
}

static int base_print(lua_State *L)
{
    luaL_Buffer line;
    int count = lua_gettop(L);
    luaL_buffinit(L, &line);
    for (int i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addchar(&line, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&line);
    }
    luaL_pushresult(&line);
    struct log_context who = {0};
    struct task *task = vm_of(L)->running;
    if (task != NULL)
        who = task_log_context(task);
    log_write(LOG_LEVEL_INFO, "script", &who, "%.*s", PRINT_MAX_BYTES, lua_tostring(L, -1));
    return 0;
}

/* Each conversion is a call of strftime, so the format is kept short. */
static int os_date(lua_State *L)
{
    size_t len;
    luaL_optlstring(L, 1, "", &len);
    luaL_argcheck(L, len <= DATE_FORMAT_MAX_BYTES, 1, "the format is too long");
    return real_date(L);
}

static const luaL_Reg own_globals[] = {
    {"getmetatable", base_getmetatable}, /* of tables; of strings and userdata: nothing */
    {"setmetatable", base_setmetatable}, /* without __gc */
    {"next", sandbox_next},              /* raw, as the next three, but they look behind stand-ins */
    {"rawget", sandbox_rawget},
    {"rawlen", sandbox_rawlen},
    {"rawset", sandbox_rawset},              /* not on frozen tables */
    {"collectgarbage", base_collectgarbage}, /* "count" only: a full collection costs every other request */
    {"load", base_load},                     /* text from strings: what it makes is as confined as its maker */
    {"xpcall", base_xpcall},                 /* with a handler that cannot outlive the budget */
    {"print", base_print},                   /* to the log */
    {"require", sandbox_require},            /* below lua_dir only */
    {"try", failure_try},
    {"fail", failure_fail},
    {"reply", reply_mark},
    {NULL, NULL},
};

static const char *const base_names[] = {
    "assert",   /* raises, nothing more */
    "error",    /* the same */
    "ipairs",   /* a loop in Lua: the hook sees it */
    "pairs",    /* __pairs is Lua code: the hook sees it */
    "pcall",    /* the hook fires again behind it */
    "rawequal", /* reads */
    "select",   /* bounded by its arguments */
    "tonumber", /* pure */
    "tostring", /* __tostring is Lua code: the hook sees it */
    "type",     /* pure */
    "_VERSION", /* text */
    NULL,
};

/* All pure and short; randomseed is missing, because the generator is shared by all requests. */
static const char *const math_names[] = {"abs",  "acos",       "asin",      "atan", "ceil", "cos",    "deg",
                                         "exp",  "floor",      "fmod",      "huge", "log",  "max",    "maxinteger",
                                         "min",  "mininteger", "modf",      "pi",   "rad",  "random", "sin",
                                         "sqrt", "tan",        "tointeger", "type", "ult",  NULL};
/* All linear in their arguments. */
static const char *const utf8_names[] = {"char", "charpattern", "codepoint", "codes", "len", "offset", NULL};
/* Clocks. date checks its format itself (LUA_STRFTIMEOPTIONS). */
static const char *const os_names[] = {"time", "clock", "date", NULL};

/* A new table with the named members of the table on top, which it replaces. */
static void pick(lua_State *L, const char *const *names)
{
    lua_newtable(L);
    for (; *names != NULL; names++) {
        lua_getfield(L, -2, *names);
        lua_setfield(L, -2, *names);
    }
    lua_remove(L, -2);
}

static void push_library(lua_State *L, lua_CFunction open, const char *const *names)
{
    lua_pushcfunction(L, open);
    lua_call(L, 0, 1);
    if (names != NULL)
        pick(L, names);
}

int sandbox_open(lua_State *L)
{
    struct vm *vm = vm_of(L);
    lua_gc(L, LUA_GCINC, 0, 0, 0);
    marks_open(L, vm);

    push_library(L, luaopen_base, base_names); /* luaopen_base answers the real globals: only the picked ones stay */
    luaL_setfuncs(L, own_globals, 0);

    sandbox_push_string(L);
    sandbox_freeze(L);
    lua_pushliteral(L, ""); /* all strings share one metatable: methods come from our own table, and it is locked */
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    lua_setfield(L, -2, "string");

    sandbox_push_table(L);
    sandbox_freeze(L);
    lua_setfield(L, -2, "table");
    sandbox_push_coroutine(L);
    sandbox_freeze(L);
    lua_setfield(L, -2, "coroutine");
    push_library(L, luaopen_math, math_names);
    sandbox_freeze(L);
    lua_setfield(L, -2, "math");
    push_library(L, luaopen_utf8, utf8_names);
    sandbox_freeze(L);
    lua_setfield(L, -2, "utf8");
    push_library(L, luaopen_os, os_names);
    lua_getfield(L, -1, "date");
    real_date = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    lua_pushcfunction(L, os_date);
    lua_setfield(L, -2, "date");
    sandbox_freeze(L);
    lua_setfield(L, -2, "os");

    /* The environment of every chunk, the default of load included. */
    lua_pushvalue(L, -1);
    sandbox_freeze(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "_G");
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    return 0;
}

int sandbox_run(lua_State *L, const char *source, size_t len, const char *chunk_name)
{
    struct vm *vm = vm_of(L);
    int status = luaL_loadbufferx(L, source, len, chunk_name, "t");
    if (status != LUA_OK)
        return status;
    vm->requiring++;
    status = lua_pcall(L, 0, 1, 0);
    vm->requiring--;
    return status;
}
