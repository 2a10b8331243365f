/* fs.upload: drains a request's body into prim/upload. Two buffers: the loop fills one while the pool works on the
 * other, and while both are full the client waits. */
#include "base/base64.h"
#include "base/utf8.h"
#include "bind/bind_fs.h"
#include "bind/host.h"
#include "prim/upload.h"
#include "script/bindings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 256 * 1024, PATH_SHOWN_MAX_BYTES = 4 * 2 * PATH_MAX };

#define RECEIVER_META "abx.fs.receiver"

/* A path as an answer carries it, made on the pool. */
struct shown_path {
    struct buf text, base64; /* base64 is empty where text says it all */
};

/* Outlives the task's operation where the request ends while a job runs. */
struct receiver {
    struct loop *loop;
    struct task *task; /* NULL once the request is gone */
    struct body *body; /* NULL once it ended or was dropped */
    struct upload *upload;

    char *slabs[2];
    size_t filled; /* in slabs[filling] */
    int filling;
    bool started, stalled; /* the first piece went to the pool; the body waits for room */
    bool ended, complete;
    struct loop_defer kick;

    /* the running job's; the loop keeps off while running */
    bool running, last;
    const char *job_bytes;
    size_t job_len;

    bool failed;
    struct err err;
    const struct upload_file *files;
    struct shown_path *paths;
    size_t file_count;
};

struct upload_op {
    struct receiver **box; /* the userdata on the task's stack */
};

static void receiver_free(struct receiver *receiver)
{
    upload_free(receiver->upload);
    for (size_t i = 0; receiver->paths && i < receiver->file_count; i++) {
        buf_deinit(&receiver->paths[i].text);
        buf_deinit(&receiver->paths[i].base64);
    }
    free(receiver->paths);
    free(receiver->slabs[0]);
    free(receiver->slabs[1]);
    free(receiver);
}

static void free_work(void *ctx)
{
    receiver_free(ctx);
}

static void free_done(void *ctx)
{
    (void)ctx; /* freed by the pool */
}

/* Removing what was written can take long: on the pool, unless even that is refused. */
static void receiver_discard(struct receiver *receiver)
{
    if (loop_job(receiver->loop, free_work, free_done, receiver) != 0)
        receiver_free(receiver);
}

static int show_path(struct shown_path *shown, const char *path)
{
    bool lossy = false;
    size_t len = strlen(path);
    buf_init(&shown->text, PATH_SHOWN_MAX_BYTES);
    buf_init(&shown->base64, PATH_SHOWN_MAX_BYTES);
    if (utf8_append_scrubbed(&shown->text, path, len, &lossy) != 0)
        return -1;
    return lossy ? base64_encode(&shown->base64, path, len) : 0;
}

/* On the pool: the answer's paths. Out of memory here fails an upload that is in place already, and says so. */
static int show_paths(struct receiver *receiver)
{
    receiver->paths = calloc(receiver->file_count, sizeof(*receiver->paths));
    int result = receiver->paths ? 0 : -1;
    for (size_t i = 0; i < receiver->file_count && result == 0; i++)
        result = show_path(&receiver->paths[i], receiver->files[i].path);
    if (result != 0)
        err_set_errno(&receiver->err, ERR_INTERNAL, ENOMEM, "the files are in place, but cannot be listed");
    return result;
}

static int receive(struct receiver *receiver)
{
    if (receiver->job_len > 0 &&
        upload_feed(receiver->upload, receiver->job_bytes, receiver->job_len, &receiver->err) != 0)
        return -1;
    if (!receiver->last)
        return 0;
    if (!receiver->complete)
        return err_set(&receiver->err, ERR_INVALID_REQUEST, "the body was cut off");
    if (upload_finish(receiver->upload, &receiver->files, &receiver->file_count, &receiver->err) != 0)
        return -1;
    return show_paths(receiver);
}

