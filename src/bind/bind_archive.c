/* fs.archive: a directory as one stream, made by a helper process that can be ended with its client. */
#include "bind/bind_fs.h"
#include "bind/host.h"
#include "prim/process.h"
#include "script/bindings.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARCHIVE_META "abx.fs.archive"

/* How often a paused download says that it still wants the rest; a reader silent for 30 s no longer counts. */
enum { STILL_HERE_MS = 10000 };
enum { GUARDS_MAX = 64 };

struct archive {
    int dir_fd; /* -1 once it was streamed */
    const char *format;
    char top_name[NAME_MAX + 1]; /* the directory's own name, under which all entries stand */
    char dir[PATH_MAX];
};

/* The operation of archive:stream. */
struct pump {
    struct task *task;
    struct loop *loop;
    struct process *process;
    struct process_reader reader;
    struct sink *sink;
    struct loop_timer still_here;
    enum { PUMP_RUNNING, PUMP_SENT, PUMP_GONE, PUMP_FAILED } outcome;
    struct err err;
};

static void open_dir_work(void *ctx)
{
    struct path_job *job = ctx;
    job->fd = confine_open_dir(job->confine, job->path, job->len, &job->err);
    if (job->fd < 0)
        return;
    if (confine_is_kernel_fs(job->fd))
        err_set(&job->err, ERR_NOT_A_REGULAR_FILE, "directories of /proc and /sys are not archived");
    else if (confine_path_of(job->fd, job->real, sizeof(job->real), &job->err) == 0)
        return;
    close(job->fd);
    job->fd = -1;
}

static int archive_done(lua_State *L, int status, lua_KContext context)
{
    struct archive *archive = lua_touserdata(L, 3);
    struct err err;
    (void)status;
    int fd = path_job_take(context, NULL, archive->dir, &err);
    if (fd < 0)
        return lua_push_err(L, &err);
    archive->dir_fd = fd;
    const char *name = strrchr(archive->dir, '/');
    name = name ? name + 1 : archive->dir;
    snprintf(archive->top_name, sizeof(archive->top_name), "%.*s", NAME_MAX, *name ? name : "root");
    lua_pushvalue(L, 3);
    return 1;
}

/* fs.archive(path, "tar.gz"|"zip") -> archive | nil, code, message, field.  Yields. */
int bind_fs_archive(lua_State *L)
{
    static const char *const formats[] = {"tar.gz", "zip", NULL};
    size_t len;
    const char *path = luaL_checklstring(L, 1, &len);
    const char *format = formats[luaL_checkoption(L, 2, NULL, formats)];
    lua_settop(L, 2);
    struct archive *archive = lua_newuserdatauv(L, sizeof(*archive), 0);
    archive->dir_fd = -1;
    archive->format = format;
    archive->top_name[0] = archive->dir[0] = '\0';
    luaL_setmetatable(L, ARCHIVE_META);
    return path_job_start(L, path, len, open_dir_work, archive_done);
}

static void close_dir(struct archive *archive)
{
    if (archive->dir_fd >= 0)
        close(archive->dir_fd);
    archive->dir_fd = -1;
}

static int on_archive_gc(lua_State *L)
{
    close_dir(luaL_checkudata(L, 1, ARCHIVE_META));
    return 0;
}

/* Leaves no callback behind; a helper that still runs is ended. */
static void pump_close(struct pump *pump)
{
    loop_timer_stop(&pump->still_here);
    if (!pump->process)
        return;
    process_reader_detach(&pump->reader);
    if (process_state(pump->process) == PROCESS_RUNNING)
        process_stop(pump->process);
    process_unref(pump->process);
    pump->process = NULL;
    pump->sink->on_drain = pump->sink->on_gone = NULL;
}

static void pump_cancel(void *op)
{
    pump_close(op);
}

static void pump_end(struct pump *pump, int outcome)
{
    pump->outcome = outcome;
    pump_close(pump);
    task_resume(pump->task);
}

