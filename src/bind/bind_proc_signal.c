/* proc.signal: what a client may send, the wait for what comes of it, and the answer. */
#include "base/json.h"
#include "bind/bind_proc.h"
#include "bind/host.h"
#include "prim/process_signal.h"
#include "prim/signals.h"
#include "script/bindings.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <signal.h>
#include <string.h>

#define SIGNAL_META "abx.proc.signal"

enum { WAIT_MAX_MS = 3600 * 1000, ANSWER_MAX_BYTES = 4096 };

/* Owned by a userdata on the stack: whatever raises or is cancelled, it is given up once. */
struct asked {
    struct signalling *signalling;
    int signal;
    struct buf answer;
};

static int asked_gc(lua_State *L)
{
    struct asked *asked = luaL_checkudata(L, 1, SIGNAL_META);
    if (asked->signalling != NULL)
        signalling_free(asked->signalling);
    asked->signalling = NULL;
    buf_deinit(&asked->answer);
    return 0;
}

static struct asked *asked_push(lua_State *L)
{
    struct asked *asked = lua_newuserdatauv(L, sizeof(*asked), 0);
    memset(asked, 0, sizeof(*asked));
    buf_init(&asked->answer, ANSWER_MAX_BYTES);
    if (luaL_newmetatable(L, SIGNAL_META)) {
        lua_pushcfunction(L, asked_gc);
        lua_setfield(L, -2, "__gc");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, -2);
    return asked;
}

/* --- what is asked for */

static bool read_tree(lua_State *L)
{
    const char *scope = lua_field_string(L, 2, "scope", NULL);
    if (scope == NULL || strcmp(scope, "tree") == 0)
        return true;
    if (strcmp(scope, "process") != 0)
        luaL_error(L, "'scope' must be tree or process, not %s", scope);
    return false;
}

/* --- the answer */

static int append_signal(struct buf *out, const char *field, int signal)
{
    char name[SIGNALS_NAME_MAX];
    if (signal == 0)
        return buf_printf(out, "\"%s\":null,", field);
    signals_name(signal, name);
    return buf_printf(out, "\"%s\":\"%s\",", field, name);
}

static int append_answer(struct buf *out, int signal, const struct signalling_report *report)
{
    int failed = buf_printf(out, "{\"id\":\"%s\",\"pid\":%d,", report->id, (int)report->pid);
    failed |= append_signal(out, "signal", signal);
    failed |= append_signal(out, "exit_signal", report->exit_signal);
    failed |= buf_printf(out, "\"signalled\":%zu,\"escalated\":%s,\"state\":\"%s\",", report->signalled,
                         report->escalated ? "true" : "false", report->ended ? "exited" : "running");
    failed |= report->has_exit ? buf_printf(out, "\"exit_code\":%d,", report->exit_code)
                               : buf_append_text(out, "\"exit_code\":null,");
    failed |= buf_printf(out, "\"timed_out\":%s,\"started_at\":\"%s\",\"duration_ms\":%" PRIu64 "}",
                         report->timed_out ? "true" : "false", report->started_at, report->duration_ms);
    return failed;
}

static int push_answer(lua_State *L, struct asked *asked)
{
    struct signalling_report report;
    signalling_tell(asked->signalling, &report);
    signalling_free(asked->signalling);
    asked->signalling = NULL;
    size_t len;
    if (append_answer(&asked->answer, asked->signal, &report) != 0)
        return luaL_error(L, "out of memory for an answer");
    char *text = buf_steal(&asked->answer, &len);
    lua_push_raw_json(L, text, len);
    return 1;
}

/* --- the wait */

struct signal_op {
    struct task *task;
    struct asked *asked;
};

/* The client left: what was promised still happens. */
static void on_cancel(void *ctx)
{
    struct signal_op *op = ctx;
    if (op->asked == NULL)
        return;
    signalling_free(op->asked->signalling);
    op->asked->signalling = NULL;
}

static void on_over(void *ctx)
{
    task_resume(((struct signal_op *)ctx)->task);
}

static int signal_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    return push_answer(L, ((struct signal_op *)context)->asked);
}

static const char *const option_keys[] = {"signal", "scope", "escalate_ms", "wait_ms", NULL};

/* proc.signal(id, {signal=, scope=, escalate_ms=, wait_ms=}) -> JSON | nil, code, message, field.  Yields. */
int bind_proc_signal(lua_State *L)
{
    const struct host *host = script_host(L);
    struct err err;
    size_t id_len;
    const char *id = luaL_checklstring(L, 1, &id_len);
    struct task *task = task_check(L);
    lua_check_keys(L, 2, option_keys, "proc.signal");
    lua_settop(L, 2);
    size_t name_len = strlen("SIGTERM");
    const char *name = lua_field_string(L, 2, "signal", &name_len);
    lua_Integer escalate_ms = lua_field_int(L, 2, "escalate_ms", -1, -1, WAIT_MAX_MS);
    unsigned wait_ms = (unsigned)lua_field_int(L, 2, "wait_ms", 0, 0, WAIT_MAX_MS);
    struct signal_request request = {
        .signal = signals_for_client(name != NULL ? name : "SIGTERM", name_len, &err),
        .tree = read_tree(L),
        .escalates = escalate_ms >= 0,
        .escalate_ms = escalate_ms >= 0 ? (unsigned)escalate_ms : 0,
    };
    if (request.signal == 0)
        return lua_push_err(L, &err);
    struct asked *asked = asked_push(L);
    struct signal_op *op = task_op_new(L, sizeof(*op), true, on_cancel);
    op->task = task;
    asked->signal = request.signal;
    asked->signalling = process_signal_ask(host->processes, strlen(id) == id_len ? id : "", &request, &err);
    if (asked->signalling == NULL) {
        task_op_end(L);
        return lua_push_err(L, &err);
    }
    op->asked = asked;
    if (!signalling_wait(asked->signalling, wait_ms, on_over, op)) {
        task_op_end(L);
        return push_answer(L, asked);
    }
    return lua_yieldk(L, 0, (lua_KContext)op, signal_done);
}
