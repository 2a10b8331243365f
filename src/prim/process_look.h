/* A process as /proc shows it, of whoever it is: read on threads, as a look at a command line can wait for the process
 * that it belongs to. */
#ifndef ABX_PRIM_PROCESS_LOOK_H
#define ABX_PRIM_PROCESS_LOOK_H

#include "prim/proc_stat.h"
#include "prim/process_info.h"

#include <limits.h>

/* What times in /proc are counted from, for one job. */
struct process_clock {
    uint64_t hertz, now_ticks;
    uint64_t boot_ms; /* since 1970 */
};
void process_clock_read(struct process_clock *out);

struct process_look {
    struct proc_stat stat;
    uid_t uid;
    size_t line_len, cwd_len;
    bool line_cut, has_cwd;
    char line[COMMAND_LINE_MAX_BYTES + 1];
    char cwd[PATH_MAX];
};

/* 0, or -1 where there is no such process (any more). A zombie is one. */
int process_look_at(struct process_look *out, int proc_fd, pid_t pid) ABX_MUST_USE;
/* The same without what can wait for the process: its name stands for its words. stat is what was read just now. */
int process_look_briefly(struct process_look *out, const struct proc_stat *stat) ABX_MUST_USE;
/* What the table does not know, of a process that it did not start; pointers lead into look. */
void process_look_info(struct process_look *look, const struct process_clock *clock, struct process_info *out);
/* Sets parent, cpu_tenths and rss_bytes. */
void process_measure(struct process_info *info, const struct proc_stat *stat, const struct process_clock *clock);

#endif
