/* What the files of abx.proc share, and abx.cell with them. */
#ifndef ABX_BIND_BIND_PROC_H
#define ABX_BIND_BIND_PROC_H

#include "base/err.h"

#include <lua.h>
#include <stddef.h>

struct host;

int bind_proc_list(lua_State *L);
int bind_proc_describe(lua_State *L);
int bind_proc_signal(lua_State *L);
int bind_proc_output(lua_State *L);
int bind_proc_follow(lua_State *L);
/* Makes the metatable of what proc.follow gives; once for a state. */
void bind_proc_output_open(lua_State *L);
int bind_proc_input(lua_State *L);

/* Checks what clients may set of an environment: the name at -2, the value at -1 (a string, or json.null to unset). -1
 * with *err; misuse raises. */
int bind_proc_check_var(lua_State *L, struct err *err) ABX_MUST_USE;
/* A directory for a program to start in, confined to the base: a descriptor, which the caller closes; -1 with *err
 * (ERR_BAD_CWD and others, field cwd). */
int bind_proc_open_cwd(const struct host *host, const char *cwd, size_t len, struct err *err) ABX_MUST_USE;

#endif
