/* A cell of code as scripts hold it: the userdata that cell.start makes.
 *   bind_code.c         what scripts call: arguments, waiting, answers
 *   bind_code_cell.c    what the worker says of it, made into results and an outcome
 *   bind_code_stream.c  the same as events */
#ifndef ABX_BIND_BIND_CODE_H
#define ABX_BIND_BIND_CODE_H

#include "base/buf.h"
#include "base/list.h"
#include "bind/bind_output.h"
#include "bind/bind_stream.h"
#include "prim/contexts.h"
#include "script/bindings.h"

#include <lua.h>
#include <stdbool.h>

struct host;

struct cell {
    struct task_owned owned; /* by the task that started it: at its end it is left, whatever became of the script */
    struct context_cell run;
    enum {
        CELL_NEW,
        CELL_WAITING,
        CELL_RUNNING, /* its turn has come */
        CELL_DONE,
        CELL_FAILED, /* err tells why; its turn may have come or not */
        CELL_CLOSED,
    } state;
    struct buf params;
    struct process *process; /* a reference, once its turn has come */
    struct task *waiter;     /* waits in cell:begin or cell:wait; NULL */
    bool waits_for_end;      /* in which of them */
    struct bind_output output;
    uint64_t began_at[2]; /* offsets of its first bytes */
    uint64_t began_ns, ended_ns;

    /* what it came to */
    const char *status;      /* "ok", "error", "timeout", "crashed" */
    int64_t execution_count; /* -1: not known */
    struct buf error;        /* JSON of {name, value, traceback}; empty: none */
    struct err err;
    bool truncated;
    size_t result_count, result_bytes;
    struct buf results; /* their JSON, separated by commas; unless it streams */

    bool streams;
    char language[16], context[CONTEXT_NAME_MAX + 1];
    struct loop *loop;
    struct stream_source source;
    struct list events;           /* of bind_code_stream.c, in their order */
    struct stream_event end;      /* the one after them, when it is done; its JSON is in `results` */
    struct loop_defer tell;       /* the stream that there is another one */
    struct process_reader holder; /* paces the program until the stream begins to read */
    struct loop_timer hold_timer;
    struct loop_timer late_timer; /* runs from the cell's time-out on */
};

/* Sets the callbacks of cell->run; CELL_NEW, all zero but for what the caller fills in. */
void bind_code_cell_init(struct cell *cell);
/* Leaves the context and gives back all memory. Harmless the second time. */
void bind_code_cell_close(struct cell *cell);
/* Appends {"status":…,…}: the outcome but for output, results and error, as an answer has it. -1: out is full. */
int bind_code_cell_write(const struct cell *cell, struct buf *out) ABX_MUST_USE;

/* Of a cell that streams: its turn has come; a result (its JSON); it is done, or failed after its turn had come. */
void bind_code_stream_begin(struct cell *cell);
void bind_code_stream_result(struct cell *cell, const char *bundle, size_t len);
void bind_code_stream_done(struct cell *cell);
void bind_code_stream_close(struct cell *cell);
/* cell:stream(out) -> true when `done` was sent, false when the client left | nil, code, message, field.  Yields. */
int bind_code_stream(lua_State *L, struct cell *cell);

/* All contexts of the server, made when they are first needed; NULL out of memory. */
struct contexts *bind_code_contexts(struct host *host);

#endif
