/* uname, os-release, cpuinfo, passwd and limits, read once for an answer; called by bind_system. */
#include "prim/sysinfo.h"

#include "base/json.h"
#include "prim/cgroup_share.h"
#include "prim/kernel_text.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Of cpuinfo too: its first page tells of the first processor, and more would make the kernel ask all of them. */
enum { TEXT_MAX = 4096, FILE_MAX = 1024 * 1024 };

static void set_text(char out[SYSINFO_TEXT_MAX], const char *text, size_t len)
{
    if (len >= SYSINFO_TEXT_MAX)
        len = SYSINFO_TEXT_MAX - 1;
    memcpy(out, text, len);
    out[len] = '\0';
}

static void or_unknown(char out[SYSINFO_TEXT_MAX])
{
    if (out[0] == '\0')
        strcpy(out, "unknown");
}

/* --- os-release(5): NAME=value lines as a shell reads them */

/* The value without its quotes and backslashes. */
static void set_shell_word(char out[SYSINFO_TEXT_MAX], const char *value)
{
    char quote = '\0';
    size_t len = 0;
    for (const char *c = value; *c != '\0' && *c != '\n' && len < SYSINFO_TEXT_MAX - 1; c++) {
        if (quote == '\0' && (*c == ' ' || *c == '\t' || *c == '\r'))
            break;
        if (*c == '\\' && quote != '\'' && c[1] != '\0' && c[1] != '\n')
            out[len++] = *++c;
        else if (*c == quote)
            quote = '\0';
        else if (quote == '\0' && (*c == '"' || *c == '\''))
            quote = *c;
        else
            out[len++] = *c;
    }
    out[len] = '\0';
}

/* The last line that sets it counts, as in a shell. */
static bool release_value(const char *text, const char *name, char out[SYSINFO_TEXT_MAX])
{
    size_t len = strlen(name);
    bool found = false;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        line += strspn(line, " \t");
        if (strncmp(line, name, len) == 0 && line[len] == '=') {
            set_shell_word(out, line + len + 1);
            found = out[0] != '\0';
        }
    }
    return found;
}

static void read_release(const char *root, struct buf *text, struct sysinfo *out)
{
    if (!kernel_text_read(root, "/etc/os-release", text) && !kernel_text_read(root, "/usr/lib/os-release", text))
        return;
    release_value(text->data, "ID", out->os_id);
    if (!release_value(text->data, "NAME", out->os_name))
        release_value(text->data, "PRETTY_NAME", out->os_name);
    if (!release_value(text->data, "VERSION_ID", out->os_version) &&
        !release_value(text->data, "VERSION", out->os_version))
        release_value(text->data, "BUILD_ID", out->os_version);
}

/* --- processors */

unsigned sysinfo_cpu_count(void)
{
    for (int cpus = 1024; cpus <= 1024 * 1024; cpus *= 2) { /* EINVAL: the kernel knows of more than fit */
        cpu_set_t *set = CPU_ALLOC(cpus);
        size_t size = CPU_ALLOC_SIZE(cpus);
        if (!set)
            return 1;
        int failed = sched_getaffinity(0, size, set);
        int count = failed ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (!failed)
            return count > 0 ? (unsigned)count : 1;
    }
    return 1;
}

/* "model name\t: AMD EPYC" */
static bool cpuinfo_value(const char *text, const char *name, char out[SYSINFO_TEXT_MAX])
{
    size_t len = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) != 0)
            continue;
        const char *at = line + len + strspn(line + len, " \t");
        if (*at != ':')
            continue;
        at += 1 + strspn(at + 1, " \t");
        size_t value_len = strcspn(at, "\n");
        while (value_len > 0 && (at[value_len - 1] == ' ' || at[value_len - 1] == '\t'))
            value_len--;
        if (value_len > 0) {
            set_text(out, at, value_len);
            return true;
        }
    }
    return false;
}

/* What 64 bit ARM tells instead of a name: numbers that its maker gave. */
static void arm_model(const char *text, char out[SYSINFO_TEXT_MAX])
{
    char maker[SYSINFO_TEXT_MAX], part[SYSINFO_TEXT_MAX];
    if (cpuinfo_value(text, "CPU implementer", maker) && cpuinfo_value(text, "CPU part", part))
        snprintf(out, SYSINFO_TEXT_MAX, "implementer %.40s part %.40s", maker, part);
}

static void read_cpu(const char *root, struct sysinfo *out)
{
    static const char *const names[] = {"model name", "Model", "Hardware", "cpu model", "cpu", "uarch"};
    struct buf text;
    struct cgroup_share share;
    buf_init(&text, TEXT_MAX);
    if (kernel_text_read(root, "/proc/cpuinfo", &text)) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && out->cpu_model[0] == '\0'; i++)
            cpuinfo_value(text.data, names[i], out->cpu_model);
        if (out->cpu_model[0] == '\0')
            arm_model(text.data, out->cpu_model);
    }
    buf_deinit(&text);
    out->cpu_count = sysinfo_cpu_count();
    cgroup_share_cpu(root, &share);
    out->cpu_quota = share.limited ? (double)share.limit / 1e6 : 0;
}

/* --- the rest */

static void read_memory(const char *root, struct buf *text, struct sysinfo *out)
{
    struct cgroup_share share;
    uint64_t kib = 0;
    if (kernel_text_read(root, "/proc/meminfo", text))
        kernel_text_value(text->data, "MemTotal", &kib);
    out->memory_bytes = kib < UINT64_MAX / 1024 ? kib * 1024 : 0;
    cgroup_share_memory(root, &share);
    out->memory_limited = share.limited;
    out->memory_limit_bytes = share.limit;
}

