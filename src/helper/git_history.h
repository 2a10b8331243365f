/* What reads the history of a repository, and what those operations share. */
#ifndef ABX_HELPER_GIT_HISTORY_H
#define ABX_HELPER_GIT_HISTORY_H

#include "helper/git.h"

enum {
    /* A list ends (truncated) when the answer has grown to this: half of the longest line that a worker may send. */
    GIT_ANSWER_FULL_BYTES = 16 * 1024 * 1024,
};

/* log{ref,limit,skip,paths} */
int git_log_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* show{ref}: a commit and its patch against the first parent; show takes paths, context and max_bytes as diff does. */
int git_show_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* diff{from,to,staged,paths,context,max_bytes} */
int git_diff_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* blame{file,ref,start_line,end_line} */
int git_blame_operation(struct git_call *call, struct err *err) ABX_MUST_USE;

/* Parent number n of a commit. 1: it is missing because the clone is shallow, and *out is NULL. 0, or -1 with *err. */
int git_log_parent(const struct git_call *call, const git_commit *commit, unsigned n, git_commit **out,
                   struct err *err) ABX_MUST_USE;

#endif
