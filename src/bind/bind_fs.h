/* What the files of abx.fs share: a path's work on the pool, and the functions that live in files of their own. */
#ifndef ABX_BIND_BIND_FS_H
#define ABX_BIND_BIND_FS_H

#include "base/err.h"
#include "base/loop.h"
#include "prim/confine.h"

#include <limits.h>
#include <lua.h>
#include <stddef.h>
#include <sys/stat.h>

struct task;

/* Opens one path on the pool. Plain data: `work` sees nothing else. */
struct path_job {
    struct task *task; /* NULL once the request is gone */
    const struct confine *confine;
    int fd;              /* the result; -1 with err */
    struct stat found;   /* of fd */
    char real[PATH_MAX]; /* for work that fills it in */
    struct err err;
    size_t len;
    char path[]; /* len bytes */
};

/* Runs work on the pool and then `done`, whose context is handed to path_job_take. Call it as
 * `return path_job_start(...)`; everything that the continuation needs stays on the Lua stack. */
int path_job_start(lua_State *L, const char *path, size_t len, loop_fn work, lua_KFunction done);
/* Moves the descriptor out and frees the job. -1: *out_err says why. The other results may be NULL. */
int path_job_take(lua_KContext context, struct stat *out_found, char out_real[PATH_MAX], struct err *out_err);

/* A metatable for userdata of that name: locked, with a collector. */
void bind_fs_metatable(lua_State *L, const char *name, lua_CFunction index, lua_CFunction gc);

int bind_fs_upload(lua_State *L);
int bind_fs_archive(lua_State *L);
void bind_upload_open(lua_State *L);
void bind_archive_open(lua_State *L);

#endif