static void receive_work(void *ctx)
{
    struct receiver *receiver = ctx;
    if (receive(receiver) == 0)
        return;
    receiver->failed = true;
    /* Before anybody is told: a client that hears of the failure finds nothing left of it. */
    upload_free(receiver->upload);
    receiver->upload = NULL;
}

static void receive_done(void *ctx);

/* Hands what was filled to the pool. */
static void start_job(struct receiver *receiver)
{
    loop_defer_stop(&receiver->kick);
    receiver->started = true;
    receiver->job_bytes = receiver->slabs[receiver->filling];
    receiver->job_len = receiver->filled;
    receiver->last = receiver->ended;
    receiver->filling = !receiver->filling;
    receiver->filled = 0;
    receiver->running = true;
    if (loop_job(receiver->loop, receive_work, receive_done, receiver) == 0)
        return;
    receiver->failed = true;
    err_set_errno(&receiver->err, ERR_INTERNAL, ENOMEM, "cannot take the upload");
    loop_defer_start(receiver->loop, &receiver->kick, receive_done, receiver);
}

static void drop_body(struct receiver *receiver)
{
    if (receiver->body)
        body_drop(receiver->body);
    receiver->body = NULL;
}

static void receive_done(void *ctx)
{
    struct receiver *receiver = ctx;
    receiver->running = false;
    if (!receiver->task) {
        receiver_discard(receiver);
        return;
    }
    if (receiver->failed || receiver->last) {
        drop_body(receiver);
        task_resume(receiver->task);
        return;
    }
    if (receiver->ended || receiver->filled == SLAB_BYTES)
        start_job(receiver);
    if (receiver->body && receiver->stalled) {
        receiver->stalled = false;
        body_resume(receiver->body);
    }
}

static void on_kick(void *ctx)
{
    struct receiver *receiver = ctx;
    start_job(receiver); /* stopped by any other start */
}

static size_t on_data(void *ctx, const char *bytes, size_t len)
{
    struct receiver *receiver = ctx;
    size_t taken = 0;
    while (taken < len && receiver->filled < SLAB_BYTES) {
        size_t room = SLAB_BYTES - receiver->filled, piece = len - taken < room ? len - taken : room;
        memcpy(receiver->slabs[receiver->filling] + receiver->filled, bytes + taken, piece);
        receiver->filled += piece;
        taken += piece;
        if (receiver->filled == SLAB_BYTES && !receiver->running)
            start_job(receiver);
    }
    /* The first piece goes at once, so that a target that is refused is known early, but not before the loop has
     * turned: the end of a small body comes by then and one job does all. Later ones wait until a buffer is full. */
    if (!receiver->started)
        loop_defer_start(receiver->loop, &receiver->kick, on_kick, receiver);
    receiver->stalled = taken < len;
    return taken;
}

static void on_end(void *ctx, bool complete)
{
    struct receiver *receiver = ctx;
    receiver->body = NULL;
    receiver->ended = true;
    receiver->complete = complete;
    if (!receiver->running)
        start_job(receiver);
}

static void upload_cancel(void *op)
{
    struct receiver **box = ((struct upload_op *)op)->box, *receiver = *box;
    *box = NULL;
    if (!receiver)
        return;
    drop_body(receiver);
    receiver->task = NULL;
    bool kicked = receiver->kick.pending;
    loop_defer_stop(&receiver->kick);
    /* A running job comes back to receive_done; one that could not be started was to come by the kick. */
    if (!receiver->running || (receiver->failed && kicked))
        receiver_discard(receiver);
}

/* Only where pushing the result raised; else the box is empty by then. */
static int on_box_gc(lua_State *L)
{
    struct receiver **box = luaL_checkudata(L, 1, RECEIVER_META);
    if (*box)
        receiver_discard(*box);
    *box = NULL;
    return 0;
}

static void set_text(lua_State *L, const char *name, const struct buf *text)
{
    lua_pushlstring(L, text->len ? text->data : "", text->len);
    lua_setfield(L, -2, name);
}

