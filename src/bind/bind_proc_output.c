/* abx.proc: what a process printed, as parts for answers and as streams for those who follow it. Called by the routes
 * of processes. */
#include "bind/bind_fs.h"
#include "bind/bind_proc.h"
#include "bind/bind_stream.h"
#include "bind/host.h"
#include "prim/capture_text.h"
#include "prim/exit_json.h"
#include "prim/process_part.h"
#include "script/bindings.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOW_META "abx.proc.follow"

enum { ON_LOOP_MAX_BYTES = 256 * 1024 }; /* more becomes text on a thread: the worst of this takes some 5 ms */

static const char *const stream_names[] = {"stdout", "stderr"};
static const char *const offset_names[] = {"stdout_offset", "stderr_offset"};

/* A process whose output somebody wants, and which of it. */
struct follow {
    struct task_owned owned;
    struct process *process; /* a reference; NULL once closed */
    struct stream_options options;
    size_t limit;
};

/* --- from the call's arguments */

static void give_up(struct follow *follow)
{
    task_disown(&follow->owned);
    process_unref(follow->process);
    follow->process = NULL;
}

static int follow_close(lua_State *L)
{
    give_up(luaL_checkudata(L, 1, FOLLOW_META));
    return 0;
}

static void on_task_end(struct task_owned *owned)
{
    give_up(LIST_ENTRY(owned, struct follow, owned));
}

static struct follow *push_follow(lua_State *L)
{
    struct follow *follow = lua_newuserdatauv(L, sizeof(*follow), 0);
    memset(follow, 0, sizeof(*follow));
    luaL_setmetatable(L, FOLLOW_META);
    task_own(task_check(L), &follow->owned, on_task_end);
    return follow;
}

static int find_process(lua_State *L, struct follow *follow, const char *id, struct err *err)
{
    const struct host *host = script_host(L);
    struct process *process = process_find(host->processes, id);
    if (process == NULL) {
        if (strspn(id, "0123456789") == strlen(id))
            err_set(err, ERR_PROCESS_NOT_FOUND,
                    "%s is the pid of no living process that was started here, and of others no output is kept", id);
        else
            err_set(err, ERR_PROCESS_NOT_FOUND, "no process has the id %s; ended ones are kept for some time only", id);
        return err_field(err, "id");
    }
    if (process_kind(process) == PROCESS_TERMINAL) {
        err_set(err, ERR_INVALID_REQUEST, "%s is a terminal: attach to it by WebSocket, as POST /pty tells", id);
        return err_field(err, "id");
    }
    follow->process = process_ref(process);
    return 0;
}

/* Where one stream begins; -1: an offset was not given. */
static int place(struct follow *follow, enum process_stream stream, lua_Integer offset, lua_Integer tail_bytes,
                 struct err *err)
{
    uint64_t *begin = &follow->options.offset[stream];
    *begin = offset >= 0 ? (uint64_t)offset : 0;
    if (!follow->options.wanted[stream])
        return 0;
    if (tail_bytes >= 0)
        *begin = process_part_tail(follow->process, stream, (uint64_t)tail_bytes, !follow->options.base64);
    uint64_t end = process_part_end(follow->process, stream);
    if (*begin <= end)
        return 0;
    err_set(err, ERR_INVALID_REQUEST, "%" PRIu64 " is beyond the %" PRIu64 " bytes of %s that came so far", *begin, end,
            stream_names[stream]);
    return err_field(err, offset_names[stream]);
}

static const char *const option_keys[] = {"stream", "stdout_offset", "stderr_offset", "tail_bytes",
                                          "limit",  "encoding",      "wait_ms",       NULL};

