/* What a run kept of its output, as scripts and answers get it: two methods of a run. */
#ifndef ABX_BIND_BIND_OUTPUT_H
#define ABX_BIND_BIND_OUTPUT_H

#include <lua.h>

struct run;

/* run:captured(encoding) -> {stdout, stderr, stdout_bytes, stderr_bytes, truncated={stdout=, stderr=}, lossy} */
int bind_output_captured(lua_State *L, struct run *run);
/* run:answer_output(encoding): the same for an answer. Where it is much, stdout and stderr are no strings but values
 * that can only be passed on, and are strings in the JSON. Yields then. */
int bind_output_answer(lua_State *L, struct run *run);

#endif
