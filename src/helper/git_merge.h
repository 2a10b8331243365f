/* What merges that end in a commit and those that stop at conflicts have in common. All block. */
#ifndef ABX_HELPER_GIT_MERGE_H
#define ABX_HELPER_GIT_MERGE_H

#include "helper/git_refs.h"

struct git_merge_sides {
    git_commit *ours, *theirs;
    const char *ref; /* what the client called theirs */
};

/* The members `kind` and `sha` of the result. */
void git_merge_write(struct git_call *call, const char *kind, const git_oid *oid);
/* The message that the client gave; NULL for none, or a blank one. */
const char *git_merge_message(const struct git_call *call);

/* --- git_merge_conflicts.c */
/* All files of a diff are in the way: ERR_WORKTREE_DIRTY. Always -1. */
int git_merge_refuse(struct git_call *call, git_diff *diff, struct err *err);
/* Leaves conflicts in the index and in the files, for people to mend: ERR_MERGE_CONFLICT, where nothing else is in the
 * way. head is the tree of ours, merged what the merge makes of it. Always -1. */
int git_merge_leave(struct git_call *call, const struct git_merge_sides *sides, git_tree *head, git_index *merged,
                    struct err *err);
/* As `git reset --merge`: what the merge changed is as HEAD has it; other local changes stay. */
int git_merge_abort(struct git_call *call, struct err *err) ABX_MUST_USE;

#endif
