/* The libraries in C that scripts may require; each leaves one table. For bind_all.c. */
#ifndef ABX_BIND_BIND_H
#define ABX_BIND_BIND_H

#include <lua.h>

int bind_json_open(lua_State *L);
int bind_time_open(lua_State *L);
int bind_text_open(lua_State *L);
int bind_server_open(lua_State *L);
int bind_proc_open(lua_State *L);
int bind_pty_open(lua_State *L);
int bind_session_open(lua_State *L);
int bind_fs_open(lua_State *L);
int bind_system_open(lua_State *L);
int bind_env_open(lua_State *L);
int bind_code_open(lua_State *L);
int bind_git_open(lua_State *L);
int bind_browser_open(lua_State *L);

#endif
