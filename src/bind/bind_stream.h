/* The one pump from a process's rings to a client's event stream. */
#ifndef ABX_BIND_STREAM_H
#define ABX_BIND_STREAM_H

#include "base/loop.h"
#include "prim/process.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event that whoever streams adds to those of the output. */
struct stream_event {
    const char *name; /* NULL: nothing is sent; for a last one */
    const char *json; /* one line */
    size_t len;
    uint64_t after[2]; /* it is sent when the output up to here was */
    bool last;         /* the stream ends with it, instead of with `exit` at the program's end */
};

/* Where such events come from, instead of `start` and `exit`; embedded by its user. */
struct stream_source {
    /* The one to send next, NULL: none is there yet. Borrowed until taken is called, when it was sent. */
    const struct stream_event *(*next)(struct stream_source *source);
    void (*taken)(struct stream_source *source);
    /* The stream's: to be called from the loop when there is a next one; NULL while nobody streams. */
    loop_fn more;
    void *stream;
};

struct stream_options {
    uint64_t offset[2]; /* of the first byte to send; of a stream that is not wanted what ids tell of it */
    bool wanted[2];
    bool base64;
    int64_t wait_ms;              /* when to end it without an exit; -1: never */
    struct stream_source *source; /* NULL: it is a program's run, from `start` to `exit` */
};

/* What run:stream does: `out` at index 2, options at 3. */
int bind_stream_run(lua_State *L, struct process *process);
/* The same, with options that are known: `out` at index 2. The caller keeps the process until it is over. */
int bind_stream_start(lua_State *L, struct process *process, const struct stream_options *options);

/* The output that `name` asks for: "both" (NULL, too), "stdout" or "stderr". */
void bind_stream_choice(const char *name, bool wanted[2]);

#endif
