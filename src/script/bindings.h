/* For the files in bind/: arguments, results, failures and waiting, on the Lua side of the border. */
#ifndef ABX_SCRIPT_BINDINGS_H
#define ABX_SCRIPT_BINDINGS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "model/body.h"
#include "model/response.h"
#include "model/sink.h"
#include "model/value.h"
#include "script/generation.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

struct task;

/* What script_options.host was. */
void *script_host(lua_State *L);
struct loop *script_loop(lua_State *L);

/* The task that runs in this coroutine. Raises in a coroutine that the script made itself, and while tables load. */
struct task *task_check(lua_State *L);
const char *task_request_id(const struct task *task);
const char *task_route_name(const struct task *task);

/* Begins the task's one pending operation: zeroed memory that lives until the continuation returned or the operation
 * was cancelled. cancel (may be NULL) must leave no callback behind; it is called at most once, and not after
 * task_resume. bounded: the request itself bounds this wait (timeout_ms, wait_ms, a stream, a body): it does not count
 * to deadline_ms. Raises when memory is out. Afterwards the binding starts its work and does `return lua_yieldk(L, 0,
 * (lua_KContext)op, done)`; where the work turned out to be done already it calls task_op_end and returns without
 * yielding. */
void *task_op_new(lua_State *L, size_t size, bool bounded, void (*cancel)(void *op));
void task_op_end(lua_State *L);
/* The operation is complete: runs the continuation. From a callback of the loop only, once for an operation. */
void task_resume(struct task *task);

/* Pushes a userdata with an empty buffer or arena in it, which is freed with it: for memory that lua_error must not
 * leak. Where much is in it, deinit it as soon as it is done with: the collector takes its time, and does not see its
 * size. */
struct buf *lua_push_buf(lua_State *L, size_t max_bytes);
struct arena *lua_push_arena(lua_State *L, size_t limit_bytes);

/* Failure of a primitive: pushes nil, code, message, field (nil where none) and returns 4. */
int lua_push_err(lua_State *L, const struct err *err);

/* Tables of modules and declarations are read-only: scripts hold empty stand-ins with an __index. Where one stands at
 * index, puts the real table there, for whatever reads raw; the functions below do so themselves. The real one must not
 * get into a script's hands. */
void lua_thaw(lua_State *L, int index);

/* Something that a script holds and that must not outlive the request, whatever becomes of the script: embedded in a
 * userdata. release is called once, at the task's end (that of its stream), after the <close> variables; it must not
 * raise, nor resume a task at once. Call task_disown in __close and __gc, or wherever it is given up before; harmless
 * on one that is not owned, if it was zeroed. */
struct task_owned {
    struct list node;
    void (*release)(struct task_owned *owned);
};
void task_own(struct task *task, struct task_owned *owned, void (*release)(struct task_owned *owned));
void task_disown(struct task_owned *owned);

/* Arguments; misuse raises with the function's name. Fields of the table at `table`; a missing one is the default. */
lua_Integer lua_arg_int(lua_State *L, int arg, lua_Integer min, lua_Integer max);
lua_Integer lua_arg_opt_int(lua_State *L, int arg, lua_Integer dflt, lua_Integer min, lua_Integer max);
lua_Integer lua_field_int(lua_State *L, int table, const char *name, lua_Integer dflt, lua_Integer min,
                          lua_Integer max);
bool lua_field_bool(lua_State *L, int table, const char *name, bool dflt);
/* Borrowed from the table: valid while it is. NULL where missing. Raises for anything but a string. */
const char *lua_field_string(lua_State *L, int table, const char *name, size_t *out_len);
/* Raises for a member that is none of these names (NULL ends them). `what` begins the message: "proc.start". */
void lua_check_keys(lua_State *L, int table, const char *const *known, const char *what);

/* Lua <-> JSON. json.null is a light userdata; tables made by json.array{} (or that are sequences and not empty) are
 * arrays. lua_push_value pushes one value; arrays get the array mark, so they go out as they came. */
void lua_push_null(lua_State *L);
bool lua_is_null(lua_State *L, int index);
void lua_mark_array(lua_State *L, int index);
bool lua_is_array(lua_State *L, int index);
void lua_push_value(lua_State *L, const struct value *value);
/* Appends the JSON of the value at index. -1 with err: cycles or nesting over 64, functions, mixed keys, too large.
 * Does not raise, runs no metamethods. */
int lua_write_json(lua_State *L, int index, struct buf *out, struct err *err) ABX_MUST_USE;

/* Pushes a value that scripts can only pass on, and that lua_write_json copies as it is: a string of much text, made
 * into JSON on the pool. Takes `text` (from malloc), which must be valid JSON; freed with the task at the latest. From
 * the task's own coroutine only. */
void lua_push_raw_json(lua_State *L, char *text, size_t len);

/* The handler's output end in reply{stream=function(out)}: the sink behind it; raises for anything else, and once the
 * stream is over. An operation may put its own on_drain, on_gone and producer into the sink: they are taken back from
 * it when it ends, is cancelled or resumes the task. */
struct sink *lua_arg_out(lua_State *L, int arg);
/* Whether that stream speaks SSE (its content type is text/event-stream). */
bool lua_arg_out_is_sse(lua_State *L, int arg);
/* The request body that req.body is (ROUTE_BODY_STREAM); raises for anything else. */
struct body *lua_arg_body(lua_State *L, int arg);

/* Pushes a userdata for reply{file=...}; takes the descriptor (closed with the userdata unless it was sent). Fields for
 * scripts: name, size. */
void lua_push_file(lua_State *L, struct response_file file, const char *name, size_t name_len);
/* Moves the file out of the userdata at index; false where it is none or was taken before. */
bool lua_take_file(lua_State *L, int index, struct response_file *out);

#endif
