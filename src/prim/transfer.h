/* The two ends of a copy or a move: looked up, and kept from being the same or one inside the other. For fs.copy and
 * fs.move. Blocking. */
#ifndef ABX_PRIM_TRANSFER_H
#define ABX_PRIM_TRANSFER_H

#include "prim/confine.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct transfer_options {
    const char *source, *destination; /* bytes, borrowed */
    size_t source_len, destination_len;
    bool create_parents;
};

enum { TRANSFER_PATH_MAX = PATH_MAX + NAME_MAX + 2 };

struct transfer {
    struct confine_entry source, destination; /* as confine_parent found them */
    int to_dir;                               /* where the destination's name is or will be */
    char source_path[TRANSFER_PATH_MAX];      /* absolute; of the directory the real one */
    char to_dir_path[PATH_MAX];               /* likewise; "" for the root */
    size_t made;                              /* directories */
    bool parents_lock;                        /* is held */
};

/* Finds both, and makes the destination's missing directories; nothing is followed at the end of either path.
 * Afterwards parents_lock is held, until something stands in to_dir. Errors have the field "source" or "destination":
 * ERR_BASE_DIR_PROTECTED, ERR_FILE_NOT_FOUND, ERR_INVALID_REQUEST where the two are the same, or the destination lies
 * in the source (also by way of a mount). */
int transfer_begin(struct transfer *transfer, const struct confine *confine, const struct transfer_options *options,
                   struct err *err) ABX_MUST_USE;
/* Closes it; also the directories that were made go again unless it is done. After a success of transfer_begin only. */
void transfer_end(struct transfer *transfer, bool done);

#endif
