/* Samples of used processor time; server makes the one meter, which outlives reloads, and metrics asks it. */
#include "prim/cpu_meter.h"

#include "prim/cgroup.h"
#include "prim/cgroup_share.h"
#include "prim/kernel_text.h"
#include "prim/sysinfo.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024 };

struct sample {
    enum cgroup_version source;
    uint64_t used_ns, at_ns;
    double processors; /* that used_ns can grow by in a nanosecond */
};

struct cpu_meter {
    pthread_mutex_t lock;
    bool sampled, known;
    struct sample last;
    double percent;
};

struct cpu_meter *cpu_meter_new(void)
{
    struct cpu_meter *meter = calloc(1, sizeof(*meter));
    if (meter)
        pthread_mutex_init(&meter->lock, NULL);
    return meter;
}

void cpu_meter_free(struct cpu_meter *meter)
{
    if (!meter)
        return;
    pthread_mutex_destroy(&meter->lock);
    free(meter);
}

/* "cpu  user nice system idle iowait irq softirq steal …" in ticks; guests are counted with user. What the hypervisor
 * stole is nobody's use here. */
static bool read_machine(const char *root, struct buf *text, struct sample *out)
{
    uint64_t field[7], ticks = 0;
    unsigned processors = 0;
    if (!kernel_text_read(root, "/proc/stat", text) || strncmp(text->data, "cpu ", 4) != 0)
        return false;
    const char *at = text->data + 3;
    for (int i = 0; i < 7; i++) {
        at += strspn(at, " ");
        if (!kernel_text_digits(&at, &field[i]))
            return false;
        if (i != 3 && i != 4)
            ticks = kernel_text_sum(ticks, field[i]);
    }
    for (const char *line = strstr(text->data, "\ncpu"); line; line = strstr(line + 1, "\ncpu"))
        processors++;
    uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    out->used_ns = ticks < UINT64_MAX / 1000000000 ? ticks * 1000000000 / hertz : 0;
    out->processors = processors > 0 ? processors : 1;
    return true;
}

static bool read_v2(const char *root, const char *dir, struct buf *text, uint64_t *out_ns)
{
    char path[PATH_MAX + 64];
    uint64_t us;
    snprintf(path, sizeof(path), "%s/cpu.stat", dir);
    if (!kernel_text_read(root, path, text) || !kernel_text_value(text->data, "usage_usec", &us) ||
        us > UINT64_MAX / 1000)
        return false;
    *out_ns = us * 1000;
    return true;
}

/* Controller cpuacct lies in cpu's hierarchy or in one of its own. */
static bool read_v1(const char *root, const char *dir, struct buf *text, uint64_t *out_ns)
{
    char path[PATH_MAX + 64];
    struct cgroup_place place;
    snprintf(path, sizeof(path), "%s/cpuacct.usage", dir);
    if (kernel_text_read_number(root, path, text, out_ns))
        return true;
    if (!cgroup_find(root, "cpuacct", &place))
        return false;
    snprintf(path, sizeof(path), "%s/cpuacct.usage", place.dir);
    return kernel_text_read_number(root, path, text, out_ns);
}

static bool read_sample(const char *root, struct sample *out, double *out_quota)
{
    struct cgroup_share share;
    struct buf text;
    double count = sysinfo_cpu_count();
    cgroup_share_cpu(root, &share);
    *out_quota = share.limited ? fmin((double)share.limit / 1e6, count) : count;
    out->source = share.version;
    out->processors = *out_quota;
    buf_init(&text, TEXT_MAX);
    bool found = (share.version == CGROUP_V2 && read_v2(root, share.dir, &text, &out->used_ns)) ||
                 (share.version == CGROUP_V1 && read_v1(root, share.dir, &text, &out->used_ns));
    if (!found) {
        out->source = CGROUP_NONE;
        found = read_machine(root, &text, out);
    }
    buf_deinit(&text);
    return found;
}

static double percent_between(const struct sample *from, const struct sample *to)
{
    if (to->source != from->source || to->used_ns < from->used_ns || to->processors <= 0)
        return 0;
    double percent =
        100.0 * (double)(to->used_ns - from->used_ns) / ((double)(to->at_ns - from->at_ns) * to->processors);
    return round(fmin(percent, 100) * 100) / 100;
}

unsigned cpu_meter_ask(struct cpu_meter *meter, const char *root, uint64_t now_ns, struct cpu_use *out)
{
    const uint64_t span_ns = (uint64_t)CPU_METER_SPAN_MS * 1000000;
    struct sample now = {.at_ns = now_ns};
    unsigned wait_ms = 0;
    *out = (struct cpu_use){0};
    if (!read_sample(root, &now, &out->quota))
        return 0;
    pthread_mutex_lock(&meter->lock);
    /* Another thread may have come later and got the lock first. */
    uint64_t elapsed_ns = meter->sampled && now_ns > meter->last.at_ns ? now_ns - meter->last.at_ns : 0;
    if (!meter->sampled) {
        meter->sampled = true;
        meter->last = now;
        wait_ms = CPU_METER_SPAN_MS;
    } else if (elapsed_ns >= span_ns) {
        meter->percent = percent_between(&meter->last, &now);
        meter->known = true;
        meter->last = now;
    } else if (!meter->known) {
        wait_ms = (unsigned)((span_ns - elapsed_ns + 999999) / 1000000);
    }
    out->percent = meter->percent;
    pthread_mutex_unlock(&meter->lock);
    return wait_ms;
}
