/* pty.shell: which program a terminal runs where its client names none. Looked up on a thread. */
#include "bind/bind_pty.h"
#include "bind/host.h"
#include "prim/login_shell.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shell_job {
    struct task *task; /* NULL once the request is gone */
    uid_t user;
    char found[PATH_MAX];
    char preferred[];
};

struct shell_op {
    struct shell_job *job;
};

static void on_cancel(void *op)
{
    ((struct shell_op *)op)->job->task = NULL;
}

static void on_work(void *ctx)
{
    struct shell_job *job = ctx;
    login_shell_find(job->preferred, job->user, job->found);
}

static void on_done(void *ctx)
{
    struct shell_job *job = ctx;
    if (job->task != NULL)
        task_resume(job->task);
    else
        free(job);
}

static int shell_done(lua_State *L, int status, lua_KContext context)
{
    struct shell_job *job = ((struct shell_op *)context)->job;
    char path[PATH_MAX];
    (void)status;
    strcpy(path, job->found);
    free(job);
    lua_pushstring(L, path);
    return 1;
}

/* pty.shell() -> the path of the login shell | nil, code, message.  Yields. */
int bind_pty_shell(lua_State *L)
{
    struct err err = {0};
    const struct host *host = script_host(L);
    const char *preferred = env_block_get(process_table_env(host->processes), "SHELL");
    if (preferred == NULL)
        preferred = "";
    struct shell_op *op = task_op_new(L, sizeof(*op), false, on_cancel);
    op->job = malloc(sizeof(*op->job) + strlen(preferred) + 1);
    if (op->job == NULL) {
        task_op_end(L);
        return luaL_error(L, "out of memory");
    }
    op->job->task = task_check(L);
    op->job->user = geteuid();
    strcpy(op->job->preferred, preferred);
    if (loop_job(host->loop, on_work, on_done, op->job) == 0)
        return lua_yieldk(L, 0, (lua_KContext)op, shell_done);
    free(op->job);
    task_op_end(L);
    err_set(&err, ERR_UNAVAILABLE, "the system has no room for another thread");
    return lua_push_err(L, &err);
}
