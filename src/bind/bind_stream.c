/* The one pump from a process's rings to a client's event stream: run:stream of bind_run, follow:stream of
 * bind_proc_output, cell:stream of bind_code.
 *
 * Output goes from the ring as JSON into one event, and from there into the sink, without passing through Lua. While
 * the sink is full the reader takes nothing, and that slows the program itself down. */
#include "bind/bind_stream.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "model/sse.h"
#include "prim/exit_json.h"
#include "prim/process_part.h"
#include "script/bindings.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK_BYTES = 64 * 1024,
    EVENT_MAX_BYTES = 8 * CHUNK_BYTES, /* a byte takes at most six, as \u0000 */
    EVENT_MARGIN_BYTES = 256,
};

struct stream {
    struct task *task;
    struct sink *sink;
    struct process *process;
    struct process_reader reader;
    uint64_t offset[2]; /* of the next byte to send */
    bool wanted[2];
    bool base64;
    struct stream_source *source; /* of events besides; NULL: a program's run */
    bool started, over, complete;
    bool timed_out; /* wait_ms was over first */
    struct loop_timer wait;
    int turn; /* the output that is looked at first: they alternate */
};

static const char *const stream_names[] = {"stdout", "stderr"};

/* Work space of one call of the pump; main thread only. */
static struct buf json = {.max = EVENT_MAX_BYTES}, event = {.max = EVENT_MAX_BYTES + EVENT_MARGIN_BYTES};
static char gathered[CHUNK_BYTES];

/* --- events */

/* The event, with where the output is now. What is too long for the work space goes by one of its own. */
static void send_text(struct stream *stream, const char *name, const char *text, size_t len)
{
    char id[48];
    struct buf large;
    struct buf *out = &event;
    snprintf(id, sizeof(id), "%" PRIu64 ".%" PRIu64, stream->offset[0], stream->offset[1]);
    buf_init(&large, len + EVENT_MARGIN_BYTES);
    if (len > EVENT_MAX_BYTES)
        out = &large;
    buf_reset(&event);
    if (sse_append(out, name, id, text, len) != 0 || sink_write(stream->sink, out->data, out->len) == SINK_GONE)
        stream->over = true;
    buf_deinit(&large);
}

/* Sends what is in `json`. */
static void send(struct stream *stream, const char *name)
{
    send_text(stream, name, json.data, json.len);
    buf_reset(&json);
}

static void send_start(struct stream *stream)
{
    char started_at[32];
    process_started_at(stream->process, started_at);
    if (buf_printf(&json, "{\"id\":\"%s\",\"pid\":%d,\"started_at\":\"%s\"}", process_id(stream->process),
                   (int)process_pid(stream->process), started_at) == 0)
        send(stream, "start");
    stream->started = true;
}

static void send_exit(struct stream *stream)
{
    int failed = buf_append(&json, "{", 1);
    failed |= exit_json_append(&json, stream->process);
    failed |= buf_append(&json, "}", 1);
    if (failed == 0)
        send(stream, "exit");
    else
        stream->over = true;
    stream->complete = !stream->over;
    stream->over = true;
}

static void send_gap(struct stream *stream, enum process_stream which, uint64_t to)
{
    uint64_t from = stream->offset[which];
    stream->offset[which] = to;
    if (buf_printf(&json, "{\"stream\":\"%s\",\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}", stream_names[which], from,
                   to) == 0)
        send(stream, "gap");
}

static int write_chunk(const struct stream *stream, const char *bytes, size_t len, uint64_t offset)
{
    int failed = buf_append_text(&json, "{\"data\":\"");
    failed |= stream->base64 ? base64_encode(&json, bytes, len) : json_write_escaped(&json, bytes, len);
    failed |= buf_printf(&json, "\",\"offset\":%" PRIu64 "%s}", offset,
                         stream->base64           ? ",\"encoding\":\"base64\""
                         : utf8_valid(bytes, len) ? ""
                                                  : ",\"lossy\":true");
    return failed;
}

