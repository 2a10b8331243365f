/* fs.delete: files, links and trees. */
#include "base/json.h"
#include "bind/bind_fs.h"
#include "prim/entry.h"
#include "prim/tree_remove.h"
#include "script/bindings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct delete_job {
    struct fs_job job;
    bool recursive;
    size_t len;
    char path[];
};

static int delete_run(struct fs_job *job, struct err *err)
{
    struct delete_job *delete = (struct delete_job *)job;
    char path[PATH_MAX + NAME_MAX + 2];
    uint64_t count;
    if (tree_remove_path(job->confine, delete->path, delete->len, delete->recursive, &job->cancelled, path, &count,
                         err) != 0)
        return -1;
    struct buf *answer = &job->answer;
    if (buf_append(answer, "{", 1) == 0 && entry_write_path(answer, "path", path, strlen(path)) == 0 &&
        buf_append_text(answer, ",\"deleted\":") == 0 && json_write_int(answer, (int64_t)count) == 0 &&
        buf_append(answer, "}", 1) == 0)
        return 0;
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "removed, but cannot answer");
}

static void delete_free(struct fs_job *job)
{
    free(job);
}

static const char *const option_keys[] = {"recursive", NULL};

/* fs.delete(path, {recursive}) -> JSON | nil, code, message, field.  Yields. */
int bind_fs_delete(lua_State *L)
{
    size_t len;
    const char *path = luaL_checklstring(L, 1, &len);
    lua_check_keys(L, 2, option_keys, "fs.delete");
    bool recursive = lua_field_bool(L, 2, "recursive", false);
    struct delete_job *delete = fs_job_new(L, sizeof(*delete) + len, delete_run, delete_free);
    delete->recursive = recursive;
    delete->len = len;
    memcpy(delete->path, path, len);
    return fs_job_start(L, &delete->job, recursive ? FS_JOB_ON_LONG_THREADS : FS_JOB_ON_SHORT_THREADS, false);
}
