/* What fs.copy and fs.move share: their arguments as a job, and how their answers begin and end. */
#ifndef ABX_BIND_TRANSFER_JOB_H
#define ABX_BIND_TRANSFER_JOB_H

#include "bind/bind_fs.h"
#include "prim/transfer.h"

struct transfer_job {
    struct fs_job job;
    struct transfer_options options; /* its paths lie behind the struct */
    bool overwrite;
    char paths[];
};

/* (source, destination, {overwrite=, create_parents=}) -> what fs_job_start answers. work does the copy or move between
 * the ends that were found, and appends what the answer tells of it ("" or ,"name":value), with the parents_lock as in
 * tree_copy and tree_move. */
typedef int (*transfer_work_fn)(struct transfer_job *job, struct transfer *transfer, struct err *err);

/* The whole of fs.copy and fs.move: `return transfer_job_start(L, run)`, where run calls transfer_job_run. */
int transfer_job_start(lua_State *L, int (*run)(struct fs_job *job, struct err *err));
/* On a thread. */
int transfer_job_run(struct transfer_job *job, transfer_work_fn work, struct err *err);

#endif
