/* Finds what belongs to a program's tree: by control group, else by session, group, parents and marker; called by
 * process_tree. */
#include "prim/process_kin.h"

#include "prim/proc_stat.h"
#include "prim/process_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int process_kin_read(int proc_fd, pid_t pid, struct process_kin_entry *out)
{
    struct proc_stat stat;
    if (proc_stat_read(proc_fd, pid, &stat) != 0)
        return -1;
    *out = (struct process_kin_entry){.pid = pid,
                                      .parent = stat.parent,
                                      .group = stat.group,
                                      .session = stat.session,
                                      .start_ticks = stat.start_ticks,
                                      .zombie = proc_is_zombie(&stat),
                                      .stopped = stat.state == 'T'};
    return 0;
}

/* --- who is spared */

static void find_spared(int proc_fd, struct process_spared *spared)
{
    struct process_kin_entry entry;
    spared->count = 0;
    for (pid_t pid = getpid(); pid > 0 && spared->count < PROCESS_ANCESTORS_MAX - 1; pid = entry.parent) {
        if (process_kin_read(proc_fd, pid, &entry) != 0)
            break;
        spared->pids[spared->count] = pid;
        spared->sessions[spared->count++] = entry.session;
    }
    if (spared->count > 0 && spared->pids[spared->count - 1] != 1 && process_kin_read(proc_fd, 1, &entry) == 0) {
        spared->pids[spared->count] = 1;
        spared->sessions[spared->count++] = entry.session;
    }
}

static bool is_spared(const struct process_spared *spared, pid_t pid)
{
    bool found = pid == 1;
    for (size_t i = 0; i < spared->count; i++)
        found |= spared->pids[i] == pid;
    return found;
}

static bool is_spared_session(const struct process_spared *spared, pid_t session)
{
    bool found = false;
    for (size_t i = 0; i < spared->count; i++)
        found |= spared->sessions[i] == session;
    return found;
}

bool process_kin_spares(const struct process_kin *look, pid_t pid, pid_t session)
{
    return is_spared(&look->spared, pid) || is_spared_session(&look->spared, session);
}

/* --- a look */

static int compare_entries(const void *a, const void *b)
{
    pid_t left = ((const struct process_kin_entry *)a)->pid;
    pid_t right = ((const struct process_kin_entry *)b)->pid;
    return (left > right) - (left < right);
}

static struct process_kin_entry *find(const struct process_kin *look, pid_t pid)
{
    struct process_kin_entry key = {.pid = pid};
    return look->count == 0
               ? NULL
               : bsearch(&key, look->entries, look->count, sizeof(struct process_kin_entry), compare_entries);
}

/* Fills in those of the pids (in ascending order) that still are. */
static void read_entries(struct process_kin *look, const pid_t *pids, size_t count)
{
    look->count = 0;
    if (look->cap < count) {
        struct process_kin_entry *entries = realloc(look->entries, count * sizeof(*entries));
        if (entries == NULL)
            return;
        look->entries = entries;
        look->cap = count;
    }
    for (size_t i = 0; i < count; i++) {
        struct process_kin_entry *entry = &look->entries[look->count];
        if (process_kin_read(look->proc_fd, pids[i], entry) != 0)
            continue;
        entry->spared = is_spared(&look->spared, entry->pid);
        entry->listed = process_pids_hold(&look->listed, entry->pid);
        look->count++;
    }
}

static void read_all_entries(struct process_kin *look)
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
static bool each_child(const struct process_kin *look, pid_t pid,
                       bool (*fn)(const struct process_kin *look, const void *ctx, pid_t), const void *ctx)
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

static bool is_dead(const struct process_kin *look, pid_t pid)
{
    struct process_kin_entry entry;
    return process_kin_read(look->proc_fd, pid, &entry) != 0 || entry.zombie;
}

static bool stayed(const struct process_kin *look, const void *ctx, pid_t pid)
{
    const struct process_tree *tree = ctx;
    return process_pids_hold(&look->listed, pid) || process_cgroup_number_of(tree->cgroups, look->proc_fd, pid) != 0 ||
           is_dead(look, pid);
}

