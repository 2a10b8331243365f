/* abx.git: where a repository stands or is to stand, and calls to the helper that works on it. Called by scripts. */
#include "base/base64.h"
#include "base/json.h"
#include "base/json_member.h"
#include "bind/bind.h"
#include "bind/bind_fs.h"
#include "bind/bind_worker.h"
#include "bind/git_workers.h"
#include "bind/host.h"
#include "prim/clone_target.h"
#include "prim/make_dir.h"
#include "script/bindings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACE_META "abx.git.place"

enum { PARAMS_MAX_BYTES = 8 * 1024 * 1024, ANSWER_MARGIN_BYTES = 256 };

enum place_kind {
    PLACE_EXISTING, /* a directory in a repository */
    PLACE_NEW,      /* a directory, made where it is missing */
    PLACE_CLONE,    /* see clone_target.h */
};
static const char *const place_kinds[] = {"existing", "new", "clone", NULL};

/* Plain data while a thread works on it. */
struct place {
    struct git_workers *git;
    const struct confine *confine;
    enum place_kind kind;
    struct task *task; /* who waits for the thread; NULL once the request is gone */
    bool busy;         /* a thread works on it, */
    bool given_up;     /* and nobody wants the result */
    bool failed;
    struct err err;
    char real[PATH_MAX];
    struct clone_target target;
    bool has_target;         /* of a clone that has not succeeded */
    struct process *process; /* that works on it, or has */
    size_t len;
    char path[]; /* len bytes, as the client wrote it */
};

/* Leaving its scope takes back what a failed clone left. */
struct place_ud {
    struct task_owned owned;
    struct place *place; /* NULL: closed */
};

static void place_free(struct place *place)
{
    if (place->has_target)
        git_workers_undo(place->git, &place->target, place->process);
    process_unref(place->process);
    free(place);
}

static void give_up(struct place_ud *ud)
{
    struct place *place = ud->place;
    task_disown(&ud->owned);
    ud->place = NULL;
    if (!place)
        return;
    place->given_up = true;
    if (!place->busy)
        place_free(place);
}

static void on_task_end(struct task_owned *owned)
{
    give_up(LIST_ENTRY(owned, struct place_ud, owned));
}

static int place_close(lua_State *L)
{
    give_up(luaL_checkudata(L, 1, PLACE_META));
    return 0;
}

/* --- looking it up */

static int look_existing(struct place *place)
{
    int fd = confine_open_dir(place->confine, place->path, place->len, &place->err);
    if (fd < 0)
        return -1;
    int result = confine_path_of(fd, place->real, sizeof(place->real), &place->err);
    close(fd);
    return result;
}

static int look_clone(struct place *place)
{
    if (clone_target_open(place->confine, place->path, place->len, &place->target, &place->err) != 0)
        return -1;
    place->has_target = true;
    memcpy(place->real, place->target.path, sizeof(place->real));
    return 0;
}

static void on_work(void *ctx)
{
    struct place *place = ctx;
    bool created;
    switch (place->kind) {
    case PLACE_EXISTING:
        place->failed = look_existing(place) != 0;
        break;
    case PLACE_NEW:
        place->failed =
            make_dir(place->confine, place->path, place->len, true, -1, place->real, &created, &place->err) != 0;
        break;
    case PLACE_CLONE:
        place->failed = look_clone(place) != 0;
        break;
    }
}

static void on_work_done(void *ctx)
{
    struct place *place = ctx;
    place->busy = false;
    if (place->given_up)
        place_free(place);
    else if (place->task)
        task_resume(place->task);
}

struct place_op {
    struct place *place;
};

/* The userdata is given up afterwards, which sees to the rest. */
static void on_place_cancel(void *op)
{
    ((struct place_op *)op)->place->task = NULL;
}

