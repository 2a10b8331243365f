/* The one pump from a process's rings to a client's event stream. */
#ifndef ABX_BIND_STREAM_H
#define ABX_BIND_STREAM_H

#include "prim/process.h"

#include <lua.h>

/* What run:stream does: `out` at index 2, options at 3. */
int bind_stream_run(lua_State *L, struct process *process);

#endif
