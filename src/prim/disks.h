/* The file systems that hold something, and how full they are: the answer of GET /system/disk as JSON text. */
#ifndef ABX_PRIM_DISKS_H
#define ABX_PRIM_DISKS_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/mounts.h"

#include <sys/statvfs.h>

enum {
    DISKS_WAIT_MS = 2000,    /* so long for all together */
    DISKS_PATIENCE_MS = 500, /* for one file system, before the others go on without it */
};

/* Appends {"filesystems":[{"path":…,"type":…,"total_bytes":…,…}]}, by path: one row for each file system, where the
 * shortest path leads to it; of several mounts at one path the last. Without those of the kernel and those that have no
 * room for anything; but that of base_dir is always there.
 *
 * Asking a file system can hang for ever (a network is gone), so threads of its own do it: where one does not answer in
 * time, its numbers are null, and its thread stays with it; nobody asks it again before that came back. Waits at most
 * DISKS_WAIT_MS: for threads. -1 with err, then out is no whole text. */
int disks_write(struct buf *out, const char *base_dir, struct err *err) ABX_MUST_USE;

/* The same for other mounts than this process's (takes them), and another way to look at one: 0; 1, it is hidden behind
 * another mount; -1, it cannot be looked at. Called from threads. base_mount is the id of a mount, 0: none. */
typedef int (*disks_look_fn)(const struct mount *mount, struct statvfs *out);
int disks_write_of(struct buf *out, struct mounts *mounts, uint64_t base_mount, disks_look_fn look,
                   struct err *err) ABX_MUST_USE;

#endif
