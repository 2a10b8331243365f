/* What was captured of a program's output, as scripts and answers get it: methods of runs and of cells of code. */
#ifndef ABX_BIND_BIND_OUTPUT_H
#define ABX_BIND_BIND_OUTPUT_H

#include "base/buf.h"
#include "prim/process.h"

#include <lua.h>
#include <stdbool.h>

/* Embedded in the userdata at index 1, whose finalizer deinits it. */
struct bind_output {
    struct process *process; /* borrowed while it is used */
    bool captures;           /* it was started so that something is kept */
    bool more;               /* more may come: a character that is cut at the end is left out */
    struct buf scratch[2];   /* text on its way to Lua: freed here when Lua raises */
};

void bind_output_init(struct bind_output *output);
void bind_output_deinit(struct bind_output *output);

/* run:captured(encoding) -> {stdout, stderr, stdout_bytes, stderr_bytes, truncated={stdout=, stderr=}, lossy} */
int bind_output_captured(lua_State *L, struct bind_output *output);
/* run:answer_output(encoding): the same for an answer. Where it is much, stdout and stderr are no strings but values
 * that can only be passed on, and are strings in the JSON. Yields then; what was captured is copied before. */
int bind_output_answer(lua_State *L, struct bind_output *output);

#endif
