/* What the files of abx.fs share: work on the threads, and the functions that live in files of their own. */
#ifndef ABX_BIND_BIND_FS_H
#define ABX_BIND_BIND_FS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "prim/confine.h"

#include <limits.h>
#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct pool;
struct host;
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

/* The member "mode" of a table of options, "0644", as a number; -1 where nil. Misuse raises: routes check what clients
 * send. */
int bind_fs_mode_field(lua_State *L, int table);

/* A metatable for userdata of that name: locked, with a collector. */
void bind_fs_metatable(lua_State *L, const char *name, lua_CFunction index, lua_CFunction gc);

/* ---- work whose answer is made on a thread */

/* Where the work is done. */
enum fs_job_place {
    FS_JOB_ON_LOOP,          /* on the loop's thread, where nothing may block: what is in memory already */
    FS_JOB_ON_SHORT_THREADS, /* on those of loop_job: reads, writes, single files */
    FS_JOB_ON_LONG_THREADS,  /* on those of host.long_jobs: whole trees */
};

/* Embedded at the start of a binding's own struct, which fs_job_start takes over. */
struct fs_job {
    const struct confine *confine;
    atomic_bool cancelled; /* the client left, or its time is over: long work looks at it and ends early, any how */
    struct err err;
    struct buf answer; /* JSON text: what `run` made */
    bool created;      /* the answer's status is 201 */
    enum fs_job_place place;
    bool go_on; /* `run` found that this is not work for where it is, did nothing, and runs again at the next place */

    const char *blamed; /* the field of a failure that names none: "path", unless the binding says another or NULL */

    /* Does the work, at that place; appends to answer (its maximum is set). -1 with err. Plain data only: no Lua, no
     * request. */
    int (*run)(struct fs_job *job, struct err *err);
    /* Frees the struct and all in it; on the loop's thread, once, whatever happened. answer and what follows are not
     * its affair. */
    void (*free)(struct fs_job *job);

    /* fs_job.c's own */
    struct task *task;
    struct host *host;
    bool failed;
};

/* A zeroed struct of that size for a job; raises when memory is out. Fill it in, then `return fs_job_start(L, job,
 * place, bounded)`; nothing in between may raise unless the caller frees it. */
void *fs_job_new(lua_State *L, size_t size, int (*run)(struct fs_job *job, struct err *err),
                 void (*free)(struct fs_job *job));
/* Runs it, first at that place, and yields unless it is done at once. The function that the script called then returns
 * the answer as raw JSON and `created`, or nil, code, message, field. bounded: the request bounds the wait
 * (timeout_ms), so it does not count to deadline_ms. */
int fs_job_start(lua_State *L, struct fs_job *job, enum fs_job_place place, bool bounded);
void fs_job_open(lua_State *L);

int bind_fs_read(lua_State *L);
int bind_fs_stat(lua_State *L);
int bind_fs_write(lua_State *L);
int bind_fs_list(lua_State *L);
int bind_fs_mkdir(lua_State *L);
int bind_fs_delete(lua_State *L);
int bind_fs_move(lua_State *L);
int bind_fs_copy(lua_State *L);
int bind_fs_search(lua_State *L);
int bind_fs_upload(lua_State *L);
int bind_fs_archive(lua_State *L);
void bind_upload_open(lua_State *L);
void bind_archive_open(lua_State *L);

#endif
