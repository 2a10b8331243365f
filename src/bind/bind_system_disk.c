/* system.disks: the file systems and how full they are. Called by lua/routes/system.lua. */
#include "bind/bind_fs.h"
#include "bind/bind_system.h"
#include "prim/disks.h"

#include <stdlib.h>

static int disks_run(struct fs_job *job, struct err *err)
{
    return disks_write(&job->answer, confine_base_dir(job->confine), err);
}

static void disks_free(struct fs_job *job)
{
    free(job);
}

/* system.disks() -> JSON | nil, code, message, field.  Yields. */
int bind_system_disks(lua_State *L)
{
    struct fs_job *job = fs_job_new(L, sizeof(*job), disks_run, disks_free);
    job->blamed = NULL;
    return fs_job_start(L, job, FS_JOB_ON_LONG_THREADS, false);
}
