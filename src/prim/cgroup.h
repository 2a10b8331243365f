/* Where control groups are mounted and which of them this process is in: cgroup v2, v1, or both side by side. */
#ifndef ABX_PRIM_CGROUP_H
#define ABX_PRIM_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds the directory of this process's own group: of v2 where controller is NULL, else of the v1 hierarchy that has
 * that controller ("memory"). False where there is none, or it lies outside what is mounted here (a container may see
 * only a part of the tree). Sources: cgroups(7), proc(5) on mountinfo. Reads /proc; does not block. */
bool cgroup_dir(const char *controller, char out[PATH_MAX]);

/* A group and the way up from it. */
struct cgroup_place {
    char dir[PATH_MAX];
    size_t top_len; /* so much of dir is the highest group that can be seen: where the hierarchy is mounted */
};

/* The same below a root ("" is the machine; see kernel_text), which dir does not begin with. */
bool cgroup_find(const char *root, const char *controller, struct cgroup_place *out);
/* Moves to the parent; false where that cannot be seen. */
bool cgroup_up(struct cgroup_place *place);

#endif
