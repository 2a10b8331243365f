/* Everything that descends from a program; called by prim/process for signals to a tree. */
#include "prim/process_tree.h"

#include "prim/proc_stat.h"
#include "prim/process_cgroup.h"
#include "prim/process_marker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { ROUNDS_MAX = 4, KILL_ROUNDS_MAX = 16, ANCESTORS_MAX = 64 };

struct entry {
    pid_t pid, parent, group, session;
    uint64_t start_ticks;
    bool zombie, stopped, spared, member, environ_read;
    bool listed;                 /* a member because a control group lists it: the number may be another's by now */
    char id[PROCESS_MARKER_MAX]; /* of its ABX_PROCESS_ID; "" where it has none, or is not ours to read */
};

/* Who is never signalled: this process and all above it. */
struct spared {
    pid_t pids[ANCESTORS_MAX], sessions[ANCESTORS_MAX];
    size_t count;
};

/* One look at what lives, with the memory that the next one uses again. */
struct look {
    int proc_fd;
    struct spared spared;
    struct entry *entries; /* by pid */
    size_t count, cap;
    struct process_pids listed; /* by the control groups of the trees */
    bool protects;              /* one of the trees holds what is not to be signalled for a client */
};

static int read_entry(int proc_fd, pid_t pid, struct entry *out)
{
    struct proc_stat stat;
    if (proc_stat_read(proc_fd, pid, &stat) != 0)
        return -1;
    *out = (struct entry){.pid = pid,
                          .parent = stat.parent,
                          .group = stat.group,
                          .session = stat.session,
                          .start_ticks = stat.start_ticks,
                          .zombie = proc_is_zombie(&stat),
                          .stopped = stat.state == 'T'};
    return 0;
}

/* --- who is spared */

static void find_spared(int proc_fd, struct spared *spared)
{
    struct entry entry;
    spared->count = 0;
    for (pid_t pid = getpid(); pid > 0 && spared->count < ANCESTORS_MAX - 1; pid = entry.parent) {
        if (read_entry(proc_fd, pid, &entry) != 0)
            break;
        spared->pids[spared->count] = pid;
        spared->sessions[spared->count++] = entry.session;
    }
    if (spared->count > 0 && spared->pids[spared->count - 1] != 1 && read_entry(proc_fd, 1, &entry) == 0) {
        spared->pids[spared->count] = 1;
        spared->sessions[spared->count++] = entry.session;
    }
}

static bool is_spared(const struct spared *spared, pid_t pid)
{
    bool found = pid == 1;
    for (size_t i = 0; i < spared->count; i++)
        found |= spared->pids[i] == pid;
    return found;
}

static bool is_spared_session(const struct spared *spared, pid_t session)
{
    bool found = false;
    for (size_t i = 0; i < spared->count; i++)
        found |= spared->sessions[i] == session;
    return found;
}

bool process_tree_protects(pid_t pid, pid_t session)
{
    struct spared spared;
    int proc_fd = proc_open();
    if (proc_fd < 0)
        return true;
    find_spared(proc_fd, &spared);
    close(proc_fd);
    return is_spared(&spared, pid) || is_spared_session(&spared, session);
}

/* --- a look */

static int compare_entries(const void *a, const void *b)
{
    pid_t left = ((const struct entry *)a)->pid;
    pid_t right = ((const struct entry *)b)->pid;
    return (left > right) - (left < right);
}

static struct entry *find(const struct look *look, pid_t pid)
{
    struct entry key = {.pid = pid};
    return look->count == 0 ? NULL : bsearch(&key, look->entries, look->count, sizeof(struct entry), compare_entries);
}

/* Fills in those of the pids (in ascending order) that still are. */
static void read_entries(struct look *look, const pid_t *pids, size_t count)
{
    look->count = 0;
    if (look->cap < count) {
        struct entry *entries = realloc(look->entries, count * sizeof(*entries));
        if (entries == NULL)
            return;
        look->entries = entries;
        look->cap = count;
    }
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = &look->entries[look->count];
        if (read_entry(look->proc_fd, pids[i], entry) != 0)
            continue;
        entry->spared = is_spared(&look->spared, entry->pid);
        entry->listed = process_pids_hold(&look->listed, entry->pid);
        look->count++;
    }
}

static void read_all_entries(struct look *look)
{
    pid_t *pids = NULL;
    size_t count = 0;
    look->count = 0;
    if (proc_pids(look->proc_fd, &pids, &count) == 0)
        read_entries(look, pids, count);
    free(pids);
}

/* --- what left its control group */

