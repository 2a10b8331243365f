/* fs.list: a directory or a tree, a page at a time. */
#include "bind/bind_fs.h"
#include "prim/glob.h"
#include "prim/tree_list.h"
#include "script/bindings.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT_MAX = 10000, DEPTH_MAX = 1024 };

struct list_job {
    struct fs_job job;
    struct tree_list_options options;
    char *path, *glob, *cursor; /* in text, or NULL */
    size_t path_len, glob_len;
    char text[];
};

static int list_run(struct fs_job *job, struct err *err)
{
    struct list_job *list = (struct list_job *)job;
    struct glob *glob = NULL;
    if (list->glob) {
        glob = glob_new(list->glob, list->glob_len, err);
        if (!glob)
            return err_field(err, "glob");
    }
    list->options.glob = glob;
    list->options.cancelled = &job->cancelled;
    int result = tree_list(job->confine, list->path, list->path_len, &list->options, &job->answer, err);
    glob_free(glob);
    return result;
}

static void list_free(struct fs_job *job)
{
    free(job);
}

/* Copies a text to *at, which moves on; NULL stays NULL. */
static char *keep(char **at, const char *text, size_t len)
{
    if (!text)
        return NULL;
    char *copy = memcpy(*at, text, len);
    *at += len;
    return copy;
}

static const char *const option_keys[] = {"recursive", "max_depth", "hidden", "glob", "limit", "cursor", NULL};

/* fs.list(path, {recursive, max_depth, hidden, glob, limit, cursor}) -> JSON | nil, code, message, field.  Yields. */
int bind_fs_list(lua_State *L)
{
    size_t path_len, glob_len = 0, cursor_len = 0;
    const char *path = luaL_checklstring(L, 1, &path_len);
    lua_check_keys(L, 2, option_keys, "fs.list");
    const char *glob = lua_field_string(L, 2, "glob", &glob_len);
    const char *cursor = lua_field_string(L, 2, "cursor", &cursor_len);
    struct tree_list_options options = {
        .recursive = lua_field_bool(L, 2, "recursive", false),
        .hidden = lua_field_bool(L, 2, "hidden", true),
        .max_depth = (size_t)lua_field_int(L, 2, "max_depth", TREE_LIST_DEEP, 1, DEPTH_MAX),
        .limit = (size_t)lua_field_int(L, 2, "limit", 1000, 1, LIMIT_MAX),
        .cursor_len = cursor_len,
    };
    struct list_job *list = fs_job_new(L, sizeof(*list) + path_len + glob_len + cursor_len, list_run, list_free);
    char *at = list->text;
    list->path = keep(&at, path, path_len);
    list->path_len = path_len;
    list->glob = keep(&at, glob, glob_len);
    list->glob_len = glob_len;
    options.cursor = keep(&at, cursor, cursor_len);
    list->options = options;
    return fs_job_start(L, &list->job, options.recursive ? FS_JOB_ON_LONG_THREADS : FS_JOB_ON_SHORT_THREADS, false);
}
