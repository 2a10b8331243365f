/* What changes branches and tags, or brings the working tree to another commit, and what those operations share. */
#ifndef ABX_HELPER_GIT_REFS_H
#define ABX_HELPER_GIT_REFS_H

#include "helper/git.h"

/* branch{action,name,new_name,start} */
int git_branch_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* tag{action,name,ref,message} */
int git_tag_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* checkout{ref,create,force} */
int git_checkout_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* merge{ref,message,abort} */
int git_merge_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
/* stash{action,index,message,untracked} */
int git_stash_operation(struct git_call *call, struct err *err) ABX_MUST_USE;

/* --- git_branch.c */
/* Makes a branch at a commit; `field` names the parameter with its name. `upstream` ("origin/main") is what it follows,
 * or NULL. *out is to be freed; NULL where nobody wants it. */
int git_branch_make(struct git_call *call, const char *field, const char *name, const git_commit *commit,
                    const char *upstream, git_reference **out, struct err *err) ABX_MUST_USE;
/* A required parameter: ERR_INVALID_REQUEST with its field. NULL then. */
const char *git_branch_param(const struct git_call *call, const char *name, struct err *err) ABX_MUST_USE;

/* --- git_ref_names.c: the full names of all references that match a glob, sorted as git sorts them: libgit2 lists
 * loose ones before packed ones. Free them. */
struct git_ref_names {
    char **items;
    size_t count, cap;
};
int git_ref_names_list(struct git_call *call, const char *glob, struct git_ref_names *out,
                       struct err *err) ABX_MUST_USE;
void git_ref_names_free(struct git_ref_names *names);

/* --- git_overwrite.c: checkouts that keep local changes, and tell which are in the way */
struct git_overwrite {
    struct git_guard guard;
    git_checkout_notify_cb guard_cb;
    struct git_call *call;
    struct buf files; /* names, each ended by a NUL */
    bool full;        /* some are not in it */
    size_t count;
};
/* Fills options for a checkout with that strategy. Deinit afterwards. */
void git_overwrite_init(struct git_overwrite *overwrite, struct git_call *call, unsigned strategy,
                        git_checkout_options *options);
void git_overwrite_deinit(struct git_overwrite *overwrite);
/* One more file that is in the way. */
void git_overwrite_add(struct git_overwrite *overwrite, const char *path);
/* ERR_WORKTREE_DIRTY with "files":[…] in call->extra where some are in the way, else git_fail. Always -1. */
int git_overwrite_fail(struct git_overwrite *overwrite, int git_code, const char *what, struct err *err);
/* The opposite: makes the files as the tree has them, and the index in any case. paths: these alone, by their exact
 * names (not none); NULL: all that are tracked. Untracked ones stay. */
int git_overwrite_force(struct git_call *call, git_tree *tree, const git_strarray *paths, struct err *err) ABX_MUST_USE;

/* --- git_merge.c */
/* Refuses while the index has conflicts (ERR_MERGE_CONFLICT), or a merge, a rebase … is not finished (ERR_BUSY). */
int git_merge_settled(struct git_call *call, struct err *err) ABX_MUST_USE;
/* Brings a commit into HEAD as merge does, and writes kind and sha into the result; `name` is what messages call it. */
int git_merge_into_head(struct git_call *call, git_commit *theirs, const char *name, struct err *err) ABX_MUST_USE;

#endif
