/* Copies of files, links and whole trees, for fs.copy and for moves across file systems. Blocking. */
#ifndef ABX_PRIM_TREE_COPY_H
#define ABX_PRIM_TREE_COPY_H

#include "prim/confine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tree_copy {
    const struct confine *confine;
    const atomic_bool *cancelled;
    bool overwrite;
    bool parents_lock; /* is held: released as soon as something stands in the destination's directory */

    uint64_t files, bytes; /* the result: regular files (each name), and their content */
    uint64_t others;       /* links, FIFOs, sockets and directories */
};

/* Copies the entry `from` of from_dir (a link itself) as `to` in to_dir, with content, modes, times, owners as far as
 * the server may, extended attributes, holes, and hard links within the tree. Both directories are only used to look
 * names up (O_PATH will do); nothing is followed.
 * What is new is made under a temporary name and gets its own when it is whole; on failure nothing of it is left. With
 * overwrite a file, link, FIFO or socket takes the place of another at once, and a directory is added to one that is
 * there, which keeps its own mode and times: file by file, so that a failure leaves the files before it.
 * Devices and what is in procfs and sysfs are refused, a socket too unless it is in a tree; so are protected paths, and
 * a tree that comes upon its own copy (ERR_INVALID_REQUEST). Errors bear the path in the tree and the field "source" or
 * "destination". */
int tree_copy(struct tree_copy *copy, int from_dir, const char *from, int to_dir, const char *to,
              struct err *err) ABX_MUST_USE;

#endif