/* A child of ours: a program that was started is the leader of a tree of its own and of no other. There may be hundreds
 * of them. */
static bool started_or_stayed(const struct process_kin *look, const void *ctx, pid_t pid)
{
    const struct process_tree *tree = ctx;
    return process_pids_hold(tree->started, pid) || stayed(look, ctx, pid);
}

bool process_kin_leader_lives(const struct process_kin *look, const struct process_tree *tree)
{
    return tree->id != NULL && tree->reaped_ticks == 0 && !is_dead(look, tree->leader);
}

static bool leader_moved_out(const struct process_kin *look, const struct process_tree *trees, size_t count)
{
    for (size_t t = 0; t < count; t++)
        if (trees[t].cgroups != NULL && !process_pids_hold(&look->listed, trees[t].leader) &&
            process_kin_leader_lives(look, &trees[t]))
            return true;
    return false;
}

/* Whether something else may have: a child of a member, or, when its parents are gone, a child of ours. */
bool process_kin_child_moved_out(const struct process_kin *look, const struct process_tree *trees, size_t count)
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

bool process_kin_is_known(const struct process_tree_known *known, const struct process_kin_entry *entry)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->items[i].pid == entry->pid && known->items[i].start_ticks == entry->start_ticks)
            return true;
    return false;
}

static bool belongs(const struct process_kin *look, const struct process_tree *tree, struct process_kin_entry *entry)
{
    if (tree->id == NULL) {
        if (tree->known != NULL && process_kin_is_known(tree->known, entry))
            return true;
        const struct process_kin_entry *leader = find(look, tree->leader);
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

static void mark_member(struct process_kin *look, struct process_kin_entry *entry)
{
    look->protects |= entry->spared || is_spared_session(&look->spared, entry->session);
    entry->member = !entry->spared;
}

/* Answers whether there are any. */
static bool mark_members(struct process_kin *look, const struct process_tree *trees, size_t count, bool walk)
{
    bool any = false;
    for (size_t i = 0; i < look->count; i++) {
        struct process_kin_entry *entry = &look->entries[i];
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
            struct process_kin_entry *entry = &look->entries[i];
            if (entry->member || entry->zombie || entry->spared)
                continue;
            const struct process_kin_entry *parent = find(look, entry->parent);
            if (parent != NULL && parent->member) {
                mark_member(look, entry);
                again = true;
            }
        }
    }
    return any;
}

bool process_kin_open(struct process_kin *look)
{
    *look = (struct process_kin){.proc_fd = proc_open()};
    if (look->proc_fd < 0)
        return false;
    find_spared(look->proc_fd, &look->spared);
    return true;
}

void process_kin_close(struct process_kin *look)
{
    if (look->proc_fd >= 0)
        close(look->proc_fd);
    free(look->entries);
    free(look->listed.pids);
}

void process_kin_take(struct process_kin *look, const struct process_tree *trees, size_t count)
{
    bool walk = false;
    look->listed.count = 0;
    for (size_t t = 0; t < count; t++) {
        walk |= trees[t].cgroups == NULL;
        if (trees[t].cgroup != NULL && process_cgroup_list(trees[t].cgroup, &look->listed) != 0)
            walk = true;
    }
    process_pids_sort(&look->listed);
    if (walk || leader_moved_out(look, trees, count) || process_kin_child_moved_out(look, trees, count)) {
        read_all_entries(look);
        mark_members(look, trees, count, true);
    } else {
        read_entries(look, look->listed.pids, look->listed.count);
        mark_members(look, trees, count, false);
    }
}

/* --- which live */

static void forget_members(struct process_kin *look)
{
    for (size_t i = 0; i < look->count; i++)
        look->entries[i].member = false;
}

/* By the walk: whatever it needs to know of a process is read once for all trees. */
void process_kin_find_living(struct process_kin *look, const struct process_tree *trees, size_t count, bool *lives)
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
