/* Operations of `abxd-helper git` on branches, tags and the working tree: the list for git_main.c. */
#include "helper/git_refs.h"

const struct git_operation git_refs_operations[] = {
    {"branch", git_branch_operation, 0},
    {"tag", git_tag_operation, 0},
    {"checkout", git_checkout_operation, GIT_NEEDS_WORKTREE},
    {"merge", git_merge_operation, GIT_NEEDS_WORKTREE},
    {"stash", git_stash_operation, GIT_NEEDS_WORKTREE},
    {NULL, NULL, 0},
};
