/* The operations of git_basic_operations, each in a file of its own; and what these have in common. */
#ifndef ABX_HELPER_GIT_BASIC_H
#define ABX_HELPER_GIT_BASIC_H

#include "helper/git.h"

int git_status(struct git_call *call, struct err *err) ABX_MUST_USE;    /* git_status.c */
int git_add(struct git_call *call, struct err *err) ABX_MUST_USE;       /* git_add.c */
int git_reset_op(struct git_call *call, struct err *err) ABX_MUST_USE;  /* git_reset.c */
int git_restore(struct git_call *call, struct err *err) ABX_MUST_USE;   /* git_restore.c */
int git_commit_op(struct git_call *call, struct err *err) ABX_MUST_USE; /* git_commit.c */

/* Makes the index at these paths what the tree is there (NULL: an empty tree), and writes it. */
int git_index_from_tree(struct git_call *call, const struct git_paths *paths, git_tree *tree,
                        struct err *err) ABX_MUST_USE;
/* Every path is tracked (or a folder with something tracked) in the index or, unless NULL, in the tree:
 * ERR_FILE_NOT_FOUND else. */
int git_check_tracked(git_index *index, git_tree *tree, const struct git_paths *paths, struct err *err) ABX_MUST_USE;
/* A callback for git_index_add_all and _update_all with the call as its payload: ends late ones, and lets libgit2 open
 * no repository in a folder that leads out of the base. */
int git_on_stage(const char *path, const char *spec, void *call);

#endif