/* Pushes what (id, options) ask for; NULL with *err. */
static struct follow *read_follow(lua_State *L, const char *what, struct err *err)
{
    const char *id = luaL_checkstring(L, 1);
    lua_check_keys(L, 2, option_keys, what);
    const char *encoding = lua_field_string(L, 2, "encoding", NULL);
    const char *stream = lua_field_string(L, 2, "stream", NULL);
    lua_Integer offset[2], tail_bytes = lua_field_int(L, 2, "tail_bytes", -1, 0, LUA_MAXINTEGER);
    for (int i = 0; i < 2; i++)
        offset[i] = lua_field_int(L, 2, offset_names[i], -1, 0, LUA_MAXINTEGER);
    struct follow *follow = push_follow(L);
    follow->limit = (size_t)lua_field_int(L, 2, "limit", RING_MAX_BYTES, 1, RING_MAX_BYTES);
    follow->options.wait_ms = lua_field_int(L, 2, "wait_ms", -1, 0, INT32_MAX);
    follow->options.base64 = encoding != NULL && strcmp(encoding, "base64") == 0;
    bind_stream_choice(stream, follow->options.wanted);
    if (tail_bytes >= 0 && (offset[0] >= 0 || offset[1] >= 0)) {
        err_set(err, ERR_INVALID_REQUEST, "give offsets or tail_bytes, not both");
        err_field(err, "tail_bytes");
        return NULL;
    }
    if (find_process(L, follow, id, err) != 0)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (place(follow, i, offset[i], tail_bytes, err) != 0)
            return NULL;
    return follow;
}

/* --- one part of it, as an answer */

/* Makes the answer, here or on a thread: plain data, a copy of what was printed. */
struct part_job {
    struct fs_job job;
    struct {
        struct process_part part;
        uint64_t total;
        char *bytes;
    } streams[2];
    char id[32];
    struct buf exit; /* the exit fields */
    bool base64, eof;
};

static int append_gaps(struct buf *out, const struct part_job *job)
{
    int failed = 0, gaps = 0;
    for (int i = 0; i < 2; i++) {
        const struct process_part *part = &job->streams[i].part;
        if (part->gap_from < part->gap_to)
            failed |= buf_printf(out, "%s\"%s\":{\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}", gaps++ ? "," : ",\"gap\":{",
                                 stream_names[i], part->gap_from, part->gap_to);
    }
    if (gaps > 0)
        failed |= buf_append(out, "}", 1);
    return failed;
}

static int part_run(struct fs_job *fs_job, struct err *err)
{
    struct part_job *job = (struct part_job *)fs_job;
    struct buf *out = &fs_job->answer;
    const struct capture_text how = {.base64 = job->base64, .json = true};
    bool lossy = false;
    int failed = buf_printf(out, "{\"id\":\"%s\"", job->id);
    for (int i = 0; i < 2; i++) {
        const struct process_part *part = &job->streams[i].part;
        size_t len = (size_t)(part->to - part->from);
        const struct capture_view view = {.head = job->streams[i].bytes, .head_len = len, .total_bytes = len};
        failed |= buf_printf(out, ",\"%s\":", stream_names[i]);
        failed |= capture_text_append(out, &view, &how, &lossy);
        failed |= buf_printf(out, ",\"%s\":%" PRIu64 ",\"%s_bytes\":%" PRIu64, offset_names[i], part->to,
                             stream_names[i], job->streams[i].total);
        free(job->streams[i].bytes);
        job->streams[i].bytes = NULL;
    }
    failed |= append_gaps(out, job);
    failed |= buf_printf(out, ",\"lossy\":%s,\"eof\":%s,", lossy ? "true" : "false", job->eof ? "true" : "false");
    failed |= buf_append(out, job->exit.data, job->exit.len);
    failed |= buf_append(out, "}", 1);
    return failed != 0 ? err_set(err, ERR_INTERNAL, "out of memory for the output of %s", job->id) : 0;
}

static void part_free(struct fs_job *fs_job)
{
    struct part_job *job = (struct part_job *)fs_job;
    for (int i = 0; i < 2; i++)
        free(job->streams[i].bytes);
    buf_deinit(&job->exit);
    free(job);
}

/* Copies one stream's part. -1 out of memory. */
static int copy_part(struct part_job *job, const struct follow *follow, enum process_stream stream)
{
    const struct process *process = follow->process;
    struct process_part *part = &job->streams[stream].part;
    uint64_t offset = follow->options.offset[stream];
    job->streams[stream].total = process_part_end(process, stream);
    *part = (struct process_part){.from = offset, .to = offset};
    if (!follow->options.wanted[stream])
        return 0;
    *part = process_part_find(process, stream, offset, follow->limit, !job->base64);
    size_t len = (size_t)(part->to - part->from);
    job->eof = job->eof && part->last;
    job->streams[stream].bytes = malloc(len + 1);
    if (job->streams[stream].bytes == NULL)
        return -1;
    ring_copy(process_ring(process, stream), part->from, job->streams[stream].bytes, len);
    return 0;
}

