/* What a task is made of. For the files of script/ only; the pipeline uses script/task.h, bindings script/bindings.h.
 */
#ifndef ABX_SCRIPT_TASK_STATE_H
#define ABX_SCRIPT_TASK_STATE_H

#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "script/task.h"
#include "script/vm.h"

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

enum task_phase {
    TASK_IDLE,
    TASK_RUNNING, /* its code computes, or an event is being delivered */
    TASK_WAITING, /* suspended, with an operation */
    TASK_CLOSING, /* abandoned: its <close> variables run, nothing may wait any more */
};

/* The task's end of a stream; sink is NULL where it has none. */
struct out {
    struct sink *sink;
    bool sse;
    bool waiting; /* the pending operation waits for room */
    uint64_t last_write_ms;
    struct loop_timer heartbeat;
};

/* Never freed before its Lua state: what scripts keep of a request (task and serial) can always be checked. */
struct task {
    struct vm *vm;
    lua_State *L; /* NULL while idle without a coroutine */
    int ref;
    uint64_t serial; /* counts the requests that it served */
    struct task *next_idle, *next_all;

    enum task_phase phase;
    bool cancelled; /* during a run: ends without events */
    const struct route *route;
    struct request *request;
    struct task_events events;
    void *ctx;
    struct account *account;

    void *op, *op_finished; /* pending; and the one whose continuation runs */
    void (*op_cancel)(void *op);
    bool op_bounded;

    struct loop_timer deadline;
    uint64_t left_ms, clock_ms; /* time left when the clock was started */

    bool answered;  /* on_response or on_error was called */
    bool responded; /* `response` holds something */
    bool failed;
    struct response response;
    struct err failure;
    char *details;     /* for the log: traceback or what was wrong with the result; heap */
    struct list owned; /* released at the end */
    struct out out;
};

/* task_pool.c. NULL out of memory. task_give_back takes all but the generation's reference, of an empty coroutine. */
struct task *task_take(struct vm *vm);
void task_give_back(struct task *task);
/* Frees the tasks of a state in which none is running. */
void task_free_all(struct vm *vm);
struct log_context task_log_context(const struct task *task);
/* The task whose own coroutine L is, or NULL. */
struct task *task_of(lua_State *L);
/* Runs the coroutine until it waits or ends, and sees to what follows. */
void task_advance(struct task *task, int arguments);
/* The deadline's clock: from here time counts. */
void task_clock_start(struct task *task);
/* Takes the time since then off what is left to the deadline, and starts anew. */
void task_spend(struct task *task);
/* Releases what the script left, the newest first. */
void task_release_owned(struct task *task);
/* Ends a waiting task whose client left: as task_cancel, but on_end is called. */
void task_drop(struct task *task);
/* Fails with ERR_INTERNAL; the text goes to the log only. */
void task_fail_internal(struct task *task, const char *fmt, ...) ABX_PRINTF(2, 3);

/* request_ud.c: pushes what a handler gets as `req`. */
void request_ud_push(lua_State *L, struct task *task);
void request_ud_open(lua_State *L, struct vm *vm);

/* reply.c: makes task->response of the handler's result on top. The count of values left for the stream phase: 1 (the
 * stream function) or 0. */
int reply_make(lua_State *L, struct task *task);

/* out.c */
void out_open(lua_State *L, struct vm *vm);
/* Takes over the producer's end. */
void out_begin(struct task *task, struct sink *sink, bool sse);
/* Takes the sink's callbacks (back) from the operation that had them. */
void out_attach(struct task *task);
void out_push(lua_State *L, struct task *task);
/* Ends the stream: whole, or with an `error` event where it speaks SSE and then cut. err may be NULL: cut at once. */
void out_finish(struct task *task, bool complete, const struct err *err);

/* file_ud.c */
void file_ud_open(lua_State *L, struct vm *vm);

/* raw_json.c */
void raw_json_open(lua_State *L, struct vm *vm);
/* False where it is none, or its task is over. */
bool raw_json_is(lua_State *L, int index);
/* How many bytes it would add; 0 where the value is none. */
size_t raw_json_len(lua_State *L, int index);
/* Of one that is; -1 when the buffer is full. */
int raw_json_append(lua_State *L, int index, struct buf *out) ABX_MUST_USE;

#endif
