/* Lua values as value trees, for checks against a schema. For script/. */
#ifndef ABX_SCRIPT_LUA_VALUE_H
#define ABX_SCRIPT_LUA_VALUE_H

#include "model/value.h"

#include <lua.h>

/* Copies the value at index into the arena. -1 as lua_write_json; does not raise, runs no metamethods. */
int lua_to_value(lua_State *L, int index, struct arena *arena, struct value *out, struct err *err) ABX_MUST_USE;

#endif
