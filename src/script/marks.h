/* The metatables by which values are known again: arrays, replies, coded failures, our userdata. For script/. */
#ifndef ABX_SCRIPT_MARKS_H
#define ABX_SCRIPT_MARKS_H

#include "script/vm.h"

#include <lua.h>
#include <stdbool.h>

void marks_open(lua_State *L, struct vm *vm);

/* Whether the value at index has the metatable behind that registry reference. Raw; does not raise. */
bool mark_has(lua_State *L, int index, int meta_ref);
void mark_set(lua_State *L, int index, int meta_ref);
/* A metatable for userdata: methods by name, fields by the function `index`, both may be NULL; locked. */
int mark_new(lua_State *L, const char *name, lua_CFunction index, lua_CFunction gc);

#endif
