/* The machine and its system as GET /system/info tells them. */
#ifndef ABX_PRIM_SYSINFO_H
#define ABX_PRIM_SYSINFO_H

#include "base/buf.h"
#include "prim/container_kind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SYSINFO_TEXT_MAX = 128 };

/* Texts are as they were found, so perhaps not UTF-8, cut to fit; "unknown" where nothing tells. */
struct sysinfo {
    char hostname[SYSINFO_TEXT_MAX], kernel[SYSINFO_TEXT_MAX], arch[SYSINFO_TEXT_MAX];
    char os_id[SYSINFO_TEXT_MAX], os_name[SYSINFO_TEXT_MAX], os_version[SYSINFO_TEXT_MAX];
    char cpu_model[SYSINFO_TEXT_MAX];
    unsigned cpu_count; /* that this process may run on */
    double cpu_quota;   /* in processors; 0: no limit */
    uint64_t memory_bytes;
    bool memory_limited;
    uint64_t memory_limit_bytes;
    uint64_t uptime_ms;
    char user[SYSINFO_TEXT_MAX];
    uid_t uid;
    gid_t gid;
    char container[CONTAINER_KIND_MAX]; /* "" where none is seen */
    char pid1[SYSINFO_TEXT_MAX];
};

/* root as in kernel_text.h; name, kernel, architecture, processors and ids are always this process's. Does not fail.
 * Reads files: for a thread. Sources: os-release(5), proc(5), passwd(5) (no other source of names is asked: those can
 * wait for a network). */
void sysinfo_read(const char *root, struct sysinfo *out);
/* How many processors this process may run on; at least 1. */
unsigned sysinfo_cpu_count(void);
/* Appends `"hostname":…` to `"pid1":…`: the members of the answer without braces. -1: the buffer is full. */
int sysinfo_write(const struct sysinfo *info, struct buf *out) ABX_MUST_USE;

#endif
