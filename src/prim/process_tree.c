/* Everything that descends from a program we started; called by prim/process for signals to a tree. */
#include "prim/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 4, KILL_ROUNDS_MAX = 16, ID_MAX = 32, ENVIRON_READ_BYTES = 16384 };

struct entry {
    pid_t pid, parent, group, session;
    uint64_t start_ticks;
    bool zombie, stopped, spared, member, environ_read;
    char id[ID_MAX]; /* of its ABX_PROCESS_ID; "" where it has none, or is not ours to read */
};

struct snapshot {
    struct entry *entries; /* by pid */
    size_t count, cap;
};

uint64_t process_tree_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)now.tv_sec * hertz + (uint64_t)now.tv_nsec * hertz / 1000000000;
}

static int open_proc(pid_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int read_entry(pid_t pid, struct entry *out)
{
    char text[1024];
    int fd = open_proc(pid, "stat");
    if (fd < 0)
        return -1;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0)
        return -1;
    text[len] = '\0';
    const char *fields = strrchr(text, ')'); /* the name before it may hold spaces and brackets of its own */
    char state;
    int parent, group, session;
    unsigned long long start_ticks;
    if (fields == NULL ||
        sscanf(fields + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
               &parent, &group, &session, &start_ticks) != 5)
        return -1;
    *out = (struct entry){.pid = pid,
                          .parent = parent,
                          .group = group,
                          .session = session,
                          .start_ticks = start_ticks,
                          .zombie = state == 'Z' || state == 'X',
                          .stopped = state == 'T'};
    return 0;
}

/* Reads the environment piece by piece; a piece keeps the end of the one before, where the variable may begin. */
static void read_id(struct entry *entry)
{
    static const char marker[] = PROCESS_TREE_MARKER "=";
    const size_t marker_len = sizeof(marker) - 1;
    const size_t kept_max = marker_len + ID_MAX + 1;
    static char text[ENVIRON_READ_BYTES + 128]; /* main thread only */
    entry->environ_read = true;
    int fd = open_proc(entry->pid, "environ");
    if (fd < 0)
        return;
    size_t have = 1;
    text[0] = '\0'; /* so that the first variable begins after a NUL like all others */
    for (;;) {
        ssize_t len = read(fd, text + have, ENVIRON_READ_BYTES);
        if (len <= 0)
            break;
        have += (size_t)len;
        const char *at = text;
        while ((at = memmem(at, have - (size_t)(at - text), marker, marker_len)) != NULL) {
            const char *value = at + marker_len;
            size_t value_len = strnlen(value, have - (size_t)(value - text));
            if (at > text && at[-1] == '\0' && value + value_len < text + have && value_len < ID_MAX) {
                memcpy(entry->id, value, value_len + 1);
                close(fd);
                return;
            }
            at++;
        }
        size_t kept = have < kept_max ? have : kept_max;
        memmove(text, text + have - kept, kept);
        have = kept;
    }
    close(fd);
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = ((const struct entry *)a)->pid;
    pid_t right = ((const struct entry *)b)->pid;
    return (left > right) - (left < right);
}

static struct entry *find(const struct snapshot *snapshot, pid_t pid)
{
    struct entry key = {.pid = pid};
    return snapshot->count == 0 ? NULL
                                : bsearch(&key, snapshot->entries, snapshot->count, sizeof(struct entry), compare_pids);
}

