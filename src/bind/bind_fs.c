/* abx.fs: files for handlers. Here are the module and the opening of files; uploads and archives have files of their
 * own. */
#include "bind/bind_fs.h"

#include "bind/bind.h"
#include "bind/host.h"
#include "prim/entry.h"
#include "script/bindings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct path_op {
    struct path_job *job;
};

static void job_free(struct path_job *job)
{
    if (job->fd >= 0)
        close(job->fd);
    free(job);
}

/* The job may be running on the pool: it is freed when it comes back. */
static void path_cancel(void *op)
{
    struct path_job *job = ((struct path_op *)op)->job;
    if (job)
        job->task = NULL;
}

static void on_job_done(void *ctx)
{
    struct path_job *job = ctx;
    if (job->task)
        task_resume(job->task);
    else
        job_free(job);
}

int path_job_start(lua_State *L, const char *path, size_t len, loop_fn work, lua_KFunction done)
{
    struct task *task = task_check(L);
    struct host *host = script_host(L);
    struct path_op *op = task_op_new(L, sizeof(*op), false, path_cancel);
    struct path_job *job = malloc(sizeof(*job) + len + 1);
    if (job) {
        job->task = task;
        job->confine = host->confine;
        job->fd = -1;
        job->real[0] = '\0';
        job->len = len;
        memcpy(job->path, path, len);
        job->path[len] = '\0';
    }
    if (!job || loop_job(host->loop, work, on_job_done, job) != 0) {
        struct err err;
        free(job);
        task_op_end(L);
        err_set_errno(&err, ERR_INTERNAL, ENOMEM, "cannot open a file");
        return lua_push_err(L, &err);
    }
    op->job = job;
    return lua_yieldk(L, 0, (lua_KContext)op, done);
}

int path_job_take(lua_KContext context, struct stat *out_found, char out_real[PATH_MAX], struct err *out_err)
{
    struct path_op *op = (struct path_op *)context;
    struct path_job *job = op->job;
    int fd = job->fd;
    if (fd < 0)
        *out_err = job->err;
    if (fd < 0 && out_err->field[0] == '\0')
        err_field(out_err, "path");
    if (fd >= 0 && out_found)
        *out_found = job->found;
    if (fd >= 0 && out_real)
        memcpy(out_real, job->real, sizeof(job->real));
    op->job = NULL;
    free(job);
    return fd;
}

static void open_file_work(void *ctx)
{
    struct path_job *job = ctx;
    job->fd = confine_open_file(job->confine, job->path, job->len, O_RDONLY, &job->err);
    if (job->fd >= 0 && fstat(job->fd, &job->found) != 0) {
        err_set_errno(&job->err, ERR_INTERNAL, errno, "cannot look at an open file");
        close(job->fd);
        job->fd = -1;
    }
}

/* The last name of a path as the client wrote it: what a download is called. */
static const char *last_name(const char *path, size_t len, size_t *out_len)
{
    size_t start = len;
    while (start > 0 && path[start - 1] != '/')
        start--;
    *out_len = len - start;
    return path + start;
}

static int open_file_done(lua_State *L, int status, lua_KContext context)
{
    struct stat found;
    struct err err;
    (void)status;
    int fd = path_job_take(context, &found, NULL, &err);
    if (fd < 0)
        return lua_push_err(L, &err);

    struct response_file file = {
        .fd = fd, .size = (uint64_t)found.st_size, .length = (uint64_t)found.st_size, .modified_at = found.st_mtim};
    entry_etag(file.etag, &found);
    size_t len, name_len;
    const char *path = lua_tolstring(L, 1, &len), *name = last_name(path, len, &name_len);
    lua_push_file(L, file, name, name_len);
    return 1;
}

/* fs.open_file(path) -> file | nil, code, message, field.  Yields. */
static int bind_fs_open_file(lua_State *L)
{
    size_t len;
    const char *path = luaL_checklstring(L, 1, &len);
    return path_job_start(L, path, len, open_file_work, open_file_done);
}

int bind_fs_mode_field(lua_State *L, int table)
{
    const char *text = lua_field_string(L, table, "mode", NULL);
    if (!text)
        return -1;
    char *end;
    long mode = strtol(text, &end, 8);
    if (*text < '0' || *text > '7' || *end != '\0' || mode > 07777)
        return luaL_error(L, "'mode' must be octal digits such as \"0644\"");
    return (int)mode;
}

void bind_fs_metatable(lua_State *L, const char *name, lua_CFunction index, lua_CFunction gc)
{
    if (luaL_newmetatable(L, name)) {
        lua_pushcfunction(L, gc);
        lua_setfield(L, -2, "__gc");
        if (index) {
            lua_pushcfunction(L, index);
            lua_setfield(L, -2, "__index");
        }
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
    }
    lua_pop(L, 1);
}

int bind_fs_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open_file", bind_fs_open_file},
        {"read", bind_fs_read},
        {"stat", bind_fs_stat},
        {"write", bind_fs_write},
        {"list", bind_fs_list},
        {"mkdir", bind_fs_mkdir},
        {"delete", bind_fs_delete},
        {"move", bind_fs_move},
        {"copy", bind_fs_copy},
        {"search", bind_fs_search},
        {"upload", bind_fs_upload},
        {"archive", bind_fs_archive},
        {NULL, NULL},
    };
    fs_job_open(L);
    bind_upload_open(L);
    bind_archive_open(L);
    luaL_newlib(L, functions);
    return 1;
}