static void push_files(lua_State *L, const struct receiver *receiver)
{
    lua_createtable(L, (int)receiver->file_count, 0);
    for (size_t i = 0; i < receiver->file_count; i++) {
        const struct upload_file *file = &receiver->files[i];
        lua_createtable(L, 0, 5);
        set_text(L, "path", &receiver->paths[i].text);
        if (receiver->paths[i].base64.len > 0)
            set_text(L, "path_base64", &receiver->paths[i].base64);
        lua_pushinteger(L, (lua_Integer)file->size);
        lua_setfield(L, -2, "size");
        lua_pushstring(L, file->sha256);
        lua_setfield(L, -2, "sha256");
        lua_pushboolean(L, file->created);
        lua_setfield(L, -2, "created");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_mark_array(L, -1);
}

static int upload_done(lua_State *L, int status, lua_KContext context)
{
    struct receiver **box = ((struct upload_op *)context)->box, *receiver = *box;
    (void)status;
    if (receiver->failed) {
        struct err err = receiver->err;
        *box = NULL;
        receiver_free(receiver);
        return lua_push_err(L, &err);
    }
    push_files(L, receiver);
    *box = NULL;
    receiver_free(receiver); /* closes directories; nothing is left to remove */
    return 1;
}

static int no_receiver(lua_State *L, struct receiver *receiver, const struct err *err)
{
    if (receiver)
        receiver_free(receiver);
    task_op_end(L);
    return lua_push_err(L, err);
}

static const char *const option_keys[] = {"content_type",   "path", "dir",    "overwrite",
                                          "create_parents", "mode", "sha256", NULL};

/* fs.upload(body, {content_type, path, dir, overwrite, create_parents, mode, sha256}) -> list of {path, path_base64?,
 * size, sha256, created} | nil, code, message, field.  Yields; bounded by the body. */
int bind_fs_upload(lua_State *L)
{
    struct task *task = task_check(L);
    struct host *host = script_host(L);
    struct body *body = lua_arg_body(L, 1);
    lua_check_keys(L, 2, option_keys, "fs.upload");
    luaL_argcheck(L, !body->ctx && !body->dropped, 1, "the body was read before");
    struct upload_options options = {
        .overwrite = lua_field_bool(L, 2, "overwrite", true),
        .create_parents = lua_field_bool(L, 2, "create_parents", true),
        .mode = bind_fs_mode_field(L, 2),
    };
    options.content_type = lua_field_string(L, 2, "content_type", NULL);
    options.path = lua_field_string(L, 2, "path", &options.path_len);
    options.dir = lua_field_string(L, 2, "dir", &options.dir_len);
    options.sha256 = lua_field_string(L, 2, "sha256", NULL);
    lua_settop(L, 2);
    struct receiver **box = lua_newuserdatauv(L, sizeof(*box), 0);
    *box = NULL;
    luaL_setmetatable(L, RECEIVER_META);

    struct upload_op *op = task_op_new(L, sizeof(*op), true, upload_cancel);
    op->box = box;
    struct err err;
    struct receiver *receiver = calloc(1, sizeof(*receiver));
    if (receiver) {
        receiver->slabs[0] = malloc(SLAB_BYTES);
        receiver->slabs[1] = malloc(SLAB_BYTES);
    }
    if (!receiver || !receiver->slabs[0] || !receiver->slabs[1]) {
        err_set_errno(&err, ERR_INTERNAL, ENOMEM, "cannot take the upload");
        return no_receiver(L, receiver, &err);
    }
    receiver->upload = upload_new(host->confine, &options, &err);
    if (!receiver->upload)
        return no_receiver(L, receiver, &err);
    receiver->loop = host->loop;
    receiver->task = task;
    receiver->body = body;
    *box = receiver;
    body_read(body, on_data, on_end, receiver);
    return lua_yieldk(L, 0, (lua_KContext)op, upload_done);
}

void bind_upload_open(lua_State *L)
{
    bind_fs_metatable(L, RECEIVER_META, NULL, on_box_gc);
}
