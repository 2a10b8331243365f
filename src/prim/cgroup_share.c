/* Limits of control groups, found by a walk from the own group upwards; called by sysinfo and metrics. */
#include "prim/cgroup_share.h"

#include "prim/cgroup.h"
#include "prim/kernel_text.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 64 * 1024 };

/* v1 writes "no limit" as the largest multiple of a page; no machine has half of that. */
#define V1_NO_LIMIT (UINT64_C(1) << 62)

/* One controller in one version: the file that shows a group has it, and how its limit is read. */
struct controller {
    const char *v1_name; /* NULL: v2 */
    const char *file;
    bool (*limit)(const char *root, const char *dir, struct buf *scratch, uint64_t *out);
};

static bool read_file(const char *root, const char *dir, const char *name, struct buf *out)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return kernel_text_read(root, path, out);
}

static bool read_number(const char *root, const char *dir, const char *name, struct buf *scratch, uint64_t *out)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return kernel_text_read_number(root, path, scratch, out);
}

static bool memory_v2(const char *root, const char *dir, struct buf *scratch, uint64_t *out)
{
    return read_number(root, dir, "memory.max", scratch, out);
}

/* hierarchical_memory_limit knows groups above that cannot be seen from here, too. */
static bool memory_v1(const char *root, const char *dir, struct buf *scratch, uint64_t *out)
{
    uint64_t own = UINT64_MAX, all = UINT64_MAX;
    read_number(root, dir, "memory.limit_in_bytes", scratch, &own);
    if (read_file(root, dir, "memory.stat", scratch))
        kernel_text_value(scratch->data, "hierarchical_memory_limit", &all);
    uint64_t limit = own < all ? own : all;
    if (limit >= V1_NO_LIMIT)
        return false;
    *out = limit;
    return true;
}

static bool pids_max(const char *root, const char *dir, struct buf *scratch, uint64_t *out)
{
    return read_number(root, dir, "pids.max", scratch, out);
}

static bool to_millionths(uint64_t quota_us, uint64_t period_us, uint64_t *out)
{
    uint64_t scaled;
    if (quota_us == 0 || period_us == 0 || __builtin_mul_overflow(quota_us, UINT64_C(1000000), &scaled))
        return false;
    *out = scaled / period_us;
    return *out > 0;
}

/* "max 100000" or "QUOTA PERIOD" */
static bool cpu_v2(const char *root, const char *dir, struct buf *scratch, uint64_t *out)
{
    uint64_t quota_us, period_us;
    if (!read_file(root, dir, "cpu.max", scratch))
        return false;
    const char *at = scratch->data;
    if (!kernel_text_digits(&at, &quota_us) || *at++ != ' ' || !kernel_text_digits(&at, &period_us))
        return false;
    return to_millionths(quota_us, period_us, out);
}

/* The quota is -1 where there is none. */
static bool cpu_v1(const char *root, const char *dir, struct buf *scratch, uint64_t *out)
{
    uint64_t quota_us, period_us;
    return read_number(root, dir, "cpu.cfs_quota_us", scratch, &quota_us) &&
           read_number(root, dir, "cpu.cfs_period_us", scratch, &period_us) && to_millionths(quota_us, period_us, out);
}

static bool walk_up(const char *root, const struct controller *controller, struct cgroup_share *out,
                    struct buf *scratch)
{
    struct cgroup_place place;
    *out = (struct cgroup_share){.version = CGROUP_NONE};
    if (!cgroup_find(root, controller->v1_name, &place))
        return false;
    do {
        uint64_t limit;
        if (!read_file(root, place.dir, controller->file, scratch))
            continue; /* a controller can be off below a group that has it */
        bool tighter = controller->limit(root, place.dir, scratch, &limit) && (!out->limited || limit <= out->limit);
        if (tighter) {
            out->limited = true;
            out->limit = limit;
        }
        if (tighter || out->version == CGROUP_NONE)
            memcpy(out->dir, place.dir, sizeof(out->dir));
        out->version = controller->v1_name ? CGROUP_V1 : CGROUP_V2;
    } while (cgroup_up(&place));
    return out->version != CGROUP_NONE;
}

/* v2 first: where a controller serves v2, v1 has no files of it. */
static void find(const char *root, const struct controller *v2, const struct controller *v1, struct cgroup_share *out)
{
    struct buf scratch;
    buf_init(&scratch, TEXT_MAX);
    if (!walk_up(root, v2, out, &scratch))
        walk_up(root, v1, out, &scratch);
    buf_deinit(&scratch);
}

void cgroup_share_memory(const char *root, struct cgroup_share *out)
{
    static const struct controller v2 = {NULL, "memory.current", memory_v2};
    static const struct controller v1 = {"memory", "memory.usage_in_bytes", memory_v1};
    find(root, &v2, &v1, out);
}

void cgroup_share_cpu(const char *root, struct cgroup_share *out)
{
    static const struct controller v2 = {NULL, "cpu.max", cpu_v2};
    static const struct controller v1 = {"cpu", "cpu.cfs_quota_us", cpu_v1};
    find(root, &v2, &v1, out);
}

void cgroup_share_pids(const char *root, struct cgroup_share *out)
{
    static const struct controller v2 = {NULL, "pids.current", pids_max};
    static const struct controller v1 = {"pids", "pids.current", pids_max};
    find(root, &v2, &v1, out);
}