static int place_done(lua_State *L, int status, lua_KContext context)
{
    struct place_ud *ud = luaL_checkudata(L, 3, PLACE_META);
    (void)status;
    (void)context;
    if (!ud->place->failed)
        return 1;
    struct err err = ud->place->err;
    give_up(ud);
    if (err.field[0] == '\0')
        err_field(&err, "path");
    return lua_push_err(L, &err);
}

static struct place_ud *push_place(lua_State *L, const char *path, size_t len)
{
    struct place_ud *ud = lua_newuserdatauv(L, sizeof(*ud), 0);
    *ud = (struct place_ud){0};
    luaL_setmetatable(L, PLACE_META);
    task_own(task_check(L), &ud->owned, on_task_end);
    ud->place = calloc(1, sizeof(*ud->place) + len);
    if (!ud->place)
        luaL_error(L, "out of memory");
    memcpy(ud->place->path, path, len);
    ud->place->len = len;
    return ud;
}

/* git.place(path, "existing"|"new"|"clone") -> place | nil, code, message, field. A directory below the base; "new"
 * makes it where it is missing, "clone" makes what is missing above it. Hold it in a <close> variable.  Yields. */
static int bind_git_place(lua_State *L)
{
    size_t len;
    const struct host *host = script_host(L);
    const char *path = luaL_checklstring(L, 1, &len);
    int kind = luaL_checkoption(L, 2, NULL, place_kinds);
    struct task *task = task_check(L);
    lua_settop(L, 2);
    struct place *place = push_place(L, path, len)->place;
    place->git = host->git;
    place->confine = host->confine;
    place->kind = (enum place_kind)kind;
    place->task = task;
    struct place_op *op = task_op_new(L, sizeof(*op), false, on_place_cancel);
    op->place = place;
    place->busy = loop_job(host->loop, on_work, on_work_done, place) == 0;
    if (place->busy)
        return lua_yieldk(L, 0, (lua_KContext)op, place_done);
    struct err err;
    task_op_end(L);
    err_set_errno(&err, ERR_UNAVAILABLE, ENOMEM, "cannot look for a directory");
    return lua_push_err(L, &err);
}

/* --- calling */

struct git_ask {
    struct place *place;
    bool flat;
    uint64_t started_ns;
    char what[64];
    char method[32];
};

static void on_sent(void *ctx, struct process *process)
{
    struct git_ask *ask = ctx;
    ask->place->process = process_ref(process);
}

static void on_cancelled(void *ctx, struct worker *worker)
{
    git_workers_let_go(((struct git_ask *)ctx)->place->git, worker);
}

/* The helper's answer is {"root","head","result"}, and what clients get has more members: before them. */
static int write_answer(struct buf *out, const struct git_ask *ask, const char *answer, size_t len)
{
    uint64_t duration_ms = (loop_clock_ns() - ask->started_ns) / 1000000;
    if (buf_printf(out, "{\"operation\":\"%s\",\"duration_ms\":%llu,", ask->method, (unsigned long long)duration_ms) <
        0)
        return -1;
    return buf_append(out, answer + 1, len - 1);
}

/* The result alone. */
static int write_flat(struct buf *out, const char *answer, size_t len)
{
    struct json_span result = json_member(answer, len, "result");
    if (result.text == NULL)
        return -1;
    return buf_append(out, result.text, result.len);
}

static int push_answer(lua_State *L, void *ctx, const char *answer, size_t len)
{
    struct git_ask *ask = ctx;
    struct buf *out = lua_push_buf(L, WORKER_LINE_MAX_BYTES + ANSWER_MARGIN_BYTES);
    if (ask->place->has_target) {
        ask->place->has_target = false;
        clone_target_close(&ask->place->target);
    }
    if (len < 2 || answer[0] != '{' || buf_reserve(out, len + ANSWER_MARGIN_BYTES) != 0 ||
        (ask->flat ? write_flat(out, answer, len) : write_answer(out, ask, answer, len)) != 0)
        return luaL_error(L, "%s: the helper's answer cannot be passed on", ask->what);
    size_t text_len;
    char *text = buf_steal(out, &text_len);
    lua_push_raw_json(L, text, text_len);
    return 1;
}

