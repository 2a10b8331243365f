/* fs.mkdir: a directory, with those above it. */
#include "bind/bind_fs.h"
#include "prim/entry.h"
#include "prim/make_dir.h"
#include "script/bindings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mkdir_job {
    struct fs_job job;
    bool parents;
    int mode; /* -1: by the umask */
    size_t len;
    char path[];
};

static int mkdir_run(struct fs_job *job, struct err *err)
{
    struct mkdir_job *mkdir = (struct mkdir_job *)job;
    char path[PATH_MAX];
    if (make_dir(job->confine, mkdir->path, mkdir->len, mkdir->parents, mkdir->mode, path, &job->created, err) != 0)
        return -1;
    struct buf *answer = &job->answer;
    if (buf_append(answer, "{", 1) == 0 && entry_write_path(answer, "path", path, strlen(path)) == 0 &&
        buf_append_text(answer, job->created ? ",\"created\":true}" : ",\"created\":false}") == 0)
        return 0;
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "made, but cannot answer");
}

static void mkdir_free(struct fs_job *job)
{
    free(job);
}

static const char *const option_keys[] = {"parents", "mode", NULL};

/* fs.mkdir(path, {parents, mode}) -> JSON, created | nil, code, message, field.  Yields. */
int bind_fs_mkdir(lua_State *L)
{
    size_t len;
    const char *path = luaL_checklstring(L, 1, &len);
    lua_check_keys(L, 2, option_keys, "fs.mkdir");
    bool parents = lua_field_bool(L, 2, "parents", true);
    int mode = bind_fs_mode_field(L, 2);
    struct mkdir_job *mkdir = fs_job_new(L, sizeof(*mkdir) + len, mkdir_run, mkdir_free);
    mkdir->parents = parents;
    mkdir->mode = mode;
    mkdir->len = len;
    memcpy(mkdir->path, path, len);
    return fs_job_start(L, &mkdir->job, FS_JOB_ON_SHORT_THREADS, false);
}
