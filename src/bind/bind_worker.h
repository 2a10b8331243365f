/* One call to a worker from a Lua coroutine: what abx.git, and whatever else asks helpers, returns to scripts. */
#ifndef ABX_BIND_BIND_WORKER_H
#define ABX_BIND_BIND_WORKER_H

#include "base/buf.h"
#include "prim/worker.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bind_worker {
    struct worker *worker; /* NULL: there is no memory for one */
    bool single;           /* it is retired after this call */
    const char *what;      /* begins messages: "git clone". It and the next two are borrowed: keep them on the
                            * Lua stack or in a userdata there */
    const char *method;
    const struct buf *params; /* JSON */
    uint64_t timeout_ms;      /* the worker's own; the process is killed BIND_WORKER_PATIENCE_MS later */
    enum err_code ended;      /* what it is called where the process ends first; ERR_NONE: ERR_INTERNAL */
    bool tells_late;          /* the worker says of ERR_UPSTREAM_TIMEOUT what it waited for, and that is passed on */
    void *ctx;
    void (*on_sent)(void *ctx, struct process *process); /* borrowed. May be NULL */
    /* How it went, before the coroutine goes on; call->process is NULL where it was not sent. May be NULL */
    void (*on_done)(void *ctx, const struct worker_call *call);
    /* Instead of worker_retire for a single one whose call was cancelled when it ran: it may still need a moment to end
     * what it does in good order. ctx may be gone soon. */
    void (*on_cancelled)(void *ctx, struct worker *worker);
    /* Pushes what the function returns for the answer, which is the JSON of `result`; says how many. It may raise. */
    int (*push)(lua_State *L, void *ctx, const char *answer, size_t len);
};

enum { BIND_WORKER_PATIENCE_MS = 2000 };

/* Call it as `return bind_worker_call(L, &ask)`. The function that the script called returns what push says, or nil,
 * code, message, field and, where the worker refused, a table of all that it told (its `data`).  Yields; bounded by the
 * request, whose client leaving cancels the call. */
int bind_worker_call(lua_State *L, const struct bind_worker *ask);

#endif
