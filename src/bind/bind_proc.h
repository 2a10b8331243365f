/* What the files of abx.proc share: the functions that live in files of their own. */
#ifndef ABX_BIND_BIND_PROC_H
#define ABX_BIND_BIND_PROC_H

#include <lua.h>

int bind_proc_list(lua_State *L);
int bind_proc_describe(lua_State *L);
int bind_proc_signal(lua_State *L);
int bind_proc_output(lua_State *L);
int bind_proc_follow(lua_State *L);
/* Makes the metatable of what proc.follow gives; once for a state. */
void bind_proc_output_open(lua_State *L);
int bind_proc_input(lua_State *L);

#endif
