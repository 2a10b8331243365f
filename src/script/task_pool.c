/* Tasks, their coroutines and their accounts, used again and again: a new coroutine costs ten times a recycled one.
 * Called by task.c and vm.c. */
#include "script/task_state.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdlib.h>

static int new_coroutine(lua_State *L)
{
    struct task *task = lua_touserdata(L, 1);
    lua_State *co = lua_newthread(L);
    *(struct task **)lua_getextraspace(co) = task;
    task->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    task->L = co;
    return 0;
}

struct task *task_take(struct vm *vm)
{
    struct task *task = vm->idle_tasks;
    if (task == NULL) {
        if ((task = calloc(1, sizeof(*task))) == NULL)
            return NULL;
        task->vm = vm;
        list_init(&task->owned);
        task->next_all = vm->all_tasks;
        vm->all_tasks = task;
    } else {
        vm->idle_tasks = task->next_idle;
        vm->idle_coroutines -= task->L != NULL;
    }
    if (task->L == NULL) {
        lua_pushcfunction(vm->L, new_coroutine);
        lua_pushlightuserdata(vm->L, task);
        if (lua_pcall(vm->L, 1, 0, 0) != LUA_OK)
            lua_pop(vm->L, 1);
    }
    if (task->L == NULL || (task->account = vm_account_open(vm)) == NULL) {
        task->next_idle = vm->idle_tasks;
        vm->idle_tasks = task;
        vm->idle_coroutines += task->L != NULL;
        return NULL;
    }
    return task;
}

void task_give_back(struct task *task)
{
    struct vm *vm = task->vm;
    assert(task->op == NULL && task->out.sink == NULL);
    loop_timer_stop(&task->deadline);
    if (task->responded)
        response_deinit(&task->response);
    free(task->details);
    vm_account_close(vm, task->account);
    if (vm->idle_coroutines >= VM_IDLE_MAX) {
        luaL_unref(vm->L, LUA_REGISTRYINDEX, task->ref);
        task->L = NULL;
    }
    vm->idle_coroutines += task->L != NULL;
    task->serial++; /* what a script kept of this request is void from here */
    task->phase = TASK_IDLE;
    task->cancelled = task->responded = task->failed = false;
    task->route = NULL;
    task->request = NULL;
    task->account = NULL;
    task->details = NULL;
    task->next_idle = vm->idle_tasks;
    vm->idle_tasks = task;
}

void task_free_all(struct vm *vm)
{
    while (vm->all_tasks != NULL) {
        struct task *task = vm->all_tasks;
        assert(task->phase == TASK_IDLE);
        vm->all_tasks = task->next_all;
        free(task);
    }
    vm->idle_tasks = NULL;
}
