/* Cuts a working tree into parts of about the same number of tracked files; for git_status_list.c. */
#ifndef ABX_HELPER_GIT_STATUS_PARTS_H
#define ABX_HELPER_GIT_STATUS_PARTS_H

#include "helper/git.h"

enum { GIT_STATUS_PARTS_MAX = 4 };

/* Zeroed to begin; git_status_parts_deinit frees. */
struct git_status_parts {
    /* Paths below the root, sorted, folders with "/" at their end: so they are in the index's order, which libgit2's
     * walk relies upon. Together they are all that is there or tracked, each once. */
    char **names;
    size_t *weights, count, cap;
    size_t starts[GIT_STATUS_PARTS_MAX + 1]; /* part i is the names from starts[i] to before starts[i + 1] */
};

/* In so many parts (GIT_STATUS_PARTS_MAX at most), by their names in the index and in the folders. Blocks. 1: the tree
 * is not to be cut (a folder has too many names, is a repository of its own or cannot be read). -1: out of memory. */
int git_status_parts_read(const char *root, git_index *index, size_t parts, struct git_status_parts *out) ABX_MUST_USE;
void git_status_parts_deinit(struct git_status_parts *parts);

#endif
