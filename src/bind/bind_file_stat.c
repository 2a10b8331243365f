/* fs.stat: all about one entry as an answer. Called by handlers. */
#include "bind/bind_fs.h"
#include "prim/file_stat.h"
#include "script/bindings.h"

#include <stdlib.h>
#include <string.h>

enum { MIME_MAX = 128 };

struct stat_job {
    struct fs_job job;
    struct file_stat request;
    char mime[MIME_MAX];
    char path[];
};

static int run(struct fs_job *job, struct err *err)
{
    struct stat_job *stat = (struct stat_job *)job;
    struct file_terms terms = {.cancelled = &job->cancelled, .short_only = job->place != FS_JOB_ON_LONG_THREADS};
    int result = file_stat(job->confine, &stat->request, &terms, &job->answer, err);
    job->go_on = result == 1;
    return result < 0 ? -1 : 0;
}

static void free_job(struct fs_job *job)
{
    free(job);
}

static bool wants_sha256(lua_State *L)
{
    size_t len;
    const char *checksum = lua_field_string(L, 2, "checksum", &len);
    if (!checksum || strcmp(checksum, "none") == 0)
        return false;
    return strcmp(checksum, "sha256") == 0 || luaL_error(L, "fs.stat: no such checksum: %s", checksum);
}

/* fs.stat(path, {checksum="none"|"sha256", mime=what a regular file is, follow=a final link}) -> raw JSON, false | nil,
 * code, message, field.  Yields. */
int bind_fs_stat(lua_State *L)
{
    static const char *const known[] = {"checksum", "mime", "follow", NULL};
    size_t len, mime_len;
    const char *path = luaL_checklstring(L, 1, &len);
    lua_settop(L, 2);
    lua_check_keys(L, 2, known, "fs.stat");
    struct file_stat request = {.sha256 = wants_sha256(L), .follow = lua_field_bool(L, 2, "follow", false)};
    const char *mime = lua_field_string(L, 2, "mime", &mime_len);
    if (!mime)
        mime = "application/octet-stream";
    else if (mime_len >= MIME_MAX)
        return luaL_error(L, "fs.stat: mime is over %d bytes", MIME_MAX - 1);
    struct stat_job *stat = fs_job_new(L, sizeof(*stat) + len, run, free_job);
    memcpy(stat->mime, mime, strlen(mime) + 1);
    memcpy(stat->path, path, len);
    request.path = stat->path;
    request.path_len = len;
    request.mime = stat->mime;
    stat->request = request;
    return fs_job_start(L, &stat->job, FS_JOB_ON_SHORT_THREADS, false);
}
