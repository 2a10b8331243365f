/* Moves of files, links and whole trees, for fs.move. Blocking. */
#ifndef ABX_PRIM_TREE_MOVE_H
#define ABX_PRIM_TREE_MOVE_H

#include "prim/confine.h"

#include <stdatomic.h>
#include <stdbool.h>

struct tree_move {
    const struct confine *confine;
    const atomic_bool *cancelled;
    bool overwrite;    /* a file, link, FIFO or socket takes the place of another; a directory that of an empty one */
    bool parents_lock; /* is held: released as soon as something stands in the destination's directory */
};

/* Moves the entry `from` of from_dir (a link itself) to `to` in to_dir, by rename. Across file systems it makes a copy
 * under a temporary name, compares it with the source (entries of each kind, sizes), sees that the source did not
 * change meanwhile, gives the copy its name and then removes the source: on failure one of the two is whole, and until
 * the last step nothing but the source is left. ERR_ALREADY_EXISTS, ERR_NOT_EMPTY, ERR_IS_A_DIRECTORY,
 * ERR_NOT_A_DIRECTORY; ERR_BUSY for a mount point, or a source that changes while it is copied; ERR_PERMISSION_DENIED
 * also where a protected path is in the tree. */
int tree_move(struct tree_move *move, int from_dir, const char *from, int to_dir, const char *to,
              struct err *err) ABX_MUST_USE;

#endif
