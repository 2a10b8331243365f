/* abx.cell: cells of code in contexts whose state lives on. Called by lua/abx/code.lua. */
#include "bind/bind_code.h"

#include "base/json.h"
#include "base/utf8.h"
#include "bind/bind.h"
#include "bind/bind_proc.h"
#include "bind/host.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CELL_META "abx.code.cell"

/* --- starting */

static int cell_close(lua_State *L)
{
    bind_code_cell_close(luaL_checkudata(L, 1, CELL_META));
    return 0;
}

static void on_task_end(struct task_owned *owned)
{
    bind_code_cell_close(LIST_ENTRY(owned, struct cell, owned));
}

static struct cell *push_cell(lua_State *L)
{
    struct cell *cell = lua_newuserdatauv(L, sizeof(*cell), 0);
    memset(cell, 0, sizeof(*cell));
    cell->loop = script_loop(L);
    bind_code_cell_init(cell);
    luaL_setmetatable(L, CELL_META);
    task_own(task_check(L), &cell->owned, on_task_end);
    return cell;
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory for a cell");
}

/* The variables of the table on top, as JSON. */
static int write_env(lua_State *L, struct buf *out, struct err *err)
{
    int table = lua_gettop(L), failed = 0;
    char before = '{';
    luaL_checktype(L, table, LUA_TTABLE);
    lua_thaw(L, table);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        size_t len;
        if (bind_proc_check_var(L, err) != 0)
            return -1;
        const char *name = lua_tolstring(L, -2, &len);
        failed |= buf_append(out, &before, 1);
        failed |= json_write_string(out, name, len);
        failed |= buf_append(out, ":", 1);
        if (lua_is_null(L, -1)) {
            failed |= buf_append_text(out, "null");
        } else {
            const char *value = lua_tolstring(L, -1, &len);
            failed |= json_write_string(out, value, len);
        }
        before = ',';
    }
    failed |= buf_append_text(out, before == '{' ? "{}" : "}");
    return failed ? out_of_memory(err) : 0;
}

static int write_cwd(lua_State *L, const struct host *host, struct buf *out, struct err *err)
{
    size_t len;
    char path[PATH_MAX];
    const char *cwd = lua_field_string(L, 1, "cwd", &len);
    int fd = bind_proc_open_cwd(host, cwd, len, err);
    if (fd < 0)
        return -1;
    int failed = confine_path_of(fd, path, sizeof(path), err);
    close(fd);
    if (failed)
        return -1;
    if (!utf8_valid(path, strlen(path))) {
        err_set(err, ERR_BAD_CWD, "an interpreter can be sent only to directories whose path is UTF-8");
        return err_field(err, "cwd");
    }
    return json_write_string(out, path, strlen(path)) != 0 ? out_of_memory(err) : 0;
}

/* What the worker's `execute` gets. */
static int write_params(lua_State *L, const struct host *host, struct cell *cell, struct err *err)
{
    struct buf *out = &cell->params;
    size_t len = 0;
    const char *code = lua_field_string(L, 1, "code", &len);
    luaL_argcheck(L, code != NULL, 1, "'code' is needed");
    int failed = buf_append_text(out, "{\"code\":");
    failed |= json_write_string(out, code, len);
    failed |= buf_append_text(out, ",\"timeout_ms\":");
    failed |= json_write_int(out, (int64_t)cell->run.timeout_ms);
    failed |= buf_append_text(out, ",\"env\":");
    if (lua_getfield(L, 1, "env") == LUA_TNIL)
        failed |= buf_append_text(out, "null");
    else if (write_env(L, out, err) != 0)
        return -1;
    failed |= buf_append_text(out, ",\"cwd\":");
    if (lua_getfield(L, 1, "cwd") == LUA_TNIL)
        failed |= buf_append_text(out, "null");
    else if (write_cwd(L, host, out, err) != 0)
        return -1;
    failed |= buf_append(out, "}", 1);
    return failed ? out_of_memory(err) : 0;
}

static const char *const start_keys[] = {"language", "context", "code",   "reset", "timeout_ms",
                                         "env",      "cwd",     "stream", NULL};

/* cell.start{language=, context=, code=, reset=, timeout_ms=, env={}, cwd=, stream=} -> cell | nil, code, message,
 * field. stream: its output is for cell:stream. */
static int bind_code_start(lua_State *L)
{
    struct host *host = script_host(L);
    struct err err = {0};
    lua_check_keys(L, 1, start_keys, "cell.start");
    lua_settop(L, 1);
    const char *language = lua_field_string(L, 1, "language", NULL);
    const char *context = lua_field_string(L, 1, "context", NULL);
    luaL_argcheck(L, language != NULL && context != NULL, 1, "'language' and 'context' are needed");
    struct cell *cell = push_cell(L);
    cell->run.timeout_ms = (uint64_t)lua_field_int(L, 1, "timeout_ms", 0, 0, INT32_MAX);
    cell->run.reset = lua_field_bool(L, 1, "reset", false);
    cell->streams = lua_field_bool(L, 1, "stream", false);
    snprintf(cell->language, sizeof(cell->language), "%s", language);
    snprintf(cell->context, sizeof(cell->context), "%s", context);
    if (host->workers_dir == NULL) {
        err_set(&err, ERR_UNAVAILABLE, "the programs that run code are missing: set workers_dir to where they are");
        return lua_push_err(L, &err);
    }
    struct contexts *contexts = bind_code_contexts(host);
    int failed = contexts == NULL ? out_of_memory(&err) : write_params(L, host, cell, &err);
    if (!failed) {
        cell->run.params = cell->params.data;
        cell->run.params_len = cell->params.len;
        failed = contexts_run(contexts, language, context, &cell->run, &err);
    }
    if (failed) {
        bind_code_cell_close(cell);
        return lua_push_err(L, &err);
    }
    cell->state = CELL_WAITING;
    lua_settop(L, 2);
    return 1;
}

