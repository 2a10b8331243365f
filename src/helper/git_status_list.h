/* What differs between HEAD, the index and the working tree; for git_status.c. */
#ifndef ABX_HELPER_GIT_STATUS_LIST_H
#define ABX_HELPER_GIT_STATUS_LIST_H

#include "helper/git_status_parts.h"

/* Zeroed to begin; git_status_files_deinit frees, whatever became of it. */
struct git_status_files {
    git_status_entry *entries; /* sorted by path; what they point to is the lists' */
    size_t count;
    git_status_list *staged, *unstaged[GIT_STATUS_PARTS_MAX];
    git_repository *handles[GIT_STATUS_PARTS_MAX]; /* of the lists but the first */
};

/* Fills *out for call->repo, which has a working tree: what libgit2's own list has with these flags
 * (GIT_STATUS_OPT_…), in its order. Blocks; may start threads and end them. -1 with *err. */
int git_status_files_read(const struct git_call *call, unsigned flags, struct git_status_files *out,
                          struct err *err) ABX_MUST_USE;
void git_status_files_deinit(struct git_status_files *files);

#endif