/* The helper says on stderr what went wrong: the end of it, on one line. */
static void say_failure(struct pump *pump, const char *what)
{
    const struct ring *ring = process_ring(pump->process, PROCESS_STDERR);
    uint64_t from = ring->end - ring->start > 160 ? ring->end - 160 : ring->start;
    const char *bytes;
    size_t len = ring_peek(ring, from, &bytes);
    char text[161];
    if (len > sizeof(text) - 1)
        len = sizeof(text) - 1;
    for (size_t i = 0; i < len; i++)
        text[i] = bytes[i];
    while (len > 0 && text[len - 1] == '\n')
        len--;
    text[len] = '\0';
    for (char *at = text; *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    err_set(&pump->err, ERR_INTERNAL, "%s%s%s", what, len ? ": " : "", text);
}

/* The helper has ended and all it wrote was sent. */
static void pump_exit(struct pump *pump)
{
    struct process_exit exit;
    if (process_exit(pump->process, &exit) == 0 && exit.exit_code == 0) {
        pump_end(pump, PUMP_SENT);
        return;
    }
    say_failure(pump, "the archive could not be made");
    pump_end(pump, PUMP_FAILED);
}

/* Moves as much as there is and the sink takes. From the loop. */
static void pump_step(void *ctx)
{
    struct pump *pump = ctx;
    const struct ring *ring = process_ring(pump->process, PROCESS_STDOUT);
    uint64_t *offset = &pump->reader.offset[PROCESS_STDOUT];
    bool took = false;
    /* What the helper complains of stays in its ring and must not hold it up. */
    pump->reader.offset[PROCESS_STDERR] = process_ring(pump->process, PROCESS_STDERR)->end;
    for (size_t room; (room = sink_room(pump->sink)) > 0;) {
        if (*offset < ring->start) {
            say_failure(pump, "a part of the archive was lost to a slow reader");
            pump_end(pump, PUMP_FAILED);
            return;
        }
        const char *bytes;
        size_t len = ring_peek(ring, *offset, &bytes);
        if (len == 0)
            break;
        len = len < room ? len : room;
        if (sink_write(pump->sink, bytes, len) == SINK_GONE) {
            pump_end(pump, PUMP_GONE);
            return;
        }
        *offset += len;
        took = true;
    }
    if (took)
        process_reader_took(&pump->reader);
    if (process_state(pump->process) == PROCESS_DRAINED && *offset >= ring->end)
        pump_exit(pump);
}

static void on_gone(void *ctx)
{
    pump_end(ctx, PUMP_GONE);
}

static void on_still_here(void *ctx)
{
    struct pump *pump = ctx;
    process_reader_took(&pump->reader);
    loop_timer_start(pump->loop, &pump->still_here, STILL_HERE_MS, on_still_here, pump);
}

/* The coded failure that becomes the problem reply, or here cuts the stream. */
static int raise(lua_State *L, const struct err *err)
{
    lua_getglobal(L, "fail");
    lua_pushstring(L, err_code_name(err->code));
    lua_pushstring(L, err->text);
    lua_call(L, 2, 0);
    return 0;
}

static int stream_done(lua_State *L, int status, lua_KContext context)
{
    struct pump *pump = (struct pump *)context;
    (void)status;
    if (pump->outcome == PUMP_FAILED)
        return raise(L, &pump->err);
    lua_pushboolean(L, pump->outcome == PUMP_SENT);
    return 1;
}

static struct process *start_helper(const struct host *host, const struct archive *archive, struct err *err)
{
    const char *argv[4 + GUARDS_MAX + 1] = {host->helper_path, "archive", archive->format, archive->top_name};
    /* The helper walks by itself, so it is told what it must leave out. */
    char words[GUARDS_MAX][CONFINE_GUARD_WORD_MAX];
    const struct confine_guard *guards;
    size_t guard_count = confine_guards(host->confine, &guards);
    if (guard_count > GUARDS_MAX) {
        err_set(err, ERR_INTERNAL, "too many protected paths");
        return NULL;
    }
    for (size_t i = 0; i < guard_count; i++) {
        confine_guard_word(&guards[i], words[i]);
        argv[4 + i] = words[i];
    }
    struct process_spec spec = {
        .kind = PROCESS_HELPER,
        .argv = (char *const *)argv,
        .cwd_fd = archive->dir_fd,
        .cwd = archive->dir,
        .env = process_table_own_env(host->processes),
        .stdin_fd = archive->dir_fd,
        .pace = true,
    };
    return process_start(host->processes, &spec, err);
}

/* archive:stream(out) -> true | false where the client left; raises a coded failure.  Yields; bounded by the stream. */
static int bind_archive_stream(lua_State *L)
{
    struct archive *archive = luaL_checkudata(L, 1, ARCHIVE_META);
    struct task *task = task_check(L);
    struct host *host = script_host(L);
    struct sink *sink = lua_arg_out(L, 2);
    if (archive->dir_fd < 0)
        return luaL_error(L, "an archive can be streamed once");
    if (sink->gone || sink->state != SINK_OPEN) {
        lua_pushboolean(L, 0);
        return 1;
    }
    struct pump *pump = task_op_new(L, sizeof(*pump), true, pump_cancel);
    struct err err;
    struct process *process = start_helper(host, archive, &err);
    close_dir(archive); /* the helper has its own */
    if (!process) {
        task_op_end(L);
        return raise(L, &err);
    }
    pump->task = task;
    pump->loop = host->loop;
    pump->process = process_ref(process);
    pump->sink = sink;
    sink->producer = pump;
    sink->on_drain = pump_step;
    sink->on_gone = on_gone;
    process_reader_attach(process, &pump->reader, pump_step, pump);
    loop_timer_start(host->loop, &pump->still_here, STILL_HERE_MS, on_still_here, pump);
    return lua_yieldk(L, 0, (lua_KContext)pump, stream_done);
}

static int archive_index(lua_State *L)
{
    const struct archive *archive = luaL_checkudata(L, 1, ARCHIVE_META);
    const char *key = luaL_checkstring(L, 2);
    if (strcmp(key, "name") == 0)
        lua_pushfstring(L, "%s.%s", archive->top_name, archive->format);
    else if (strcmp(key, "stream") == 0)
        lua_pushcfunction(L, bind_archive_stream);
    else
        return luaL_error(L, "an archive has no field '%s'", key);
    return 1;
}

void bind_archive_open(lua_State *L)
{
    bind_fs_metatable(L, ARCHIVE_META, archive_index, on_archive_gc);
}
