/* Who descends from a program: one look at what lives, for process_tree alone. Main thread only; reads /proc, as much
 * of it as is needed. */
#ifndef ABX_PRIM_PROCESS_KIN_H
#define ABX_PRIM_PROCESS_KIN_H

#include "base/err.h"
#include "prim/process_marker.h"
#include "prim/process_pids.h"
#include "prim/process_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_ANCESTORS_MAX = 64 };

struct process_kin_entry {
    pid_t pid, parent, group, session;
    uint64_t start_ticks;
    bool zombie, stopped, spared, member, environ_read;
    bool listed;                 /* a member because a control group lists it: the number may be another's by now */
    char id[PROCESS_MARKER_MAX]; /* of its ABX_PROCESS_ID; "" where it has none, or is not ours to read */
};

/* Who is never signalled: this process and all above it. */
struct process_spared {
    pid_t pids[PROCESS_ANCESTORS_MAX], sessions[PROCESS_ANCESTORS_MAX];
    size_t count;
};

/* One look at what lives, with the memory that the next one uses again. */
struct process_kin {
    int proc_fd;
    struct process_spared spared;
    struct process_kin_entry *entries; /* by pid */
    size_t count, cap;
    struct process_pids listed; /* by the control groups of the trees */
    bool protects;              /* one of the trees holds what is not to be signalled for a client */
};

/* Finds who is spared. False where /proc cannot be opened; process_kin_close in any case. */
bool process_kin_open(struct process_kin *look);
void process_kin_close(struct process_kin *look);
/* Whether that is pid 1, this process or one above it, or in a session of theirs. */
bool process_kin_spares(const struct process_kin *look, pid_t pid, pid_t session);
/* Looks (again) at all that lives of these trees: entries whose `member` is set. */
void process_kin_take(struct process_kin *look, const struct process_tree *trees, size_t count);

/* One process as it is now; -1: it is gone. */
int process_kin_read(int proc_fd, pid_t pid, struct process_kin_entry *out) ABX_MUST_USE;
bool process_kin_is_known(const struct process_tree_known *known, const struct process_kin_entry *entry);
/* Of a program that was started here: it was not reaped, and is no zombie. */
bool process_kin_leader_lives(const struct process_kin *look, const struct process_tree *tree);
/* Whether something of these trees may have left their control groups: a child of a listed member or, when its parents
 * are gone, a child of ours. */
bool process_kin_child_moved_out(const struct process_kin *look, const struct process_tree *trees, size_t count);
/* By the walk, which of the trees that are not known to live do. */
void process_kin_find_living(struct process_kin *look, const struct process_tree *trees, size_t count, bool *lives);

#endif
