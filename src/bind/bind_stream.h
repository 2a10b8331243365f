/* The one pump from a process's rings to a client's event stream. */
#ifndef ABX_BIND_STREAM_H
#define ABX_BIND_STREAM_H

#include "prim/process.h"

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

struct stream_options {
    uint64_t offset[2]; /* of the first byte to send; of a stream that is not wanted what ids tell of it */
    bool wanted[2];
    bool base64;
    int64_t wait_ms; /* when to end it without an exit; -1: never */
};

/* What run:stream does: `out` at index 2, options at 3. */
int bind_stream_run(lua_State *L, struct process *process);
/* The same, with options that are known: `out` at index 2. The caller keeps the process until it is over. */
int bind_stream_start(lua_State *L, struct process *process, const struct stream_options *options);

/* The output that `name` asks for: "both" (NULL, too), "stdout" or "stderr". */
void bind_stream_choice(const char *name, bool wanted[2]);

#endif