static void take_snapshot(struct snapshot *snapshot)
{
    snapshot->count = 0;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return;
    for (struct dirent *dirent = readdir(proc); dirent != NULL; dirent = readdir(proc)) {
        if (dirent->d_name[0] < '1' || dirent->d_name[0] > '9')
            continue;
        if (snapshot->count == snapshot->cap) {
            size_t cap = snapshot->cap != 0 ? snapshot->cap * 2 : 256;
            struct entry *entries = realloc(snapshot->entries, cap * sizeof(*entries));
            if (entries == NULL)
                break;
            snapshot->entries = entries;
            snapshot->cap = cap;
        }
        if (read_entry((pid_t)atoi(dirent->d_name), &snapshot->entries[snapshot->count]) == 0)
            snapshot->count++;
    }
    closedir(proc);
    if (snapshot->count > 0)
        qsort(snapshot->entries, snapshot->count, sizeof(struct entry), compare_pids);
    struct entry *spared = find(snapshot, 1);
    if (spared != NULL)
        spared->spared = true;
    for (spared = find(snapshot, getpid()); spared != NULL && !spared->spared; spared = find(snapshot, spared->parent))
        spared->spared = true;
}

static bool belongs(const struct process_tree *tree, struct entry *entry)
{
    /* Once the leader was reaped its number is free when the last of its session and group is gone; whoever bears it as
     * session or group and began later than that may be a stranger. */
    bool same_time = tree->reaped_ticks == 0 || entry->start_ticks <= tree->reaped_ticks;
    if (same_time && (entry->session == tree->leader || entry->group == tree->leader))
        return true;
    if (!entry->environ_read)
        read_id(entry);
    return strcmp(entry->id, tree->id) == 0;
}

static void mark_members(struct snapshot *snapshot, const struct process_tree *trees, size_t count)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        struct entry *entry = &snapshot->entries[i];
        for (size_t t = 0; t < count && !entry->zombie && !entry->spared && !entry->member; t++)
            entry->member = belongs(&trees[t], entry);
    }
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < snapshot->count; i++) {
            struct entry *entry = &snapshot->entries[i];
            if (entry->member || entry->zombie || entry->spared)
                continue;
            const struct entry *parent = find(snapshot, entry->parent);
            if (parent != NULL && parent->member)
                entry->member = again = true;
        }
    }
}

/* By pidfd, so that the pid cannot become another's between the look and the signal. */
static bool send_to(const struct entry *entry, int signal)
{
    int pidfd = pidfd_open(entry->pid, 0);
    if (pidfd < 0)
        return false;
    struct entry now;
    bool sent = read_entry(entry->pid, &now) == 0 && now.start_ticks == entry->start_ticks &&
                pidfd_send_signal(pidfd, signal, NULL, 0) == 0;
    if (sent && now.stopped && signal == SIGTERM)
        pidfd_send_signal(pidfd, SIGCONT, NULL, 0);
    close(pidfd);
    return sent;
}

struct seen {
    struct {
        pid_t pid;
        uint64_t start_ticks;
    } * items;
    size_t count, cap;
};

/* Whether the entry is new; remembers it. Out of memory everything is old, which ends the rounds. */
static bool first_seen(struct seen *seen, const struct entry *entry)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].pid == entry->pid && seen->items[i].start_ticks == entry->start_ticks)
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

size_t process_tree_signal(const struct process_tree *trees, size_t count, int signal)
{
    struct snapshot snapshot = {0};
    struct seen seen = {0};
    size_t signalled = 0;
    int rounds = signal == SIGKILL ? KILL_ROUNDS_MAX : ROUNDS_MAX;
    for (bool news = count > 0; news && rounds > 0; rounds--) {
        news = false;
        take_snapshot(&snapshot);
        mark_members(&snapshot, trees, count);
        for (size_t i = 0; i < snapshot.count; i++) {
            const struct entry *entry = &snapshot.entries[i];
            if (entry->member && first_seen(&seen, entry)) {
                news = true;
                signalled += send_to(entry, signal);
            }
        }
    }
    free(snapshot.entries);
    free(seen.items);
    return signalled;
}

size_t process_tree_living(const struct process_tree *trees, size_t count)
{
    struct snapshot snapshot = {0};
    size_t living = 0;
    take_snapshot(&snapshot);
    mark_members(&snapshot, trees, count);
    for (size_t i = 0; i < snapshot.count; i++)
        living += snapshot.entries[i].member;
    free(snapshot.entries);
    return living;
}
