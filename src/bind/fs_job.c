/* Work on files whose answer a thread makes: from the call of a function of abx.fs to what it returns. For bind_*.c. */
#include "bind/bind_fs.h"
#include "bind/host.h"
#include "script/bindings.h"

#include <stdlib.h>

#define FS_JOB_META "abx.fs.job"

/* The JSON of 32 MiB of content, each byte as \u0000. */
enum { ANSWER_MAX_BYTES = 200 * 1024 * 1024 };

struct job_op {
    struct fs_job **box; /* the userdata on the task's stack, which frees the job where pushing its result raises */
};

static void job_free(struct fs_job *job)
{
    buf_deinit(&job->answer);
    job->free(job);
}

/* A job that runs is freed when it comes back. */
static void on_cancel(void *op)
{
    struct fs_job **box = ((struct job_op *)op)->box, *job = *box;
    *box = NULL;
    if (!job)
        return;
    job->task = NULL;
    atomic_store(&job->cancelled, true);
}

static int on_box_gc(lua_State *L)
{
    struct fs_job **box = luaL_checkudata(L, 1, FS_JOB_META);
    if (*box)
        job_free(*box);
    *box = NULL;
    return 0;
}

static void on_work(void *ctx)
{
    struct fs_job *job = ctx;
    job->failed = job->run(job, &job->err) != 0;
}

static void on_done(void *ctx);

static int start(struct fs_job *job)
{
    job->go_on = false;
    int started = job->place == FS_JOB_ON_LONG_THREADS ? pool_run(job->host->long_jobs, on_work, on_done, job)
                                                       : loop_job(job->host->loop, on_work, on_done, job);
    if (started != 0) {
        job->failed = true;
        err_set(&job->err, ERR_UNAVAILABLE, "the system has no room for another thread");
    }
    return started;
}

/* Whether it runs again, at the next place. */
static bool goes_on(struct fs_job *job)
{
    if (job->failed || !job->go_on || job->place == FS_JOB_ON_LONG_THREADS)
        return false;
    job->place++;
    return start(job) == 0;
}

static void on_done(void *ctx)
{
    struct fs_job *job = ctx;
    if (!job->task)
        job_free(job);
    else if (!goes_on(job))
        task_resume(job->task);
}

static int push_failure(lua_State *L, struct fs_job **box, struct err *err)
{
    struct err copy = *err;
    struct fs_job *job = *box;
    *box = NULL;
    if (copy.field[0] == '\0' && job->blamed)
        err_field(&copy, job->blamed);
    job_free(job);
    return lua_push_err(L, &copy);
}

static int push_result(lua_State *L, struct fs_job **box)
{
    struct fs_job *job = *box;
    if (job->failed)
        return push_failure(L, box, &job->err);
    size_t len;
    char *text = buf_steal(&job->answer, &len);
    lua_push_raw_json(L, text, len);
    lua_pushboolean(L, job->created);
    *box = NULL;
    job_free(job);
    return 2;
}

static int job_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    return push_result(L, ((struct job_op *)context)->box);
}

void *fs_job_new(lua_State *L, size_t size, int (*run)(struct fs_job *job, struct err *err),
                 void (*free)(struct fs_job *job))
{
    struct fs_job *job = calloc(1, size);
    if (!job)
        luaL_error(L, "out of memory");
    job->run = run;
    job->free = free;
    job->blamed = "path";
    job->confine = ((const struct host *)script_host(L))->confine;
    buf_init(&job->answer, ANSWER_MAX_BYTES);
    return job;
}

static int make_box(lua_State *L)
{
    struct fs_job **box = lua_newuserdatauv(L, sizeof(*box), 0);
    *box = lua_touserdata(L, 1);
    luaL_setmetatable(L, FS_JOB_META);
    return 1;
}

/* Without an operation: the loop has to do no more than this. */
static bool done_at_once(struct fs_job *job)
{
    if (job->place != FS_JOB_ON_LOOP)
        return false;
    on_work(job);
    if (job->failed || !job->go_on)
        return true;
    job->place++;
    return false;
}

int fs_job_start(lua_State *L, struct fs_job *job, enum fs_job_place place, bool bounded)
{
    lua_pushcfunction(L, make_box);
    lua_pushlightuserdata(L, job);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        job_free(job);
        return lua_error(L);
    }
    struct fs_job **box = lua_touserdata(L, -1);
    job->task = task_check(L);
    job->host = script_host(L);
    job->place = place;
    if (done_at_once(job))
        return push_result(L, box);
    struct job_op *op = task_op_new(L, sizeof(*op), bounded, on_cancel);
    if (start(job) != 0) {
        task_op_end(L);
        return push_result(L, box);
    }
    op->box = box;
    return lua_yieldk(L, 0, (lua_KContext)op, job_done);
}

void fs_job_open(lua_State *L)
{
    bind_fs_metatable(L, FS_JOB_META, NULL, on_box_gc);
}
