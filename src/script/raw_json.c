/* JSON text that a binding has made already, on its way into an answer. Pushed by bindings, copied by lua_json.c. */
#include "script/bindings.h"
#include "script/budget.h"
#include "script/marks.h"
#include "script/task_state.h"

#include <lauxlib.h>
#include <stdlib.h>

/* Lua does not see how large the text is and may collect it late, so the task frees it at its end. */
struct raw_json {
    struct task_owned owned;
    char *text; /* NULL once the task is over */
    size_t len;
    bool copied;
};

static void on_task_end(struct task_owned *owned)
{
    struct raw_json *raw = LIST_ENTRY(owned, struct raw_json, owned);
    free(raw->text);
    raw->text = NULL;
}

static int on_raw_json_gc(lua_State *L)
{
    struct raw_json *raw = lua_touserdata(L, 1);
    task_disown(&raw->owned);
    on_task_end(&raw->owned);
    return 0;
}

void raw_json_open(lua_State *L, struct vm *vm)
{
    vm->raw_json_meta = mark_new(L, "text for an answer", NULL, on_raw_json_gc);
}

static int new_raw_json(lua_State *L)
{
    const struct raw_json *from = lua_touserdata(L, 1);
    struct task *task = lua_touserdata(L, 2);
    struct raw_json *raw = lua_newuserdatauv(L, sizeof(*raw), 0);
    *raw = (struct raw_json){.len = from->len};
    mark_set(L, -1, vm_of(L)->raw_json_meta);
    raw->text = from->text; /* nothing can raise any more */
    task_own(task, &raw->owned, on_task_end);
    return 1;
}

void lua_push_raw_json(lua_State *L, char *text, size_t len)
{
    struct raw_json from = {.text = text, .len = len};
    lua_pushcfunction(L, new_raw_json);
    lua_pushlightuserdata(L, &from);
    lua_pushlightuserdata(L, task_of(L));
    if (lua_pcall(L, 2, 1, 0) != LUA_OK) {
        free(text);
        lua_error(L);
    }
}

bool raw_json_is(lua_State *L, int index)
{
    const struct raw_json *raw = lua_touserdata(L, index);
    return raw != NULL && mark_has(L, index, vm_of(L)->raw_json_meta) && raw->text != NULL;
}

size_t raw_json_len(lua_State *L, int index)
{
    return raw_json_is(L, index) ? ((const struct raw_json *)lua_touserdata(L, index))->len : 0;
}

int raw_json_append(lua_State *L, int index, struct buf *out)
{
    struct raw_json *raw = lua_touserdata(L, index);
    /* The one copy that an answer needs is no computing of the script's: on a slow machine it would end it. */
    lua_State *counted = raw->copied ? NULL : budget_switch(NULL);
    int failed = buf_append(out, raw->text, raw->len);
    if (!raw->copied)
        budget_switch(counted);
    raw->copied = true;
    return failed;
}
