/* Arguments and answers of fs.copy and fs.move; see transfer_job.h. */
#include "bind/transfer_job.h"

#include "prim/entry.h"
#include "script/bindings.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const option_keys[] = {"overwrite", "create_parents", NULL};

static void job_free(struct fs_job *job)
{
    free(job);
}

int transfer_job_start(lua_State *L, int (*run)(struct fs_job *job, struct err *err))
{
    size_t source_len, destination_len;
    const char *source = luaL_checklstring(L, 1, &source_len);
    const char *destination = luaL_checklstring(L, 2, &destination_len);
    lua_check_keys(L, 3, option_keys, "fs.copy and fs.move");
    bool overwrite = lua_field_bool(L, 3, "overwrite", false);
    bool create_parents = lua_field_bool(L, 3, "create_parents", true);

    struct transfer_job *job = fs_job_new(L, sizeof *job + source_len + destination_len + 2, run, job_free);
    memcpy(job->paths, source, source_len);
    memcpy(job->paths + source_len + 1, destination, destination_len);
    job->overwrite = overwrite;
    job->options = (struct transfer_options){.source = job->paths,
                                             .destination = job->paths + source_len + 1,
                                             .source_len = source_len,
                                             .destination_len = destination_len,
                                             .create_parents = create_parents};
    return fs_job_start(L, &job->job, FS_JOB_ON_LONG_THREADS, false);
}

static int begin_answer(struct buf *out, const struct transfer *transfer)
{
    char destination[TRANSFER_PATH_MAX];
    snprintf(destination, sizeof destination, "%s/%s", transfer->to_dir_path, transfer->destination.name);
    if (buf_append(out, "{", 1) != 0 ||
        entry_write_path(out, "source", transfer->source_path, strlen(transfer->source_path)) != 0 ||
        buf_append(out, ",", 1) != 0)
        return -1;
    return entry_write_path(out, "destination", destination, strlen(destination));
}

static int end_answer(struct buf *out, const struct transfer *transfer)
{
    struct entry_names names = {0};
    int result = buf_append_text(out, ",\"entry\":");
    if (result == 0)
        result = entry_write_at(out, &names, transfer->to_dir, transfer->to_dir_path, transfer->destination.name);
    entry_names_free(&names);
    return result != 0 ? -1 : buf_append(out, "}", 1);
}

int transfer_job_run(struct transfer_job *job, transfer_work_fn work, struct err *err)
{
    struct transfer transfer;
    if (transfer_begin(&transfer, job->job.confine, &job->options, err) != 0)
        return -1;
    errno = ENOBUFS;
    bool begun = begin_answer(&job->job.answer, &transfer) == 0, done = begun && work(job, &transfer, err) == 0;
    if (begun && !done && err->field[0] == '\0')
        err_field(err, "source");
    int result = done ? end_answer(&job->job.answer, &transfer) : -1;
    if (!begun || (done && result != 0)) {
        err_set_errno(err, err_from_errno(errno), errno, "cannot tell of %.150s", transfer.destination.name);
        err_field(err, "destination");
    }
    transfer_end(&transfer, done);
    return result;
}
