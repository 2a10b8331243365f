/* The one pending operation of a task, and the clock of its deadline. Called by the files of bind/ and by out.c. */
#include "script/task_state.h"

#include "script/bindings.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdlib.h>

struct task *task_of(lua_State *L)
{
    return *(struct task **)lua_getextraspace(L);
}

struct log_context task_log_context(const struct task *task)
{
    return (struct log_context){.request_id = task_request_id(task), .route = task_route_name(task)};
}

const char *task_request_id(const struct task *task)
{
    return task->request ? task->request->id : NULL;
}

const char *task_route_name(const struct task *task)
{
    return task->route ? task->route->name : NULL;
}

void task_clock_start(struct task *task)
{
    task->clock_ms = loop_clock_ns() / 1000000; /* not the loop's, which stands still while a handler computes */
}

void task_spend(struct task *task)
{
    uint64_t before = task->clock_ms;
    task_clock_start(task);
    uint64_t spent = task->clock_ms - before;
    task->left_ms -= spent < task->left_ms ? spent : task->left_ms;
}

void task_own(struct task *task, struct task_owned *owned, void (*release)(struct task_owned *owned))
{
    owned->release = release;
    list_append(&task->owned, &owned->node);
}

void task_disown(struct task_owned *owned)
{
    if (owned->node.next != NULL)
        list_remove(&owned->node);
}

void task_release_owned(struct task *task)
{
    while (!list_empty(&task->owned)) {
        struct task_owned *owned = LIST_ENTRY(task->owned.prev, struct task_owned, node);
        task_disown(owned);
        owned->release(owned);
    }
}

static const char *function_name(lua_State *L)
{
    lua_Debug ar;
    if (lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && ar.name != NULL)
        return ar.name;
    return "this function";
}

struct task *task_check(lua_State *L)
{
    struct task *task = task_of(L);
    struct vm *vm = vm_of(L);
    if (task != NULL && vm->requiring == 0)
        return task;
    if (vm->running == NULL || vm->requiring > 0)
        luaL_error(L, "%s works for a request: it cannot be used while tables load", function_name(L));
    luaL_error(L, "%s waits: it cannot be used inside a coroutine of your own", function_name(L));
    return NULL;
}

void *task_op_new(lua_State *L, size_t size, bool bounded, void (*cancel)(void *op))
{
    struct task *task = task_check(L);
    if (task->phase == TASK_CLOSING)
        luaL_error(L, "%s waits: it cannot be used while the request is being ended", function_name(L));
    if (!lua_isyieldable(L))
        luaL_error(L, "%s waits: it cannot be used inside a function that sort, gsub or the like call",
                   function_name(L));
    assert(task->op == NULL);
    void *op = calloc(1, size);
    if (op == NULL)
        luaL_error(L, "out of memory");
    out_attach(task); /* whoever had the sink last */
    task->op = op;
    task->op_cancel = cancel;
    task->op_bounded = bounded;
    return op;
}

void task_op_end(lua_State *L)
{
    struct task *task = task_of(L);
    free(task->op);
    task->op = NULL;
    out_attach(task);
}

void task_resume(struct task *task)
{
    assert(task->phase == TASK_WAITING && task->op != NULL);
    loop_timer_stop(&task->deadline);
    if (task->op_bounded)
        task_clock_start(task);
    else
        task_spend(task);
    task->op_finished = task->op;
    task->op = NULL;
    out_attach(task);
    task_advance(task, 0);
}