static int answer(lua_State *L, struct follow *follow)
{
    struct part_job *job = fs_job_new(L, sizeof(*job), part_run, part_free);
    job->job.blamed = NULL;
    strncpy(job->id, process_id(follow->process), sizeof(job->id) - 1);
    job->base64 = follow->options.base64;
    job->eof = process_state(follow->process) == PROCESS_DRAINED;
    buf_init(&job->exit, 512);
    if (copy_part(job, follow, PROCESS_STDOUT) != 0 || copy_part(job, follow, PROCESS_STDERR) != 0 ||
        exit_json_append(&job->exit, follow->process) != 0) {
        part_free(&job->job);
        return luaL_error(L, "out of memory for the output of a process");
    }
    give_up(follow);
    uint64_t bytes = 0;
    for (int i = 0; i < 2; i++)
        bytes += job->streams[i].part.to - job->streams[i].part.from;
    return fs_job_start(L, &job->job, bytes <= ON_LOOP_MAX_BYTES ? FS_JOB_ON_LOOP : FS_JOB_ON_SHORT_THREADS, true);
}

/* --- waiting for it */

struct wait_op {
    struct task *task;
    struct follow *follow; /* on the task's stack */
    struct process_reader reader;
    struct loop_timer timer;
};

/* Whether an answer would tell something new. */
static bool has_news(const struct follow *follow)
{
    if (process_state(follow->process) == PROCESS_DRAINED)
        return true;
    for (int i = 0; i < 2; i++) {
        if (!follow->options.wanted[i])
            continue;
        if (process_part_find(follow->process, i, follow->options.offset[i], follow->limit, !follow->options.base64)
                .to > follow->options.offset[i])
            return true;
    }
    return false;
}

static void wait_stop(void *ctx)
{
    struct wait_op *op = ctx;
    process_reader_detach(&op->reader);
    loop_timer_stop(&op->timer);
}

static void on_wait_over(void *ctx)
{
    struct wait_op *op = ctx;
    wait_stop(op);
    task_resume(op->task);
}

static void on_more(void *ctx)
{
    if (has_news(((struct wait_op *)ctx)->follow))
        on_wait_over(ctx);
}

static int wait_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    return answer(L, ((struct wait_op *)context)->follow);
}

/* proc.output(id, {stream=, stdout_offset=, stderr_offset=, tail_bytes=, limit=, encoding=, wait_ms=}) -> JSON | nil,
 * code, message, field.  Yields. */
int bind_proc_output(lua_State *L)
{
    struct err err = {0};
    struct task *task = task_check(L);
    struct follow *follow = read_follow(L, "proc.output", &err);
    if (follow == NULL)
        return lua_push_err(L, &err);
    if (follow->options.wait_ms <= 0 || has_news(follow))
        return answer(L, follow);
    struct wait_op *op = task_op_new(L, sizeof(*op), true, wait_stop);
    op->task = task;
    op->follow = follow;
    op->reader.offset[0] = op->reader.offset[1] = PROCESS_NOT_READ; /* who polls paces nothing */
    process_reader_attach(follow->process, &op->reader, on_more, op);
    loop_timer_start(script_loop(L), &op->timer, (uint64_t)follow->options.wait_ms, on_wait_over, op);
    return lua_yieldk(L, 0, (lua_KContext)op, wait_done);
}

/* --- following it */

/* follow:stream(out) -> true when `exit` was sent, false when the client left, nil when wait_ms was over first. Yields.
 */
static int follow_stream(lua_State *L)
{
    struct follow *follow = luaL_checkudata(L, 1, FOLLOW_META);
    if (follow->process == NULL)
        return luaL_error(L, "this was closed");
    return bind_stream_start(L, follow->process, &follow->options);
}

/* proc.follow(id, {stream=, stdout_offset=, stderr_offset=, tail_bytes=, encoding=, wait_ms=}) -> follow | nil, code,
 * message, field. It keeps the process's entry until it is closed. */
int bind_proc_follow(lua_State *L)
{
    struct err err = {0};
    task_check(L);
    return read_follow(L, "proc.follow", &err) != NULL ? 1 : lua_push_err(L, &err);
}

void bind_proc_output_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"stream", follow_stream}, {NULL, NULL}};
    luaL_newmetatable(L, FOLLOW_META);
    lua_pushcfunction(L, follow_close);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__close");
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
