/* What is mounted where, out of /proc/self/mountinfo. For prim/disks. */
#ifndef ABX_PRIM_MOUNTS_H
#define ABX_PRIM_MOUNTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount {
    uint64_t id;
    unsigned major, minor; /* of the file system */
    const char *path;      /* decoded: any bytes */
    const char *type;
    bool read_only; /* this mount, or the file system */
};

struct mounts {
    struct mount *list; /* in the order of the table: what is mounted over something comes after it */
    size_t count;
    char *text; /* what path and type point into */
};

/* proc_pid_mountinfo(5); lines that are not as it says are left out. -1 out of memory. */
int mounts_parse(struct mounts *out, const char *text, size_t len, struct err *err) ABX_MUST_USE;
/* The table of this process, as it is now. */
int mounts_read(struct mounts *out, struct err *err) ABX_MUST_USE;
void mounts_free(struct mounts *mounts);

/* Whether files of that type hold no data, but are the kernel's face. */
bool mount_is_kernel_type(const char *type);

#endif
