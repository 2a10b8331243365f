/* Checkouts that keep local changes and tell which of them are in the way; and such that do not keep them. All block.
 */
#ifndef ABX_HELPER_GIT_OVERWRITE_H
#define ABX_HELPER_GIT_OVERWRITE_H

#include "helper/git.h"

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
/* A checkout of the tree that keeps local changes; what git_overwrite_fail tells where it does not go. */
int git_overwrite_safely(struct git_call *call, git_tree *tree, const char *what, struct err *err) ABX_MUST_USE;
/* The opposite: makes the files as the tree has them, and the index in any case. paths: these alone, by their exact
 * names (not none); NULL: all that are tracked. Untracked ones stay. */
int git_overwrite_force(struct git_call *call, git_tree *tree, const git_strarray *paths, struct err *err) ABX_MUST_USE;
/* The index alone, as the tree. */
int git_overwrite_index(struct git_call *call, git_tree *tree, struct err *err) ABX_MUST_USE;

#endif
