/* proc.list: the processes that were started here, or all of the sandbox. Read on a thread. */
#include "bind/bind_fs.h"
#include "bind/bind_proc.h"
#include "bind/host.h"
#include "prim/process_list.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdlib.h>

struct list_job {
    struct fs_job job;
    struct process_rows rows;
    struct process_filter filter;
};

static int list_run(struct fs_job *job, struct err *err)
{
    struct list_job *own = (struct list_job *)job;
    struct process_list *list = process_list_open(err);
    if (!list)
        return -1;
    int failed = buf_append_text(&job->answer, "{\"processes\":");
    if (failed == 0)
        failed = process_list_write(list, &job->answer, &own->rows, &own->filter, &job->cancelled, err);
    else
        err_set(err, ERR_INTERNAL, "out of memory for a list of processes");
    process_list_close(list);
    if (failed == 0 && buf_append(&job->answer, "}", 1) != 0)
        failed = err_set(err, ERR_INTERNAL, "out of memory for a list of processes");
    return failed;
}

static void list_free(struct fs_job *job)
{
    process_rows_free(&((struct list_job *)job)->rows);
    free(job);
}

/* proc.list(scope, state) -> JSON | nil, code, message, field.  Yields. scope: "managed", "all"; state: "all",
 * "running", "exited". */
int bind_proc_list(lua_State *L)
{
    static const char *const scopes[] = {"managed", "all", NULL}, *const states[] = {"all", "running", "exited", NULL};
    struct host *host = script_host(L);
    int scope = luaL_checkoption(L, 1, "managed", scopes), state = luaL_checkoption(L, 2, "all", states);
    struct list_job *own = fs_job_new(L, sizeof(*own), list_run, list_free);
    own->job.blamed = NULL;
    own->filter = (struct process_filter){.strangers = scope == 1, .running = state != 2, .exited = state != 1};
    if (process_rows_take(&own->rows, host->processes) != 0) {
        list_free(&own->job);
        return luaL_error(L, "out of memory");
    }
    return fs_job_start(L, &own->job, FS_JOB_ON_SHORT_THREADS, false);
}
