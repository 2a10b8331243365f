/* What the kernel tells of any process in /proc: which there are, and the numbers of each. Reads procfs, which does not
 * wait for devices; a whole table takes some milliseconds. */
#ifndef ABX_PRIM_PROC_STAT_H
#define ABX_PRIM_PROC_STAT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_NAME_MAX = 64 };

/* proc(5), /proc/PID/stat. Its second field is the name in brackets, and may itself hold brackets, blanks and newlines.
 */
struct proc_stat {
    pid_t pid, parent, group, session;
    pid_t foreground; /* the process group that has its terminal now; -1: it has no terminal */
    char state;       /* 'R', 'S', 'D', 'T', 'Z' … */
    uint64_t start_ticks, user_ticks, system_ticks; /* of proc_hertz a second; start since boot */
    uint64_t rss_bytes;
    char name[PROC_NAME_MAX]; /* bytes as the program chose them, at most 15 unless it is a kernel thread */
};

/* A descriptor of /proc for the functions below; the caller closes it. -1 with errno. */
int proc_open(void);
/* 0, or -1 where there is no such process (any more). */
int proc_stat_read(int proc_fd, pid_t pid, struct proc_stat *out) ABX_MUST_USE;
/* All process ids of this pid namespace in ascending order; the caller frees *out_pids. -1 with errno. */
int proc_pids(int proc_fd, pid_t **out_pids, size_t *out_count) ABX_MUST_USE;
/* The first bytes of /proc/PID/FILE ("cmdline", "environ"): how many came, 0 too where it cannot be read. */
size_t proc_read(int proc_fd, pid_t pid, const char *file, char *out, size_t size);
/* The same by a single read, for files that the kernel hands over whole if there is room: "stat", "cmdline". */
size_t proc_read_once(int proc_fd, pid_t pid, const char *file, char *out, size_t size);

/* Ended, and only not yet waited for. */
bool proc_is_zombie(const struct proc_stat *stat);
/* Time since boot, in the unit of start_ticks; and how many there are in a second. */
uint64_t proc_ticks_now(void);
uint64_t proc_hertz(void);

#endif
