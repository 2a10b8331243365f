/* Memory, processes and the server itself, counted now; called by bind_system. */
#include "prim/metrics.h"

#include "base/json.h"
#include "prim/cgroup_share.h"
#include "prim/kernel_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024 };

static bool read_in(const char *root, const char *dir, const char *name, struct buf *text)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return kernel_text_read(root, path, text);
}

static bool number_in(const char *root, const char *dir, const char *name, struct buf *text, uint64_t *out)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return kernel_text_read_number(root, path, text, out);
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

/* --- memory */

static uint64_t kib_value(const char *text, const char *key)
{
    uint64_t kib = 0;
    kernel_text_value(text, key, &kib);
    return kib < UINT64_MAX / 1024 ? kib * 1024 : 0;
}

/* Answers the machine's total. */
static uint64_t machine_memory(const char *root, struct buf *text, struct metrics *out)
{
    if (!kernel_text_read(root, "/proc/meminfo", text))
        return 0;
    uint64_t total = kib_value(text->data, "MemTotal"), available = kib_value(text->data, "MemAvailable");
    if (available == 0) /* before Linux 3.14 */
        available = kernel_text_sum(kernel_text_sum(kib_value(text->data, "MemFree"), kib_value(text->data, "Buffers")),
                                    kib_value(text->data, "Cached"));
    out->memory_used_bytes = less(total, available);
    return total;
}

static bool group_memory(const char *root, const struct cgroup_share *share, struct buf *text, struct metrics *out)
{
    bool v2 = share->version == CGROUP_V2;
    uint64_t used, cache = 0;
    if (share->version == CGROUP_NONE ||
        !number_in(root, share->dir, v2 ? "memory.current" : "memory.usage_in_bytes", text, &used))
        return false;
    if (read_in(root, share->dir, "memory.stat", text))
        kernel_text_value(text->data, v2 ? "inactive_file" : "total_inactive_file", &cache);
    out->memory_used_bytes = less(used, cache);
    out->oom_kills_known = read_in(root, share->dir, v2 ? "memory.events" : "memory.oom_control", text) &&
                           kernel_text_value(text->data, "oom_kill", &out->oom_kills);
    return true;
}

static void read_memory(const char *root, struct buf *text, struct metrics *out)
{
    struct cgroup_share share;
    cgroup_share_memory(root, &share);
    uint64_t total = out->memory_limit_bytes = machine_memory(root, text, out);
    if (!group_memory(root, &share, text, out))
        out->oom_kills_known =
            kernel_text_read(root, "/proc/vmstat", text) && kernel_text_value(text->data, "oom_kill", &out->oom_kills);
    if (share.limited && (total == 0 || share.limit < total))
        out->memory_limit_bytes = share.limit;
    if (out->memory_used_bytes > out->memory_limit_bytes)
        out->memory_used_bytes = out->memory_limit_bytes;
    if (out->memory_limit_bytes > 0)
        out->memory_percent = round(1e4 * (double)out->memory_used_bytes / (double)out->memory_limit_bytes) / 100;
}

/* --- the rest */

/* "0.20 0.18 0.12 1/80 11206": the fourth is running/all, of threads. */
static void read_load(const char *root, struct buf *text, struct metrics *out)
{
    double load[3];
    unsigned long long threads;
    if (!kernel_text_read(root, "/proc/loadavg", text) ||
        sscanf(text->data, "%lf %lf %lf %*u/%llu", &load[0], &load[1], &load[2], &threads) != 4)
        return;
    for (int i = 0; i < 3; i++)
        out->load[i] = isfinite(load[i]) && load[i] > 0 ? load[i] : 0;
    out->pids_current = threads;
}

static void read_pids(const char *root, struct buf *text, struct metrics *out)
{
    struct cgroup_share share;
    cgroup_share_pids(root, &share);
    if (share.version == CGROUP_NONE)
        return;
    number_in(root, share.dir, "pids.current", text, &out->pids_current);
    out->pids_limited = share.limited;
    out->pids_max = share.limit;
}