/* "12345.67 …" seconds */
static uint64_t read_uptime_ms(const char *root, struct buf *text)
{
    uint64_t seconds, fraction = 0;
    if (!kernel_text_read(root, "/proc/uptime", text))
        return 0;
    const char *at = text->data;
    if (!kernel_text_digits(&at, &seconds) || seconds > UINT64_MAX / 1000 - 1)
        return 0;
    if (*at++ == '.' && at[0] >= '0' && at[0] <= '9')
        fraction = (uint64_t)(at[0] - '0') * 100 + (at[1] >= '0' && at[1] <= '9' ? (uint64_t)(at[1] - '0') * 10 : 0);
    return seconds * 1000 + fraction;
}

/* "name:password:uid:…" */
static void read_user(const char *root, struct buf *text, struct sysinfo *out)
{
    out->uid = geteuid();
    out->gid = getegid();
    snprintf(out->user, sizeof(out->user), "%u", (unsigned)out->uid);
    if (!kernel_text_read(root, "/etc/passwd", text))
        return;
    for (const char *line = text->data; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t name_len = strcspn(line, ":\n");
        if (name_len == 0 || line[0] == '#' || line[name_len] != ':')
            continue;
        const char *at = line + name_len + 1;
        at += strcspn(at, ":\n");
        uint64_t uid;
        if (*at++ == ':' && kernel_text_digits(&at, &uid) && *at == ':' && uid == out->uid) {
            set_text(out->user, line, name_len);
            return;
        }
    }
}

static void read_pid1(const char *root, struct buf *text, struct sysinfo *out)
{
    if (!kernel_text_read(root, "/proc/1/comm", text))
        return;
    size_t len = text->len;
    set_text(out->pid1, text->data, len > 0 && text->data[len - 1] == '\n' ? len - 1 : len);
}

void sysinfo_read(const char *root, struct sysinfo *out)
{
    struct utsname names;
    struct buf text;
    *out = (struct sysinfo){0};
    buf_init(&text, FILE_MAX);
    if (uname(&names) == 0) {
        set_text(out->hostname, names.nodename, strlen(names.nodename));
        set_text(out->kernel, names.release, strlen(names.release));
        set_text(out->arch, names.machine, strlen(names.machine));
    }
    read_release(root, &text, out);
    read_cpu(root, out);
    read_memory(root, &text, out);
    out->uptime_ms = read_uptime_ms(root, &text);
    read_user(root, &text, out);
    read_pid1(root, &text, out);
    if (!container_kind(root, out->container))
        out->container[0] = '\0';
    buf_deinit(&text);
    char *texts[] = {out->hostname, out->kernel,     out->arch,      out->os_id,
                     out->os_name,  out->os_version, out->cpu_model, out->pid1};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        or_unknown(texts[i]);
}

/* --- the answer */

static int write_text(struct buf *out, const char *before, const char *text)
{
    return buf_append_text(out, before) != 0 || json_write_string(out, text, strlen(text)) != 0 ? -1 : 0;
}

static int write_count(struct buf *out, const char *before, uint64_t count)
{
    return buf_append_text(out, before) != 0 || json_write_int(out, count < INT64_MAX ? (int64_t)count : INT64_MAX) != 0
               ? -1
               : 0;
}

static int write_quota(struct buf *out, double quota)
{
    if (quota <= 0)
        return buf_append_text(out, ",\"quota\":null}");
    return buf_append_text(out, ",\"quota\":") != 0 || json_write_double(out, round(quota * 1e6) / 1e6) != 0 ||
                   buf_append_text(out, "}") != 0
               ? -1
               : 0;
}

static int write_machine(const struct sysinfo *info, struct buf *out)
{
    if (write_text(out, "\"hostname\":", info->hostname) != 0 ||
        write_text(out, ",\"os\":{\"id\":", info->os_id) != 0 || write_text(out, ",\"name\":", info->os_name) != 0 ||
        write_text(out, ",\"version\":", info->os_version) != 0 ||
        write_text(out, "},\"kernel\":", info->kernel) != 0 || write_text(out, ",\"arch\":", info->arch) != 0 ||
        write_text(out, ",\"cpu\":{\"model\":", info->cpu_model) != 0 ||
        write_count(out, ",\"count\":", info->cpu_count) != 0 || write_quota(out, info->cpu_quota) != 0 ||
        write_count(out, ",\"memory\":{\"total_bytes\":", info->memory_bytes) != 0)
        return -1;
    return info->memory_limited ? write_count(out, ",\"limit_bytes\":", info->memory_limit_bytes)
                                : buf_append_text(out, ",\"limit_bytes\":null");
}

int sysinfo_write(const struct sysinfo *info, struct buf *out)
{
    if (write_machine(info, out) != 0 || write_count(out, "},\"uptime_ms\":", info->uptime_ms) != 0 ||
        write_text(out, ",\"user\":{\"name\":", info->user) != 0 || write_count(out, ",\"uid\":", info->uid) != 0 ||
        write_count(out, ",\"gid\":", info->gid) != 0)
        return -1;
    int failed = info->container[0] != '\0' ? write_text(out, "},\"container\":", info->container)
                                            : buf_append_text(out, "},\"container\":null");
    return failed != 0 ? -1 : write_text(out, ",\"pid1\":", info->pid1);
}
