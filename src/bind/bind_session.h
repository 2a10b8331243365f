/* The turn of a shell session as bind_proc gets it from a script. */
#ifndef ABX_BIND_SESSION_H
#define ABX_BIND_SESSION_H

#include "prim/session.h"

#include <lua.h>

/* The turn at index, borrowed; raises for anything else, and for one that was given back. */
struct session_turn *bind_session_turn(lua_State *L, int index);

#endif
