/* fs.copy, for POST /files/copy. */
#include "bind/transfer_job.h"
#include "prim/tree_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int copy(struct transfer_job *job, struct transfer *transfer, struct err *err)
{
    struct tree_copy copy = {.confine = job->job.confine,
                             .cancelled = &job->job.cancelled,
                             .overwrite = job->overwrite,
                             .parents_lock = transfer->parents_lock};
    int result = tree_copy(&copy, transfer->source.dir_fd, transfer->source.name, transfer->to_dir,
                           transfer->destination.name, err);
    transfer->parents_lock = copy.parents_lock;
    if (result == 0 &&
        buf_printf(&job->job.answer, ",\"files\":%" PRIu64 ",\"bytes\":%" PRIu64, copy.files, copy.bytes) != 0)
        result = err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot answer");
    return result;
}

static int run(struct fs_job *job, struct err *err)
{
    if (transfer_job_run((struct transfer_job *)job, copy, err) == 0)
        return 0;
    /* The base may be read, but any copy of it would lie in it. */
    if (err->code == ERR_BASE_DIR_PROTECTED && strcmp(err->field, "source") == 0) {
        err_set(err, ERR_INVALID_REQUEST, "the destination lies inside the source");
        err_field(err, "destination");
    }
    return -1;
}

/* fs.copy(source, destination, {overwrite=, create_parents=}) -> raw JSON | nil, code, message, field.  Yields. */
int bind_fs_copy(lua_State *L)
{
    return transfer_job_start(L, run);
}