static void send_chunk(struct stream *stream, enum process_stream which, const char *bytes, size_t len)
{
    uint64_t offset = stream->offset[which];
    stream->offset[which] += len;
    if (write_chunk(stream, bytes, len, offset) == 0)
        send(stream, stream_names[which]);
    else
        stream->over = true; /* memory is out: the client sees a stream cut without an exit, and may resume */
}

/* --- the pump */

/* The bytes of a part in one piece, although they may lie round the end of the ring. */
static const char *gather(const struct ring *ring, uint64_t offset, size_t len)
{
    const char *bytes = NULL;
    if (ring_peek(ring, offset, &bytes) >= len)
        return bytes;
    ring_copy(ring, offset, gathered, len);
    return gathered;
}

/* Whether all output before `limit` is in the ring; a stream that ended before it has no more to come. */
static bool has_come(const struct stream *stream, enum process_stream which, uint64_t limit)
{
    return !stream->wanted[which] || process_part_end(stream->process, which) >= limit ||
           process_stream_closed(stream->process, which) || process_state(stream->process) == PROCESS_DRAINED;
}

/* One event of that stream, if there is anything to tell before `limit`. A character that stands across it is told
 * whole, unless nothing follows: then it ends there, whole or not. */
static bool send_next(struct stream *stream, enum process_stream which, uint64_t limit, bool last)
{
    uint64_t offset = stream->offset[which];
    if (!stream->wanted[which] || offset >= limit)
        return false;
    size_t bytes_max = limit - offset < CHUNK_BYTES ? (size_t)(limit - offset) : CHUNK_BYTES;
    struct process_part part = process_part_find(stream->process, which, offset, bytes_max, !stream->base64);
    if (last && part.from < limit &&
        (part.to > limit || (part.to == part.from && process_part_end(stream->process, which) >= limit)))
        part.to = limit;
    size_t len = (size_t)(part.to - part.from);
    if (part.gap_from < part.gap_to)
        send_gap(stream, which, part.gap_to);
    else if (len > 0)
        send_chunk(stream, which, gather(process_ring(stream->process, which), part.from, len), len);
    else
        return false;
    return true;
}

/* Output, and then what the source has to say after it. False: there is nothing. */
static bool send_one(struct stream *stream)
{
    static const struct stream_event none = {.after = {UINT64_MAX, UINT64_MAX}};
    const struct stream_event *next = stream->source != NULL ? stream->source->next(stream->source) : NULL;
    const struct stream_event *until = next != NULL ? next : &none;
    for (int i = 0; i < 2; i++) {
        int which = stream->turn ^ i;
        if (send_next(stream, which, until->after[which], until->last)) {
            stream->turn = which ^ 1;
            return true;
        }
    }
    if (next == NULL || !has_come(stream, PROCESS_STDOUT, next->after[0]) ||
        !has_come(stream, PROCESS_STDERR, next->after[1]))
        return false;
    if (next->name != NULL)
        send_text(stream, next->name, next->json, next->len);
    if (next->last) {
        stream->complete = !stream->over;
        stream->over = true;
    }
    stream->source->taken(stream->source);
    return true;
}

static void pump(struct stream *stream)
{
    bool moved = false;
    if (stream->sink->gone)
        stream->over = true;
    if (!stream->over && !stream->started && stream->source == NULL)
        send_start(stream);
    while (!stream->over && sink_room(stream->sink) > 0) {
        bool sent = send_one(stream);
        moved |= sent;
        if (!sent) {
            if (stream->source == NULL && process_state(stream->process) == PROCESS_DRAINED)
                send_exit(stream);
            break;
        }
    }
    if (moved) {
        for (int i = 0; i < 2; i++) {
            if (stream->wanted[i])
                stream->reader.offset[i] = stream->offset[i];
        }
        process_reader_took(&stream->reader);
    }
}

static void close_stream(struct stream *stream)
{
    process_reader_detach(&stream->reader);
    loop_timer_stop(&stream->wait);
    if (stream->source != NULL)
        stream->source->more = NULL;
    stream->sink->on_drain = NULL; /* the task takes them back */
    stream->sink->on_gone = NULL;
}

