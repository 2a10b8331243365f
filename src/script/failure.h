/* Coded failures, as try and fail raise them. For script/. */
#ifndef ABX_SCRIPT_FAILURE_H
#define ABX_SCRIPT_FAILURE_H

#include "script/vm.h"

#include <lua.h>
#include <stdbool.h>

void failure_open(lua_State *L, struct vm *vm);
bool failure_is(lua_State *L, int index);
/* What the client gets. Raw; does not raise. */
void failure_to_err(lua_State *L, int index, struct err *err);

#endif