/* --- waiting */

static struct cell *cell_arg(lua_State *L)
{
    struct cell *cell = luaL_checkudata(L, 1, CELL_META);
    if (cell->state == CELL_CLOSED)
        luaL_error(L, "this cell was closed");
    return cell;
}

struct wait_op {
    struct cell *cell; /* on the task's stack */
};

static void wait_cancel(void *ctx)
{
    ((struct wait_op *)ctx)->cell->waiter = NULL;
}

static int wait_result(lua_State *L, const struct cell *cell)
{
    if (cell->state == CELL_FAILED)
        return lua_push_err(L, &cell->err);
    lua_pushboolean(L, 1);
    return 1;
}

static int wait_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    return wait_result(L, ((struct wait_op *)context)->cell);
}

static int wait_until(lua_State *L, bool end)
{
    struct cell *cell = cell_arg(L);
    if (cell->state >= CELL_DONE || (cell->state == CELL_RUNNING && !end))
        return wait_result(L, cell);
    /* Its own time-out bounds it, and those of the cells before it. */
    struct wait_op *op = task_op_new(L, sizeof(*op), true, wait_cancel);
    op->cell = cell;
    cell->waits_for_end = end;
    cell->waiter = task_check(L);
    return lua_yieldk(L, 0, (lua_KContext)op, wait_done);
}

/* cell:begin() -> true when its turn has come | nil, code, message, field.  Yields. */
static int cell_begin(lua_State *L)
{
    return wait_until(L, false);
}

/* cell:wait() -> true when it is done | nil, code, message, field.  Yields. */
static int cell_wait(lua_State *L)
{
    return wait_until(L, true);
}

/* --- answers */

static struct cell *done_arg(lua_State *L)
{
    struct cell *cell = cell_arg(L);
    if (cell->state != CELL_DONE)
        luaL_error(L, "this cell is not done");
    return cell;
}

/* cell:answer_output(encoding): see bind_output.h */
static int cell_answer_output(lua_State *L)
{
    struct cell *cell = done_arg(L);
    cell->output.process = cell->process;
    return bind_output_answer(L, &cell->output);
}

static void push_json(lua_State *L, struct buf *json)
{
    size_t len;
    char *text = buf_steal(json, &len);
    lua_push_raw_json(L, text, len);
}

/* cell:answer() -> {status, execution_count, engine, results, error, restarted, truncated, duration_ms}; once. */
static int cell_answer(lua_State *L)
{
    struct cell *cell = done_arg(L);
    lua_createtable(L, 0, 12);
    lua_pushstring(L, cell->status);
    lua_setfield(L, -2, "status");
    if (cell->execution_count >= 0)
        lua_pushinteger(L, cell->execution_count);
    else
        lua_push_null(L);
    lua_setfield(L, -2, "execution_count");
    lua_pushstring(L, cell->run.engine);
    lua_setfield(L, -2, "engine");
    if (buf_append_text(&cell->results, cell->results.len > 0 ? "]" : "[]") != 0)
        luaL_error(L, "out of memory for the results of a cell");
    push_json(L, &cell->results);
    lua_setfield(L, -2, "results");
    if (cell->error.len > 0)
        push_json(L, &cell->error);
    else
        lua_push_null(L);
    lua_setfield(L, -2, "error");
    lua_pushboolean(L, cell->run.restarted);
    lua_setfield(L, -2, "restarted");
    lua_pushboolean(L, cell->truncated);
    lua_setfield(L, -2, "truncated");
    lua_pushinteger(L, (lua_Integer)((cell->ended_ns - cell->began_ns) / 1000000));
    lua_setfield(L, -2, "duration_ms");
    return 1;
}

static int cell_stream(lua_State *L)
{
    struct cell *cell = cell_arg(L);
    if (cell->process == NULL || !cell->streams)
        luaL_error(L, "this cell does not stream, or its turn has not come");
    return bind_code_stream(L, cell);
}

/* Fields; else a method of the table that is the upvalue. */
static int cell_index(lua_State *L)
{
    const struct cell *cell = cell_arg(L);
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (cell->process != NULL && strcmp(key, "id") == 0) {
        lua_pushstring(L, process_id(cell->process));
    } else if (cell->process != NULL && strcmp(key, "pid") == 0) {
        lua_pushinteger(L, process_pid(cell->process));
    } else {
        lua_settop(L, 2);
        lua_rawget(L, lua_upvalueindex(1));
    }
    return 1;
}

int bind_code_open(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__close", cell_close}, {"__gc", cell_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"begin", cell_begin},   {"wait", cell_wait},
                                       {"answer", cell_answer}, {"answer_output", cell_answer_output},
                                       {"stream", cell_stream}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"start", bind_code_start}, {NULL, NULL}};
    luaL_newmetatable(L, CELL_META);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, cell_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
