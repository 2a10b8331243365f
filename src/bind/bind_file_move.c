/* fs.move, for POST /files/move. */
#include "bind/transfer_job.h"
#include "prim/tree_move.h"

static int move(struct transfer_job *job, struct transfer *transfer, struct err *err)
{
    struct tree_move move = {.confine = job->job.confine,
                             .cancelled = &job->job.cancelled,
                             .overwrite = job->overwrite,
                             .parents_lock = transfer->parents_lock};
    int result = tree_move(&move, transfer->source.dir_fd, transfer->source.name, transfer->to_dir,
                           transfer->destination.name, err);
    transfer->parents_lock = move.parents_lock;
    return result;
}

static int run(struct fs_job *job, struct err *err)
{
    return transfer_job_run((struct transfer_job *)job, move, err);
}

/* fs.move(source, destination, {overwrite=, create_parents=}) -> raw JSON | nil, code, message, field.  Yields. */
int bind_fs_move(lua_State *L)
{
    return transfer_job_start(L, run);
}