static uint64_t count_descriptors(const char *root)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/proc/self/fd", root);
    DIR *dir = opendir(path);
    uint64_t count = 0;
    if (!dir)
        return 0;
    for (struct dirent *found = readdir(dir); found; found = readdir(dir))
        count += found->d_name[0] != '.' && atoi(found->d_name) != dirfd(dir);
    closedir(dir);
    return count;
}

static void read_server(const char *root, struct buf *text, struct metrics *out)
{
    unsigned long long pages;
    if (kernel_text_read(root, "/proc/self/statm", text) && sscanf(text->data, "%*u %llu", &pages) == 1 &&
        pages < UINT64_MAX / (uint64_t)sysconf(_SC_PAGESIZE))
        out->server_rss_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    out->server_fds = count_descriptors(root);
}

void metrics_read(const char *root, struct metrics *out)
{
    struct buf text;
    *out = (struct metrics){0};
    buf_init(&text, TEXT_MAX);
    read_memory(root, &text, out);
    read_load(root, &text, out);
    read_pids(root, &text, out);
    out->disks_known = traffic_disks(root, &out->disks);
    traffic_network(root, &out->network);
    read_server(root, &text, out);
    buf_deinit(&text);
}

/* --- the answer */

static uint64_t shown(uint64_t value)
{
    return value < INT64_MAX ? value : INT64_MAX; /* clients read integers of 64 bits with a sign */
}

static int write_number(struct buf *out, const char *before, double value)
{
    return buf_append_text(out, before) != 0 || json_write_double(out, value) != 0 ? -1 : 0;
}

static int write_count(struct buf *out, const char *before, bool known, uint64_t value)
{
    return known ? buf_printf(out, "%s%" PRIu64, before, shown(value)) : buf_printf(out, "%snull", before);
}

static int write_cpu_and_memory(const struct metrics *metrics, struct buf *out)
{
    return write_number(out, "{\"cpu\":{\"percent\":", metrics->cpu.percent) != 0 ||
                   write_number(out, ",\"quota\":", metrics->cpu.quota) != 0 ||
                   write_number(out, ",\"load\":[", metrics->load[0]) != 0 ||
                   write_number(out, ",", metrics->load[1]) != 0 || write_number(out, ",", metrics->load[2]) != 0 ||
                   write_count(out, "]},\"memory\":{\"used_bytes\":", true, metrics->memory_used_bytes) != 0 ||
                   write_count(out, ",\"limit_bytes\":", true, metrics->memory_limit_bytes) != 0 ||
                   write_number(out, ",\"percent\":", metrics->memory_percent) != 0 ||
                   write_count(out, ",\"oom_kills\":", metrics->oom_kills_known, metrics->oom_kills) != 0
               ? -1
               : 0;
}

static int write_traffic(const struct metrics *metrics, struct buf *out)
{
    return write_count(out, "},\"pids\":{\"current\":", true, metrics->pids_current) != 0 ||
                   write_count(out, ",\"max\":", metrics->pids_limited, metrics->pids_max) != 0 ||
                   write_count(out, "},\"io\":{\"read_bytes\":", metrics->disks_known, metrics->disks.in_bytes) != 0 ||
                   write_count(out, ",\"write_bytes\":", metrics->disks_known, metrics->disks.out_bytes) != 0 ||
                   write_count(out, "},\"network\":{\"rx_bytes\":", true, metrics->network.in_bytes) != 0 ||
                   write_count(out, ",\"tx_bytes\":", true, metrics->network.out_bytes) != 0
               ? -1
               : 0;
}

int metrics_write(const struct metrics *metrics, const struct metrics_server *server, struct buf *out)
{
    return write_cpu_and_memory(metrics, out) != 0 || write_traffic(metrics, out) != 0 ||
                   write_count(out, "},\"server\":{\"rss_bytes\":", true, metrics->server_rss_bytes) != 0 ||
                   write_count(out, ",\"fds\":", true, metrics->server_fds) != 0 ||
                   write_count(out, ",\"requests\":", true, server->requests) != 0 ||
                   write_count(out, ",\"processes\":", true, server->processes) != 0 ||
                   write_count(out, ",\"terminals\":", true, server->terminals) != 0 || buf_append_text(out, "}}") != 0
               ? -1
               : 0;
}
