/* What changes branches and tags, or brings the working tree to another commit, and what those operations share. */
#ifndef ABX_HELPER_GIT_REFS_H
#define ABX_HELPER_GIT_REFS_H

#include "helper/git_overwrite.h"
#include "helper/name_list.h"

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
/* Makes one at the commit that `start` names, else HEAD's; as with git, one that starts at a branch of a remote follows
 * it. Both out are to be freed; out_branch may be NULL. */
int git_branch_start(struct git_call *call, const char *field, const char *name, git_commit **out_commit,
                     git_reference **out_branch, struct err *err) ABX_MUST_USE;
/* Where HEAD is unborn, its branch is but a name: gives it another one, that no branch has. */
int git_branch_rename_unborn(struct git_call *call, const char *field, const char *name, struct err *err) ABX_MUST_USE;
/* A required parameter: ERR_INVALID_REQUEST with its field. NULL then. */
const char *git_branch_param(const struct git_call *call, const char *name, struct err *err) ABX_MUST_USE;

/* --- git_ref_names.c: the full names of all references that match a glob, sorted as git sorts them: libgit2 lists
 * loose ones before packed ones. Free them. */
int git_ref_names_list(struct git_call *call, const char *glob, struct name_list *out, struct err *err) ABX_MUST_USE;

/* --- git_merge.c */
/* Refuses while the index has conflicts (ERR_MERGE_CONFLICT), or a merge, a rebase … is not finished (ERR_BUSY). */
int git_merge_settled(struct git_call *call, struct err *err) ABX_MUST_USE;
/* Brings a commit into HEAD as merge does, and writes kind and sha into the result; `name` is what messages call it. */
int git_merge_into_head(struct git_call *call, git_commit *theirs, const char *name, struct err *err) ABX_MUST_USE;

#endif
