/* What a tree amounts to, for moves across file systems: whether its copy is whole, and whether it stayed as it was.
 * Blocking. */
#ifndef ABX_PRIM_TREE_SUM_H
#define ABX_PRIM_TREE_SUM_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tree_sum {
    uint64_t files, directories, others; /* names; others: links, FIFOs, sockets, devices */
    uint64_t bytes;                      /* the sizes of the files */
    uint64_t state; /* changes with any path, inode, size or time: for one tree at two moments, not for its copy */
};

/* Of the entry `name` of dir_fd, not followed, with all below it. *out is zeroed by the caller. */
int tree_sum(int dir_fd, const char *name, const atomic_bool *cancelled, struct tree_sum *out,
             struct err *err) ABX_MUST_USE;
/* Whether the two have as many entries of each kind, and as many bytes. */
bool tree_sum_is_copy(const struct tree_sum *sum, const struct tree_sum *copy);

#endif