/* Each pid of /proc/PID/task/TID/children; false where the kernel does not show them or `fn` said so. */
static bool each_child(const struct look *look, pid_t pid, bool (*fn)(const struct look *look, const void *ctx, pid_t),
                       const void *ctx)
{
    char path[64];
    snprintf(path, sizeof(path), "%d/task", (int)pid);
    int task_fd = openat(look->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = task_fd >= 0 ? fdopendir(task_fd) : NULL;
    if (dir == NULL) {
        if (task_fd >= 0)
            close(task_fd);
        return true; /* it is gone */
    }
    bool go_on = true;
    for (struct dirent *found = readdir(dir); found != NULL && go_on; found = readdir(dir)) {
        if (found->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%.20s/children", found->d_name);
        int fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
        FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
        if (file == NULL) {
            go_on = faccessat(task_fd, found->d_name, F_OK, 0) != 0;
            if (fd >= 0)
                close(fd);
            continue;
        }
        for (int child; go_on && fscanf(file, "%d", &child) == 1;)
            go_on = fn(look, ctx, child);
        fclose(file);
    }
    closedir(dir);
    return go_on;
}

static bool is_dead(const struct look *look, pid_t pid)
{
    struct entry entry;
    return read_entry(look->proc_fd, pid, &entry) != 0 || entry.zombie;
}

static bool stayed(const struct look *look, const void *ctx, pid_t pid)
{
    const struct process_tree *tree = ctx;
    return process_pids_hold(&look->listed, pid) || process_cgroup_number_of(tree->cgroups, look->proc_fd, pid) != 0 ||
           is_dead(look, pid);
}

/* A child of ours: a program that was started is the leader of a tree of its own and of no other. There may be hundreds
 * of them. */
static bool started_or_stayed(const struct look *look, const void *ctx, pid_t pid)
{
    const struct process_tree *tree = ctx;
    return process_pids_hold(tree->started, pid) || stayed(look, ctx, pid);
}

static bool leader_lives(const struct look *look, const struct process_tree *tree)
{
    return tree->id != NULL && tree->reaped_ticks == 0 && !is_dead(look, tree->leader);
}

static bool leader_moved_out(const struct look *look, const struct process_tree *trees, size_t count)
{
    for (size_t t = 0; t < count; t++)
        if (trees[t].cgroups != NULL && !process_pids_hold(&look->listed, trees[t].leader) &&
            leader_lives(look, &trees[t]))
            return true;
    return false;
}

/* Whether something else may have: a child of a member, or, when its parents are gone, a child of ours. */
static bool child_moved_out(const struct look *look, const struct process_tree *trees, size_t count)
{
    const struct process_tree *tree = NULL;
    for (size_t t = 0; t < count && tree == NULL; t++)
        tree = trees[t].cgroups != NULL ? &trees[t] : NULL;
    if (tree == NULL)
        return false;
    bool all_stayed = each_child(look, getpid(), tree->started != NULL ? started_or_stayed : stayed, tree);
    for (size_t i = 0; i < look->listed.count && all_stayed; i++)
        all_stayed = each_child(look, look->listed.pids[i], stayed, tree);
    return !all_stayed;
}

/* --- what is of a tree */

static bool is_known(const struct process_tree_known *known, const struct entry *entry)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->items[i].pid == entry->pid && known->items[i].start_ticks == entry->start_ticks)
            return true;
    return false;
}

static bool belongs(const struct look *look, const struct process_tree *tree, struct entry *entry)
{
    if (tree->id == NULL) {
        if (tree->known != NULL && is_known(tree->known, entry))
            return true;
        const struct entry *leader = find(look, tree->leader);
        return leader != NULL && leader->start_ticks == tree->start_ticks &&
               (entry == leader || (leader->session == leader->pid && entry->session == leader->pid) ||
                (leader->group == leader->pid && entry->group == leader->pid));
    }
    /* Once the leader was reaped its number is free when the last of its session and group is gone; whoever bears it as
     * session or group and began later than that may be a stranger, and all do when there is a process of that number
     * again. */
    bool same_time =
        (entry->session == tree->leader || entry->group == tree->leader) &&
        (tree->reaped_ticks == 0 || (entry->start_ticks <= tree->reaped_ticks && find(look, tree->leader) == NULL));
    if (same_time)
        return true;
    /* A session is inherited, so this one descends from another program; no need to read its environment. */
    if (tree->started != NULL && entry->session != tree->leader && process_pids_hold(tree->started, entry->session))
        return false;
    if (!entry->environ_read && !process_marker_read(look->proc_fd, entry->pid, entry->id))
        entry->id[0] = '\0';
    entry->environ_read = true;
    return strcmp(entry->id, tree->id) == 0;
}

static void mark_member(struct look *look, struct entry *entry)
{
    look->protects |= entry->spared || is_spared_session(&look->spared, entry->session);
    entry->member = !entry->spared;
}

/* Answers whether there are any. */
static bool mark_members(struct look *look, const struct process_tree *trees, size_t count, bool walk)
{
    bool any = false;
    for (size_t i = 0; i < look->count; i++) {
        struct entry *entry = &look->entries[i];
        if (entry->zombie)
            continue;
        bool member = entry->listed;
        for (size_t t = 0; t < count && walk && !member; t++)
            member = belongs(look, &trees[t], entry);
        if (member)
            mark_member(look, entry);
        any |= entry->member;
    }
    for (bool again = walk && any; again;) {
        again = false;
        for (size_t i = 0; i < look->count; i++) {
            struct entry *entry = &look->entries[i];
            if (entry->member || entry->zombie || entry->spared)
                continue;
            const struct entry *parent = find(look, entry->parent);
            if (parent != NULL && parent->member) {
                mark_member(look, entry);
                again = true;
            }
        }
    }
    return any;
}