static void on_more(void *ctx)
{
    struct stream *stream = ctx;
    pump(stream);
    if (stream->over) {
        close_stream(stream);
        task_resume(stream->task);
    }
}

static void on_wait_over(void *ctx)
{
    struct stream *stream = ctx;
    stream->timed_out = true;
    close_stream(stream);
    task_resume(stream->task);
}

static void on_cancel(void *op)
{
    close_stream(op);
}

static int stream_done(lua_State *L, int status, lua_KContext context)
{
    const struct stream *stream = (const struct stream *)context;
    (void)status;
    if (stream->timed_out)
        lua_pushnil(L);
    else
        lua_pushboolean(L, stream->complete);
    return 1;
}

/* --- the binding */

static const char *const option_keys[] = {"encoding", "streams", "stdout_offset", "stderr_offset", "wait_ms", NULL};

/* run:stream(out [, {encoding=, streams=, stdout_offset=, stderr_offset=, wait_ms=}]) -> true when `exit` was sent,
 * false when the client left, nil when wait_ms was over first.  Yields. */
int bind_stream_run(lua_State *L, struct process *process)
{
    struct stream_options options = {.wait_ms = -1};
    const char *encoding = NULL, *streams = NULL;
    if (!lua_isnoneornil(L, 3)) {
        lua_check_keys(L, 3, option_keys, "run:stream");
        encoding = lua_field_string(L, 3, "encoding", NULL);
        streams = lua_field_string(L, 3, "streams", NULL);
        options.offset[0] = (uint64_t)lua_field_int(L, 3, "stdout_offset", 0, 0, LUA_MAXINTEGER);
        options.offset[1] = (uint64_t)lua_field_int(L, 3, "stderr_offset", 0, 0, LUA_MAXINTEGER);
        options.wait_ms = lua_field_int(L, 3, "wait_ms", -1, 0, INT32_MAX);
    }
    options.base64 = encoding != NULL && strcmp(encoding, "base64") == 0;
    bind_stream_choice(streams, options.wanted);
    return bind_stream_start(L, process, &options); /* the run on the stack keeps it */
}

void bind_stream_choice(const char *name, bool wanted[2])
{
    for (int i = 0; i < 2; i++)
        wanted[i] = name == NULL || strcmp(name, "both") == 0 || strcmp(name, stream_names[i]) == 0;
}

int bind_stream_start(lua_State *L, struct process *process, const struct stream_options *options)
{
    struct task *task = task_check(L);
    struct sink *sink = lua_arg_out(L, 2);
    luaL_argcheck(L, lua_arg_out_is_sse(L, 2), 2, "must have the content type text/event-stream");
    struct stream *stream = task_op_new(L, sizeof(*stream), true, on_cancel);
    stream->task = task;
    stream->sink = sink;
    stream->process = process;
    stream->base64 = options->base64;
    stream->source = options->source;
    for (int i = 0; i < 2; i++) {
        stream->wanted[i] = options->wanted[i];
        stream->offset[i] = options->offset[i];
        stream->reader.offset[i] = stream->wanted[i] ? options->offset[i] : PROCESS_NOT_READ;
    }
    process_reader_attach(process, &stream->reader, on_more, stream);
    pump(stream);
    if (stream->over) {
        bool complete = stream->complete;
        close_stream(stream);
        task_op_end(L);
        lua_pushboolean(L, complete);
        return 1;
    }
    if (stream->source != NULL) {
        stream->source->more = on_more;
        stream->source->stream = stream;
    }
    sink->on_drain = on_more;
    sink->on_gone = on_more;
    sink->producer = stream;
    if (options->wait_ms >= 0)
        loop_timer_start(script_loop(L), &stream->wait, (uint64_t)options->wait_ms, on_wait_over, stream);
    return lua_yieldk(L, 0, (lua_KContext)stream, stream_done);
}
