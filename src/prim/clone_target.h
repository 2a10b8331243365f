/* Where a new directory tree goes that another process makes (a clone): it grows under a temporary name beside its
 * target, and can be taken back whatever became of that process. Where the target is an empty directory it grows
 * inside, and its entries move up: that directory may be the base, a mount, or where a program works. Blocking. */
#ifndef ABX_PRIM_CLONE_TARGET_H
#define ABX_PRIM_CLONE_TARGET_H

#include "prim/confine.h"
#include "prim/staged.h"

#include <limits.h>
#include <stddef.h>

struct clone_target {
    char path[PATH_MAX];                 /* the target's real path; nothing stands there, or an empty directory */
    char temporary[STAGED_NAME_LEN + 1]; /* the name beside it or inside, which nothing bears yet */
    bool inside;
    int dir_fd;    /* private from here */
    int parent_fd; /* where the temporary name is */
    char missing[PATH_MAX];
    size_t made;
};

/* Makes the directories that are missing above the target, and nothing else. ERR_ALREADY_EXISTS where something stands
 * there, and what confine_parent and parents_make tell. */
int clone_target_open(const struct confine *confine, const char *path, size_t len, struct clone_target *out,
                      struct err *err) ABX_MUST_USE;
/* The tree has its name. */
void clone_target_close(struct clone_target *target);
/* It has not: removes what stands under the temporary name, and the directories that were made for it as far as they
 * are empty. Nobody may write there any more. Closes too. */
void clone_target_undo(const struct confine *confine, struct clone_target *target);

#endif
