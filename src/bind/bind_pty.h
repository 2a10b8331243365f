/* What the files of abx.pty share: the functions that live in files of their own. */
#ifndef ABX_BIND_BIND_PTY_H
#define ABX_BIND_BIND_PTY_H

#include "base/err.h"
#include "prim/terminals.h"

#include <lua.h>

/* The server's; NULL with *err (ERR_UNAVAILABLE) while the group terminal is off. */
struct terminals *bind_pty_terminals(lua_State *L, struct err *err);
/* One that is listed; NULL with *err (ERR_TERMINAL_NOT_FOUND, field id). Borrowed. */
struct process *bind_pty_find(lua_State *L, int id_arg, struct terminals *terminals, struct err *err);

int bind_pty_list(lua_State *L);
int bind_pty_close(lua_State *L);
int bind_pty_shell(lua_State *L);

#endif
