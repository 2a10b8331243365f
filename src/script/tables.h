/* abx.tables: what is declared, for the handlers that describe it. For require.c. */
#ifndef ABX_SCRIPT_TABLES_H
#define ABX_SCRIPT_TABLES_H

#include <lua.h>

/* A lua_CFunction that leaves the library table. */
int tables_open(lua_State *L);

#endif
