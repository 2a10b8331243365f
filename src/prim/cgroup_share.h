/* How much of the machine the control groups leave to this process: memory, processors, processes; v2 or v1, whichever
 * has the controller. The tightest of the own group and all above it that can be seen counts. */
#ifndef ABX_PRIM_CGROUP_SHARE_H
#define ABX_PRIM_CGROUP_SHARE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_share {
    enum cgroup_version version; /* CGROUP_NONE: no group, or one without such files (v2's root): the machine counts */
    bool limited;
    uint64_t limit; /* bytes, millionths of a processor, processes */
    /* Where to read what is used of it: the group whose limit that is, since all below it share in it; else the own
     * group, or the nearest above it that has the files. */
    char dir[PATH_MAX];
};

/* root as in kernel_text.h. They read cgroupfs and do not fail: what cannot be read is no limit. Sources:
 * Documentation/admin-guide/cgroup-v2.rst (memory.max, cpu.max, pids.max) and cgroup-v1 (memory, sched-bwc, pids). */
void cgroup_share_memory(const char *root, struct cgroup_share *out);
void cgroup_share_cpu(const char *root, struct cgroup_share *out);
void cgroup_share_pids(const char *root, struct cgroup_share *out);

#endif
