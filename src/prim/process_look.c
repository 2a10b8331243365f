/* One process out of /proc; called by process_list and bind_proc_describe. */
#include "prim/process_look.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_MAX = 5, LOOK_PAUSE_US = 200 };

static uint64_t milliseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_nsec / 1000000;
}

void process_clock_read(struct process_clock *out)
{
    struct timespec boot, now;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct process_clock){.hertz = proc_hertz(), .now_ticks = proc_ticks_now()};
    /* To the tick, which starts are counted in: else the same start would be told one millisecond apart. */
    uint64_t tick_ms = 1000 / out->hertz > 0 ? 1000 / out->hertz : 1;
    out->boot_ms = (milliseconds(&now) - milliseconds(&boot) + tick_ms / 2) / tick_ms * tick_ms;
}

/* A process without words: a kernel thread, or one that has ended. As ps shows it. */
static void show_name(struct process_look *look)
{
    look->line_cut = false;
    look->line_len = (size_t)snprintf(look->line, sizeof(look->line), "[%s]%s", look->stat.name,
                                      proc_is_zombie(&look->stat) ? " <defunct>" : "");
}

/* Of the threads of the kernel, which have no words, the second process is the parent (in the first pid namespace, and
 * in others there are none). All others have words but for the moment in which they become another program. */
static bool has_words(const struct proc_stat *stat)
{
    return !proc_is_zombie(stat) && stat->pid != 2 && stat->parent != 2;
}

static int look_once(struct process_look *out, int proc_fd, pid_t pid)
{
    char path[32];
    struct stat found;
    int len = snprintf(path, sizeof(path), "%d", (int)pid);
    out->line_len = proc_read_once(proc_fd, pid, "cmdline", out->line, sizeof(out->line));
    out->line_cut = out->line_len > COMMAND_LINE_MAX_BYTES;
    if (out->line_cut)
        out->line_len = COMMAND_LINE_MAX_BYTES;
    strcpy(path + len, "/cwd");
    ssize_t cwd_len = readlinkat(proc_fd, path, out->cwd, sizeof(out->cwd));
    out->has_cwd = cwd_len > 0 && (size_t)cwd_len < sizeof(out->cwd);
    out->cwd_len = out->has_cwd ? (size_t)cwd_len : 0;
    path[len] = '\0';
    /* The directory itself belongs to the effective user even where the process is not dumpable. */
    if (fstatat(proc_fd, path, &found, 0) != 0)
        return -1;
    out->uid = found.st_uid;
    /* Last: it tells whether the words are missing because it has ended meanwhile. */
    return proc_stat_read(proc_fd, pid, &out->stat);
}

int process_look_at(struct process_look *out, int proc_fd, pid_t pid)
{
    int failed = look_once(out, proc_fd, pid);
    for (int i = 0; i < LOOKS_MAX && failed == 0 && out->line_len == 0 && has_words(&out->stat); i++) {
        usleep(LOOK_PAUSE_US);
        failed = look_once(out, proc_fd, pid);
    }
    return failed;
}

int process_look_briefly(struct process_look *out, const struct proc_stat *stat)
{
    char path[32];
    struct stat found;
    snprintf(path, sizeof(path), "/proc/%d", (int)stat->pid);
    if (fstatat(AT_FDCWD, path, &found, 0) != 0)
        return -1;
    out->stat = *stat;
    out->uid = found.st_uid;
    out->line_len = 0;
    out->has_cwd = false;
    return 0;
}

void process_measure(struct process_info *info, const struct proc_stat *stat, const struct process_clock *clock)
{
    uint64_t age = clock->now_ticks > stat->start_ticks ? clock->now_ticks - stat->start_ticks : 0;
    info->measured = true;
    info->parent = stat->parent;
    info->cpu_tenths = age > 0 ? (stat->user_ticks + stat->system_ticks) * 1000 / age : 0;
    info->rss_bytes = stat->rss_bytes;
}

void process_look_info(struct process_look *look, const struct process_clock *clock, struct process_info *out)
{
    const struct proc_stat *stat = &look->stat;
    uint64_t age = clock->now_ticks > stat->start_ticks ? clock->now_ticks - stat->start_ticks : 0;
    enum command_line_form form = look->line_len > 0 ? COMMAND_LINE_ARGV : COMMAND_LINE_NAME;
    if (form == COMMAND_LINE_NAME)
        show_name(look);
    *out = (struct process_info){
        .pid = stat->pid,
        .line = {.bytes = look->line, .len = look->line_len, .form = form, .truncated = look->line_cut},
        .cwd = look->has_cwd ? look->cwd : NULL,
        .cwd_len = look->cwd_len,
        .uid = look->uid,
        .exited = proc_is_zombie(stat),
        .started_ms = clock->boot_ms + stat->start_ticks * 1000 / clock->hertz,
        .exit = {.duration_ms = age * 1000 / clock->hertz},
    };
    if (!out->exited)
        process_measure(out, stat, clock);
}
