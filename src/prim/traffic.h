/* Bytes that went to and from disks and networks since the group, or the machine, began. */
#ifndef ABX_PRIM_TRAFFIC_H
#define ABX_PRIM_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

struct traffic {
    uint64_t in_bytes, out_bytes;
};

/* Of the own control group (v2's io.stat, v1's blkio.throttle.io_service_bytes), else of the machine's whole disks
 * (/proc/diskstats). Devices that lie on others (dm, md, loop) do not count, or their bytes would twice. False where
 * nothing tells. root as in kernel_text.h. Sources: cgroup-v2.rst, blkio-controller.rst, iostats.rst. */
bool traffic_disks(const char *root, struct traffic *out);
/* Of all interfaces of this network namespace but lo (/proc/net/dev). All 0 where it cannot be read. */
void traffic_network(const char *root, struct traffic *out);

#endif
