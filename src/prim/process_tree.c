/* Signals to everything that descends from a program, and whether any of it lives; called by prim/process. */
#include "prim/process_tree.h"

#include "prim/process_cgroup.h"
#include "prim/process_kin.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { ROUNDS_MAX = 4, KILL_ROUNDS_MAX = 16 };

/* --- signals */

/* Whether a member that a control group listed is in one of them still, so that the number is not another's. */
static bool still_listed(const struct process_kin *look, const struct process_tree *trees, size_t count, pid_t pid)
{
    unsigned number = 0;
    for (size_t t = 0; t < count; t++) {
        if (trees[t].cgroup == NULL)
            continue;
        if (number == 0) /* all are of one table */
            number = process_cgroup_number_of(trees[t].cgroups, look->proc_fd, pid);
        if (number == 0 || number == process_cgroup_number(trees[t].cgroup))
            return number != 0;
    }
    return false;
}

/* By pidfd, so that the pid cannot become another's between the look and the signal. 0, or an errno. */
static int send_to(const struct process_kin *look, const struct process_tree *trees, size_t count,
                   const struct process_kin_entry *entry, int signal)
{
    int pidfd = pidfd_open(entry->pid, 0);
    if (pidfd < 0)
        return errno;
    struct process_kin_entry now;
    int failed = ESRCH;
    if (process_kin_read(look->proc_fd, entry->pid, &now) == 0 && now.start_ticks == entry->start_ticks &&
        (!entry->listed || still_listed(look, trees, count, entry->pid)))
        failed = pidfd_send_signal(pidfd, signal, NULL, 0) == 0 ? 0 : errno;
    if (failed == 0 && now.stopped && (signal == SIGTERM || signal == SIGHUP))
        pidfd_send_signal(pidfd, SIGCONT, NULL, 0);
    close(pidfd);
    return failed;
}

/* Whether the entry is new; remembers it. Out of memory everything is old, which ends the rounds. */
static bool first_seen(struct process_tree_known *seen, const struct process_kin_entry *entry)
{
    if (process_kin_is_known(seen, entry))
        return false;
    if (seen->count == seen->cap) {
        size_t cap = seen->cap != 0 ? seen->cap * 2 : 64;
        void *items = realloc(seen->items, cap * sizeof(*seen->items));
        if (items == NULL)
            return false;
        seen->items = items;
        seen->cap = cap;
    }
    seen->items[seen->count].pid = entry->pid;
    seen->items[seen->count].start_ticks = entry->start_ticks;
    seen->count++;
    return true;
}

/* After the members that a look saw had theirs: what is being forked right now dies by this. Not where somebody moved
 * the server, or what is above it, into such a group. */
static void kill_groups(const struct process_kin *look, const struct process_tree *trees, size_t count)
{
    for (size_t i = 0; i < look->spared.count; i++)
        if (process_pids_hold(&look->listed, look->spared.pids[i]))
            return;
    for (size_t t = 0; t < count; t++)
        if (trees[t].cgroup != NULL)
            process_cgroup_kill(trees[t].cgroup);
}

static enum process_tree_outcome send_all(const struct process_tree *trees, size_t count, int signal, bool asked,
                                          size_t *out_signalled)
{
    struct process_kin look;
    struct process_tree_known seen = {0};
    size_t denied = 0;
    enum process_tree_outcome outcome = PROCESS_TREE_DONE;
    int rounds = signal == 0 ? 1 : signal == SIGKILL ? KILL_ROUNDS_MAX : ROUNDS_MAX;
    *out_signalled = 0;
    bool news = count > 0 && process_kin_open(&look);
    if (!news)
        return outcome;
    for (; news && rounds > 0; rounds--) {
        news = false;
        process_kin_take(&look, trees, count);
        if (asked && look.protects) {
            outcome = PROCESS_TREE_REFUSED;
            break;
        }
        for (size_t i = 0; i < look.count; i++) {
            const struct process_kin_entry *entry = &look.entries[i];
            if (!entry->member || !first_seen(&seen, entry))
                continue;
            int failed = send_to(&look, trees, count, entry, signal);
            news = true;
            if (trees[0].known != NULL)
                first_seen(trees[0].known, entry);
            *out_signalled += failed == 0;
            denied += failed == EPERM;
        }
        if (signal == SIGKILL && news)
            kill_groups(&look, trees, count);
    }
    if (outcome == PROCESS_TREE_DONE && *out_signalled == 0 && denied > 0)
        outcome = PROCESS_TREE_DENIED;
    process_kin_close(&look);
    free(seen.items);
    return outcome;
}

size_t process_tree_signal(const struct process_tree *trees, size_t count, int signal)
{
    size_t signalled;
    send_all(trees, count, signal, false, &signalled);
    return signalled;
}

enum process_tree_outcome process_tree_ask(const struct process_tree *trees, size_t count, int signal,
                                           size_t *out_signalled)
{
    return send_all(trees, count, signal, true, out_signalled);
}

bool process_tree_protects(pid_t pid, pid_t session)
{
    struct process_kin look;
    bool protects = !process_kin_open(&look) || process_kin_spares(&look, pid, session);
    process_kin_close(&look);
    return protects;
}

/* --- what lives */

size_t process_tree_living(const struct process_tree *trees, size_t count)
{
    struct process_kin look;
    size_t living = 0;
    if (count == 0 || !process_kin_open(&look))
        return 0;
    process_kin_take(&look, trees, count);
    for (size_t i = 0; i < look.count; i++)
        living += look.entries[i].member;
    process_kin_close(&look);
    return living;
}

void process_tree_look(const struct process_tree *trees, size_t count, bool *out_lives)
{
    struct process_kin look;
    bool walk = false, all = true, opened = count > 0 && process_kin_open(&look);
    for (size_t t = 0; t < count; t++) {
        out_lives[t] = !opened || process_kin_leader_lives(&look, &trees[t]) ||
                       (trees[t].cgroup != NULL && process_cgroup_populated(trees[t].cgroup));
        walk |= !out_lives[t] && trees[t].cgroups == NULL;
        all &= out_lives[t];
    }
    if (!opened)
        return;
    /* What is not decided yet has no members in a group, so only children of ours are to be looked at. */
    if (!all && (walk || process_kin_child_moved_out(&look, trees, count)))
        process_kin_find_living(&look, trees, count, out_lives);
    process_kin_close(&look);
}