static int write_path(struct buf *out, const struct place *place)
{
    if (buf_append_text(out, "\"path_base64\":\"") != 0 || base64_encode(out, place->real, strlen(place->real)) != 0 ||
        buf_append_text(out, "\"") != 0)
        return -1;
    if (place->kind != PLACE_CLONE)
        return 0;
    if (json_write_text(out, ",\"temporary\":", place->target.temporary) != 0)
        return -1;
    return place->target.inside ? buf_append_text(out, ",\"inside\":true") : 0;
}

/* The members of the table at `table`, and those that are ours. */
static struct buf *push_params(lua_State *L, int table, const struct place *place, uint64_t timeout_ms)
{
    struct err err;
    struct buf *out = lua_push_buf(L, PARAMS_MAX_BYTES);
    if (lua_write_json(L, table, out, &err) != 0)
        luaL_argerror(L, table, lua_pushstring(L, err.text));
    if (out->len == 0 || out->data[0] != '{')
        luaL_argerror(L, table, "a table of parameters is wanted");
    out->len--; /* its } */
    if (buf_append_text(out, out->len > 1 ? "," : "") != 0 || write_path(out, place) != 0 ||
        buf_printf(out, ",\"timeout_ms\":%llu}", (unsigned long long)timeout_ms) != 0)
        luaL_error(L, "out of memory for the parameters");
    return out;
}

static const char *const option_keys[] = {"operation", "timeout_ms", "single", "flat", NULL};

/* git.call(place, {operation, timeout_ms, single, flat}, params) -> JSON | nil, code, message, field, data. Once for a
 * place. single: in a process of its own, which is ended where it is late. flat: the answer is the result alone.
 * Yields; bounded by timeout_ms. */
static int bind_git_call(lua_State *L)
{
    struct place_ud *ud = luaL_checkudata(L, 1, PLACE_META);
    lua_check_keys(L, 2, option_keys, "git.call");
    luaL_checktype(L, 3, LUA_TTABLE);
    if (!ud->place || ud->place->busy || ud->place->process)
        return luaL_error(L, "a place is good for one call");
    const char *operation = lua_field_string(L, 2, "operation", NULL);
    uint64_t timeout_ms = (uint64_t)lua_field_int(L, 2, "timeout_ms", 60000, 1, INT32_MAX);
    bool single = lua_field_bool(L, 2, "single", false), flat = lua_field_bool(L, 2, "flat", false);
    if (!operation || strspn(operation, "abcdefghijklmnopqrstuvwxyz_") != strlen(operation))
        return luaL_argerror(L, 2, "'operation' is wanted, a plain name");
    struct buf *params = push_params(L, 3, ud->place, timeout_ms);
    struct git_ask *ask = lua_newuserdatauv(L, sizeof(*ask), 0);
    *ask = (struct git_ask){.place = ud->place, .flat = flat, .started_ns = loop_clock_ns()};
    snprintf(ask->what, sizeof(ask->what), "git %s", operation);
    snprintf(ask->method, sizeof(ask->method), "%s", operation);
    struct bind_worker call = {
        .single = single,
        .what = ask->what,
        .method = ask->method,
        .params = params,
        .timeout_ms = timeout_ms,
        .ctx = ask,
        .on_sent = on_sent,
        .on_cancelled = on_cancelled,
        .push = push_answer,
    };
    task_check(L); /* raises, where it does, before there is a worker that nobody would retire */
    call.worker = git_workers_pick(ud->place->git, single);
    return bind_worker_call(L, &call);
}

int bind_git_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"place", bind_git_place}, {"call", bind_git_call}, {NULL, NULL}};
    bind_fs_metatable(L, PLACE_META, NULL, place_close);
    luaL_getmetatable(L, PLACE_META);
    lua_pushcfunction(L, place_close);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
