/* Sums over devices and interfaces; called by metrics. */
#include "prim/traffic.h"

#include "prim/cgroup.h"
#include "prim/kernel_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4 * 1024 * 1024, SECTOR_BYTES = 512 /* of diskstats, whatever the disk has */ };

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

static bool device_has(const char *root, unsigned major, unsigned minor, const char *member)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u%s", root, major, minor, member);
    return access(path, F_OK) == 0;
}

/* A disk itself: neither on top of another device nor in memory (only zram has mm_stat). */
static bool is_disk(const char *root, unsigned major, unsigned minor)
{
    return !device_has(root, major, minor, "/dm") && !device_has(root, major, minor, "/md") &&
           !device_has(root, major, minor, "/loop") && !device_has(root, major, minor, "/mm_stat");
}

static void add(uint64_t *sum, uint64_t more)
{
    *sum = kernel_text_sum(*sum, more);
}

/* The number behind name within the line. */
static uint64_t number_in_line(const char *line, const char *name)
{
    uint64_t value = 0;
    const char *end = line + strcspn(line, "\n"), *found = strstr(line, name);
    if (!found || found >= end)
        return 0;
    const char *at = found + strlen(name);
    kernel_text_digits(&at, &value);
    return value;
}

/* "8:0 rbytes=1 wbytes=2 rios=…" in v2; "8:0 Read 1" and "8:0 Write 2" in v1. */
static bool sum_group(const char *root, const char *text, struct traffic *out)
{
    bool any = false;
    for (const char *line = text; *line != '\0'; line = next_line(line)) {
        unsigned major, minor;
        if (sscanf(line, "%u:%u ", &major, &minor) != 2)
            continue;
        any = true;
        if (!is_disk(root, major, minor))
            continue;
        add(&out->in_bytes, number_in_line(line, " rbytes="));
        add(&out->in_bytes, number_in_line(line, " Read "));
        add(&out->out_bytes, number_in_line(line, " wbytes="));
        add(&out->out_bytes, number_in_line(line, " Write "));
    }
    return any;
}

static bool from_group(const char *root, const char *controller, const char *file, struct buf *text,
                       struct traffic *out)
{
    struct cgroup_place place;
    if (!cgroup_find(root, controller, &place))
        return false;
    do {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof(path), "%s/%s", place.dir, file);
        if (kernel_text_read(root, path, text))
            return sum_group(root, text->data, out);
    } while (cgroup_up(&place));
    return false;
}

/* "8 0 sda READS MERGED SECTORS MS WRITES MERGED SECTORS …" */
static bool from_machine(const char *root, struct buf *text, struct traffic *out)
{
    bool any = false;
    if (!kernel_text_read(root, "/proc/diskstats", text))
        return false;
    for (const char *line = text->data; *line != '\0'; line = next_line(line)) {
        unsigned major, minor;
        unsigned long long read, written;
        if (sscanf(line, "%u %u %*s %*u %*u %llu %*u %*u %*u %llu", &major, &minor, &read, &written) != 4 ||
            !device_has(root, major, minor, "") || device_has(root, major, minor, "/partition") ||
            !is_disk(root, major, minor))
            continue;
        any = true;
        add(&out->in_bytes, read < UINT64_MAX / SECTOR_BYTES ? read * SECTOR_BYTES : 0);
        add(&out->out_bytes, written < UINT64_MAX / SECTOR_BYTES ? written * SECTOR_BYTES : 0);
    }
    return any;
}

bool traffic_disks(const char *root, struct traffic *out)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    *out = (struct traffic){0};
    bool found = from_group(root, NULL, "io.stat", &text, out) ||
                 from_group(root, "blkio", "blkio.throttle.io_service_bytes_recursive", &text, out) ||
                 from_group(root, "blkio", "blkio.throttle.io_service_bytes", &text, out) ||
                 from_machine(root, &text, out);
    buf_deinit(&text);
    return found;
}

/* "  eth0: BYTES PACKETS ERRS DROP FIFO FRAME COMPRESSED MULTICAST BYTES …" below two lines of heads. */
void traffic_network(const char *root, struct traffic *out)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    *out = (struct traffic){0};
    const char *line = kernel_text_read(root, "/proc/net/dev", &text) ? text.data : "";
    for (; *line != '\0'; line = next_line(line)) {
        const char *name = line + strspn(line, " ");
        const char *colon = memchr(name, ':', strcspn(name, "\n"));
        unsigned long long in, sent;
        if (!colon || strncmp(name, "lo:", 3) == 0 ||
            sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &sent) != 2)
            continue;
        add(&out->in_bytes, in);
        add(&out->out_bytes, sent);
    }
    buf_deinit(&text);
}
