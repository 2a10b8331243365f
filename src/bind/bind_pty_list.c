/* pty.list: all terminals that are listed. Read on a thread. */
#include "bind/bind_fs.h"
#include "bind/bind_pty.h"
#include "prim/terminal_rows.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdlib.h>

struct list_job {
    struct fs_job job;
    struct terminal_rows rows;
};

static int list_run(struct fs_job *job, struct err *err)
{
    const struct list_job *own = (const struct list_job *)job;
    if (buf_append_text(&job->answer, "{\"terminals\":") != 0)
        return err_set(err, ERR_INTERNAL, "out of memory for a list of terminals");
    if (terminal_rows_write(&own->rows, &job->answer, &job->cancelled, err) != 0)
        return -1;
    return buf_append_text(&job->answer, "}") != 0 ? err_set(err, ERR_INTERNAL, "out of memory for a list of terminals")
                                                   : 0;
}

static void list_free(struct fs_job *job)
{
    terminal_rows_free(&((struct list_job *)job)->rows);
    free(job);
}

/* pty.list(with_tickets) -> JSON | nil, code, message.  Yields. */
int bind_pty_list(lua_State *L)
{
    struct err err = {0};
    luaL_checktype(L, 1, LUA_TBOOLEAN);
    bool with_tickets = lua_toboolean(L, 1);
    struct terminals *terminals = bind_pty_terminals(L, &err);
    if (terminals == NULL)
        return lua_push_err(L, &err);
    struct list_job *own = fs_job_new(L, sizeof(*own), list_run, list_free);
    own->job.blamed = NULL;
    if (terminal_rows_take(&own->rows, terminals, with_tickets) != 0) {
        list_free(&own->job);
        return luaL_error(L, "out of memory");
    }
    return fs_job_start(L, &own->job, FS_JOB_ON_SHORT_THREADS, false);
}
