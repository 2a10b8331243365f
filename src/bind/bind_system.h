/* The functions of abx.system that live in files of their own; bind_system.c lists them. */
#ifndef ABX_BIND_BIND_SYSTEM_H
#define ABX_BIND_BIND_SYSTEM_H

#include <lua.h>

int bind_system_disks(lua_State *L);
int bind_system_ports(lua_State *L);

#endif
