/* A control group (v2) for each program that is started, so that nothing it starts gets out of sight: neither by
 * another session, nor by another environment, nor by losing its parents. They lie below the server's own group, as
 * abxd-PID/NUMBER. Sources: cgroups(7), the kernel's cgroup-v2.rst. Reads and writes cgroupfs, some microseconds each;
 * main thread only. */
#ifndef ABX_PRIM_PROCESS_CGROUP_H
#define ABX_PRIM_PROCESS_CGROUP_H

#include "base/err.h"
#include "prim/process_pids.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process_cgroups;
struct process_cgroup;

/* Makes the place for them, after the empty ones of dead servers are removed, and tries it once. NULL where there is
 * none: no cgroup2 in sight, or nothing may be made or started there. */
struct process_cgroups *process_cgroups_new(void);
/* Kills what is left in them, and removes and frees them all, those taken too. NULL is allowed. */
void process_cgroups_free(struct process_cgroups *cgroups);

/* An empty one, of those given back before or new; NULL where the kernel refuses, or they are frozen: the caller would
 * wait for a child that never begins. One that is frozen between this and the start still holds it up. */
struct process_cgroup *process_cgroup_take(struct process_cgroups *cgroups);
/* Its directory, for spawn.cgroup_fd, until process_cgroup_close. -1 with errno. */
int process_cgroup_open(const struct process_cgroup *cgroup);
void process_cgroup_close(const struct process_cgroup *cgroup, int fd);
/* Gives it back where nothing lives in it; false: it stays the caller's. killed: its program died of SIGKILL, so it may
 * not be used again: the kernel marks a group that cgroup.kill was written to, and kills who is born in it by clone3
 * afterwards. */
bool process_cgroup_return(struct process_cgroup *cgroup, bool killed);
/* Gives it up, whatever lives in it: it is removed when that has ended. */
void process_cgroup_abandon(struct process_cgroup *cgroup);

/* Whether anything lives in it or below it: one small read. */
bool process_cgroup_populated(const struct process_cgroup *cgroup);
/* Appends all that lives in it and in groups below it. -1 where memory is out. */
int process_cgroup_list(const struct process_cgroup *cgroup, struct process_pids *members) ABX_MUST_USE;
/* Kills all at once, those too that are being forked. False where the kernel cannot (before 5.14). */
bool process_cgroup_kill(const struct process_cgroup *cgroup);

/* The number of a group, never 0; and of that which a process is in or below, 0 where it is in none of ours. */
unsigned process_cgroup_number(const struct process_cgroup *cgroup);
unsigned process_cgroup_number_of(const struct process_cgroups *cgroups, int proc_fd, pid_t pid);

#endif
