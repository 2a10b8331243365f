/* A request's handler at work: one coroutine, at most one pending operation, one way to be cancelled. Main thread only.
 *
 * This header is for the pipeline; lua_State stays hidden. Bindings use script/bindings.h. */
#ifndef ABX_SCRIPT_TASK_H
#define ABX_SCRIPT_TASK_H

#include "base/err.h"
#include "model/request.h"
#include "model/response.h"
#include "script/generation.h"

struct task;

/* What became of the handler. Exactly one of them is called for a task that is not cancelled before; possibly from
 * inside task_start, when the handler never waited. */
struct task_events {
    /* The answer; its contents are moved out of *response by the callee. For RESPONSE_STREAM the task goes on and feeds
     * the sink until task_end. */
    void (*on_response)(void *ctx, struct response *response);
    /* The handler failed: err is what the client gets (coded by try/fail, ERR_HANDLER_TIMEOUT, or ERR_INTERNAL with the
     * details in the log only). */
    void (*on_error)(void *ctx, const struct err *err);
    /* The task is over and freed, after either of the above (at once, or at the end of the stream). Last call. Not
     * called after task_cancel. */
    void (*on_end)(void *ctx);
};

/* Runs route's handler with the request until it ends or waits. The request must live until on_end or task_cancel.
 * NULL (nothing called) when memory is out. May answer a task that is already over: then on_end was called and the
 * pointer must not be used; *out is set before anything is called. */
void task_start(struct generation *generation, const struct route *route, struct request *request,
                const struct task_events *events, void *ctx, struct task **out);

/* Client gone, deadline or shutdown: cancels the pending operation, runs the handler's <close> variables, frees the
 * task. No event is called any more. From the loop only, never from inside a task's own call. */
void task_cancel(struct task *task);

#endif