static bool look_open(struct look *look)
{
    *look = (struct look){.proc_fd = proc_open()};
    if (look->proc_fd < 0)
        return false;
    find_spared(look->proc_fd, &look->spared);
    return true;
}

static void look_close(struct look *look)
{
    if (look->proc_fd >= 0)
        close(look->proc_fd);
    free(look->entries);
    free(look->listed.pids);
}

static void take(struct look *look, const struct process_tree *trees, size_t count)
{
    bool walk = false;
    look->listed.count = 0;
    for (size_t t = 0; t < count; t++) {
        walk |= trees[t].cgroups == NULL;
        if (trees[t].cgroup != NULL && process_cgroup_list(trees[t].cgroup, &look->listed) != 0)
            walk = true;
    }
    process_pids_sort(&look->listed);
    if (walk || leader_moved_out(look, trees, count) || child_moved_out(look, trees, count)) {
        read_all_entries(look);
        mark_members(look, trees, count, true);
    } else {
        read_entries(look, look->listed.pids, look->listed.count);
        mark_members(look, trees, count, false);
    }
}

/* --- signals */

/* Whether a member that a control group listed is in one of them still, so that the number is not another's. */
static bool still_listed(const struct look *look, const struct process_tree *trees, size_t count, pid_t pid)
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
static int send_to(const struct look *look, const struct process_tree *trees, size_t count, const struct entry *entry,
                   int signal)
{
    int pidfd = pidfd_open(entry->pid, 0);
    if (pidfd < 0)
        return errno;
    struct entry now;
    int failed = ESRCH;
    if (read_entry(look->proc_fd, entry->pid, &now) == 0 && now.start_ticks == entry->start_ticks &&
        (!entry->listed || still_listed(look, trees, count, entry->pid)))
        failed = pidfd_send_signal(pidfd, signal, NULL, 0) == 0 ? 0 : errno;
    if (failed == 0 && now.stopped && signal == SIGTERM)
        pidfd_send_signal(pidfd, SIGCONT, NULL, 0);
    close(pidfd);
    return failed;
}

/* Whether the entry is new; remembers it. Out of memory everything is old, which ends the rounds. */
static bool first_seen(struct process_tree_known *seen, const struct entry *entry)
{
    if (is_known(seen, entry))
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
static void kill_groups(const struct look *look, const struct process_tree *trees, size_t count)
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
    struct look look;
    struct process_tree_known seen = {0};
    size_t denied = 0;
    enum process_tree_outcome outcome = PROCESS_TREE_DONE;
    int rounds = signal == 0 ? 1 : signal == SIGKILL ? KILL_ROUNDS_MAX : ROUNDS_MAX;
    *out_signalled = 0;
    bool news = count > 0 && look_open(&look);
    if (!news)
        return outcome;
    for (; news && rounds > 0; rounds--) {
        news = false;
        take(&look, trees, count);
        if (asked && look.protects) {
            outcome = PROCESS_TREE_REFUSED;
            break;
        }
        for (size_t i = 0; i < look.count; i++) {
            const struct entry *entry = &look.entries[i];
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
    look_close(&look);
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

/* --- what lives */

size_t process_tree_living(const struct process_tree *trees, size_t count)
{
    struct look look;
    size_t living = 0;
    if (count == 0 || !look_open(&look))
        return 0;
    take(&look, trees, count);
    for (size_t i = 0; i < look.count; i++)
        living += look.entries[i].member;
    look_close(&look);
    return living;
}

static void forget_members(struct look *look)
{
    for (size_t i = 0; i < look->count; i++)
        look->entries[i].member = false;
}

/* By the walk: whatever it needs to know of a process is read once for all trees. */
static void find_living(struct look *look, const struct process_tree *trees, size_t count, bool *lives)
{
    read_all_entries(look);
    for (size_t t = 0; t < count; t++) {
        if (lives[t])
            continue;
        lives[t] = mark_members(look, &trees[t], 1, true);
        if (lives[t])
            forget_members(look);
    }
}

void process_tree_look(const struct process_tree *trees, size_t count, bool *out_lives)
{
    struct look look;
    bool walk = false, all = true, opened = count > 0 && look_open(&look);
    for (size_t t = 0; t < count; t++) {
        out_lives[t] = !opened || leader_lives(&look, &trees[t]) ||
                       (trees[t].cgroup != NULL && process_cgroup_populated(trees[t].cgroup));
        walk |= !out_lives[t] && trees[t].cgroups == NULL;
        all &= out_lives[t];
    }
    if (!opened)
        return;
    /* What is not decided yet has no members in a group, so only children of ours are to be looked at. */
    if (!all && (walk || child_moved_out(&look, trees, count)))
        find_living(&look, trees, count, out_lives);
    look_close(&look);
}
