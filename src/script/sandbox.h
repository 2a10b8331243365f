/* What scripts find: an allow-list of globals, frozen. For the files of script/. */
#ifndef ABX_SCRIPT_SANDBOX_H
#define ABX_SCRIPT_SANDBOX_H

#include <lua.h>
#include <stdbool.h>

/* A lua_CFunction: fills a fresh state. */
int sandbox_open(lua_State *L);

/* Replaces the table on top by a read-only stand-in for it (reads, pairs; writes raise). What it holds stays as it is.
 */
void sandbox_freeze(lua_State *L);
/* Makes the value on top read-only in place, if it is a table, and all tables that can be reached from it: whoever has
 * one of them has a stand-in now. Not those with a metatable, nor what only functions can reach. */
void sandbox_freeze_deep(lua_State *L);
/* Once all is loaded: the modules and declarations. */
void sandbox_freeze_loaded(lua_State *L);
/* Whether the table at index is such a stand-in. */
bool sandbox_is_frozen(lua_State *L, int index);

/* Each leaves one library table. */
void sandbox_push_string(lua_State *L);
void sandbox_push_table(lua_State *L);
void sandbox_push_coroutine(lua_State *L);

/* Pattern functions (sandbox_match.c). */
int sandbox_find(lua_State *L);
int sandbox_match(lua_State *L);
int sandbox_gmatch(lua_State *L);
int sandbox_gsub(lua_State *L);

/* sandbox_freeze.c */
int sandbox_next(lua_State *L);
int sandbox_rawget(lua_State *L);
int sandbox_rawlen(lua_State *L);
int sandbox_rawset(lua_State *L);

/* The global `require` (require.c). */
int sandbox_require(lua_State *L);

/* try, fail (failure.c) and reply (reply.c). */
int failure_try(lua_State *L);
int failure_fail(lua_State *L);
int reply_mark(lua_State *L);

/* Runs the text chunk `source` and leaves its one result: LUA_OK, else an error value lies there. Nothing in it may
 * wait. Does not raise, so that the caller can free the source. */
int sandbox_run(lua_State *L, const char *source, size_t len, const char *chunk_name);

#endif
