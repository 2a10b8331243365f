/* A tree from its top directory down, entry by entry, from held descriptors and without following a link: for what
 * copies and moves trees. Blocking. */
#ifndef ABX_PRIM_TREE_WALK_H
#define ABX_PRIM_TREE_WALK_H

#include "base/err.h"

#include <stddef.h>
#include <sys/stat.h>

/* Where the walk stands; all borrowed. */
struct tree_at {
    int dir_fd;             /* the directory that holds the entry; -1 for the top */
    const char *name;       /* in dir_fd; "" for the top */
    const char *path;       /* from the top, for messages; "" for the top */
    unsigned char type;     /* DT_REG …; never DT_UNKNOWN */
    int fd;                 /* of a directory, open for reading; else -1 */
    const struct stat *dir; /* of a directory, as it was when it was entered; else NULL */
    size_t depth;           /* directories above the entry; 0 for the top */
};

/* Each answers 0, or -1 with *err, which ends the walk. NULL: not asked. */
struct tree_visitor {
    void (*approach)(int dir_fd, const char *name); /* a directory, before it is opened; not the top */
    int (*enter)(void *ctx, const struct tree_at *at, struct err *err); /* a directory, before what is in it */
    int (*entry)(void *ctx, const struct tree_at *at, struct err *err); /* anything else */
    int (*leave)(void *ctx, const struct tree_at *at, struct err *err); /* a directory, after what is in it */
};

/* Takes fd, a directory open for reading. In the order of the names' bytes. What cannot be read ends the walk, with its
 * path in the message. */
int tree_walk(int fd, const struct tree_visitor *visitor, void *ctx, struct err *err) ABX_MUST_USE;

#endif
