/* What is used now of what this process's control groups leave it, else of the machine: GET /system/metrics. */
#ifndef ABX_PRIM_METRICS_H
#define ABX_PRIM_METRICS_H

#include "base/buf.h"
#include "prim/cpu_meter.h"
#include "prim/traffic.h"

#include <stdbool.h>
#include <stdint.h>

struct metrics {
    struct cpu_use cpu;
    double load[3]; /* over 1, 5 and 15 minutes, of the machine */

    uint64_t memory_used_bytes;  /* without file cache that can be dropped; never above the limit */
    uint64_t memory_limit_bytes; /* the tightest limit, else what the machine has; 0 where neither is told */
    double memory_percent;
    bool oom_kills_known;
    uint64_t oom_kills;

    uint64_t pids_current; /* of the group; without one, all threads of the machine */
    bool pids_limited;
    uint64_t pids_max;

    bool disks_known;
    struct traffic disks, network;

    uint64_t server_rss_bytes, server_fds; /* of this process */
};

/* All but cpu, which is a meter's to fill in. root as in kernel_text.h. Does not fail; reads files: for a thread.
 * Sources: cgroup-v2.rst, cgroup-v1's memory.rst, proc(5). */
void metrics_read(const char *root, struct metrics *out);

/* What only the main thread knows. */
struct metrics_server {
    uint64_t requests, processes, terminals;
};
/* Appends the answer as JSON. -1: the buffer is full. */
int metrics_write(const struct metrics *metrics, const struct metrics_server *server, struct buf *out) ABX_MUST_USE;

#endif
