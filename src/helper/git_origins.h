/* Which commit each line of a file came from. libgit2 can tell too, but not in time for a large file that was changed
 * in many places, and a call to it cannot be ended. */
#ifndef ABX_HELPER_GIT_ORIGINS_H
#define ABX_HELPER_GIT_ORIGINS_H

#include "helper/git.h"

struct git_origins {
    size_t first, count; /* the lines that were asked for, the first of them 1-based */
    uint32_t *of_line;   /* for each an index into commits */
    git_commit **commits;
    size_t commit_count, commit_cap;
};

/* Follows the lines from that commit, in which the file is `blob`, to those that wrote them, through renames of the
 * whole file. Ends with ERR_UPSTREAM_TIMEOUT when the call is late. Free *out. */
int git_origins_find(struct git_call *call, git_commit *commit, const char *path, const git_blob *blob, size_t first,
                     size_t count, struct git_origins *out, struct err *err) ABX_MUST_USE;
void git_origins_free(struct git_origins *origins);

#endif
