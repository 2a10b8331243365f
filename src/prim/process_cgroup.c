/* Control groups for programs: made, found again, emptied and removed; called by prim/process and process_tree. */
#include "prim/process_cgroup.h"

#include "base/list.h"
#include "prim/cgroup.h"
#include "prim/proc_stat.h"
#include "prim/spawn_clone.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_PREFIX "abxd-"

enum {
    NAME_BYTES = 48,
    NAMES_MAX = 16, /* servers with one pid, in namespaces of their own */
    IDLE_MAX = 64,  /* more than this are removed instead of kept */
    LOOKS_MAX = 2,  /* at those given up, for each that is wanted */
    DEPTH_MAX = 16, /* of groups that programs make themselves */
    PROBE_STACK = 4096,
    EMPTY_TRIES_MAX = 200, /* a millisecond each, at the end */
};

struct process_cgroup {
    struct list node; /* in used, idle or given_up */
    struct process_cgroups *all;
    unsigned number;
    int dir_fd, events_fd; /* of one only, else -1: programs one after another are all started in that */
};

struct process_cgroups {
    int parent_fd; /* the server's own group */
    int base_fd;   /* ours in it; locked as long as we live, which is how others tell */
    char name[NAME_BYTES];
    char path[PATH_MAX]; /* of base_fd as /proc/PID/cgroup shows it, with a slash at its end */
    unsigned last_number;
    struct process_cgroup *favourite; /* the one whose files stay open */
    struct list used, idle, given_up;
    size_t idle_count;
};

static int open_dir(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_in(const struct process_cgroup *cgroup, const char *file, int flags)
{
    char path[NAME_BYTES];
    snprintf(path, sizeof(path), "%u/%s", cgroup->number, file);
    return openat(cgroup->all->base_fd, path, flags | O_CLOEXEC);
}

/* --- one group */

static struct process_cgroup *make(struct process_cgroups *cgroups)
{
    struct process_cgroup *cgroup = calloc(1, sizeof(*cgroup));
    char name[NAME_BYTES];
    if (cgroup == NULL)
        return NULL;
    cgroup->all = cgroups;
    cgroup->dir_fd = cgroup->events_fd = -1;
    cgroup->number = ++cgroups->last_number;
    snprintf(name, sizeof(name), "%u", cgroup->number);
    if (mkdirat(cgroups->base_fd, name, 0755) != 0) {
        free(cgroup);
        return NULL;
    }
    list_append(&cgroups->used, &cgroup->node);
    return cgroup;
}

int process_cgroup_open(const struct process_cgroup *cgroup)
{
    return cgroup->dir_fd >= 0 ? cgroup->dir_fd : open_in(cgroup, "", O_RDONLY | O_DIRECTORY);
}

void process_cgroup_close(const struct process_cgroup *cgroup, int fd)
{
    if (fd >= 0 && fd != cgroup->dir_fd)
        close(fd);
}

static void free_group(struct process_cgroup *cgroup)
{
    list_remove(&cgroup->node);
    if (cgroup->all->favourite == cgroup)
        cgroup->all->favourite = NULL;
    if (cgroup->dir_fd >= 0)
        close(cgroup->dir_fd);
    if (cgroup->events_fd >= 0)
        close(cgroup->events_fd);
    free(cgroup);
}

/* What cgroup.events tells; false where it cannot be read. Frozen: itself, or a group above it, as the kernel says so
 * of those below at once where nothing is in them. */
static bool read_events(const struct process_cgroup *cgroup, bool *out_populated, bool *out_frozen)
{
    char text[128];
    int fd = cgroup->events_fd >= 0 ? cgroup->events_fd : open_in(cgroup, "cgroup.events", O_RDONLY);
    ssize_t len = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    if (fd >= 0 && fd != cgroup->events_fd)
        close(fd);
    if (len < 0)
        return false;
    text[len] = '\0';
    *out_populated = strstr(text, "populated 0\n") == NULL;
    *out_frozen = strstr(text, "frozen 1\n") != NULL;
    return true;
}

bool process_cgroup_populated(const struct process_cgroup *cgroup)
{
    bool populated, frozen;
    return read_events(cgroup, &populated, &frozen) && populated;
}

/* Whether it holds nothing and is as it was made: no groups below it, and not frozen, where a child would never begin.
 */
static bool is_fresh(const struct process_cgroup *cgroup, bool *out_populated)
{
    struct stat st;
    bool frozen;
    *out_populated = false;
    if (!read_events(cgroup, out_populated, &frozen) || *out_populated || frozen)
        return false;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%u", cgroup->number);
    return fstatat(cgroup->all->base_fd, name, &st, 0) == 0 && st.st_nlink <= 2;
}

/* Removes a directory of groups and those below it, as far as they are empty. */
static void remove_groups(int at, const char *name, int depth)
{
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || depth >= DEPTH_MAX)
        return;
    int fd = open_dir(at, name);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *found = readdir(dir); found != NULL; found = readdir(dir))
        if (found->d_type == DT_DIR && found->d_name[0] != '.')
            remove_groups(dirfd(dir), found->d_name, depth + 1);
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}

static void move_to(struct list *list, struct process_cgroup *cgroup)
{
    list_remove(&cgroup->node);
    list_append(list, &cgroup->node);
}

/* At once: nobody shall find more open files later than now. */
static void choose_favourite(struct process_cgroups *cgroups)
{
    if (list_empty(&cgroups->idle)) {
        struct process_cgroup *made = make(cgroups);
        if (made == NULL)
            return;
        move_to(&cgroups->idle, made);
        cgroups->idle_count++;
    }
    struct process_cgroup *cgroup = LIST_ENTRY(cgroups->idle.next, struct process_cgroup, node);
    cgroup->dir_fd = open_in(cgroup, "", O_RDONLY | O_DIRECTORY);
    cgroup->events_fd = open_in(cgroup, "cgroup.events", O_RDONLY);
    cgroups->favourite = cgroup;
}

/* One that nothing lives in: kept for the next program, or removed. */
static void settle(struct process_cgroup *cgroup, bool fresh)
{
    struct process_cgroups *all = cgroup->all;
    if (fresh && all->idle_count < IDLE_MAX) {
        move_to(all->favourite == cgroup ? all->idle.next : &all->idle, cgroup);
        all->idle_count++;
        return;
    }
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%u", cgroup->number);
    remove_groups(all->base_fd, name, 0);
    bool favourite = all->favourite == cgroup;
    free_group(cgroup);
    if (favourite)
        choose_favourite(all);
}

bool process_cgroup_return(struct process_cgroup *cgroup, bool killed)
{
    bool populated, fresh = is_fresh(cgroup, &populated);
    if (populated)
        return false;
    settle(cgroup, fresh && !killed);
    return true;
}

void process_cgroup_abandon(struct process_cgroup *cgroup)
{
    if (!process_cgroup_return(cgroup, true))
        move_to(&cgroup->all->given_up, cgroup);
}

struct process_cgroup *process_cgroup_take(struct process_cgroups *cgroups)
{
    for (int looks = 0; looks < LOOKS_MAX && !list_empty(&cgroups->given_up); looks++)
        process_cgroup_abandon(LIST_ENTRY(cgroups->given_up.next, struct process_cgroup, node));
    bool populated;
    for (size_t left = cgroups->idle_count; left > 0 && !list_empty(&cgroups->idle); left--) {
        struct process_cgroup *cgroup = LIST_ENTRY(cgroups->idle.next, struct process_cgroup, node);
        move_to(&cgroups->used, cgroup);
        cgroups->idle_count--;
        if (is_fresh(cgroup, &populated)) /* somebody may have frozen or filled it meanwhile */
            return cgroup;
        process_cgroup_abandon(cgroup);
    }
    struct process_cgroup *made = make(cgroups);
    if (made == NULL || is_fresh(made, &populated))
        return made;
    process_cgroup_abandon(made); /* all of them are frozen */
    return NULL;
}

/* --- who is in it */

/* 0 is one of another pid namespace, out of sight. */
static int add_listed(FILE *file, struct process_pids *members)
{
    int pid, failed = 0;
    while (failed == 0 && fscanf(file, "%d", &pid) == 1)
        if (pid > 0)
            failed = process_pids_append(members, pid);
    return failed;
}

static int add_members(int dir_fd, struct process_pids *members, int depth)
{
    struct stat st;
    int failed = 0;
    int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file != NULL) {
        failed = add_listed(file, members);
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
    if (failed != 0 || depth >= DEPTH_MAX || fstat(dir_fd, &st) != 0 || st.st_nlink <= 2)
        return failed;
    fd = open_dir(dir_fd, ".");
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0)
        close(fd);
    for (struct dirent *found = dir ? readdir(dir) : NULL; found != NULL && failed == 0; found = readdir(dir)) {
        int below = found->d_type == DT_DIR && found->d_name[0] != '.' ? open_dir(dir_fd, found->d_name) : -1;
        if (below < 0)
            continue;
        failed = add_members(below, members, depth + 1);
        close(below);
    }
    if (dir != NULL)
        closedir(dir);
    return failed;
}

int process_cgroup_list(const struct process_cgroup *cgroup, struct process_pids *members)
{
    int fd = process_cgroup_open(cgroup);
    if (fd < 0)
        return 0;
    int failed = add_members(fd, members, 0);
    process_cgroup_close(cgroup, fd);
    return failed;
}

static bool write_kill(int fd)
{
    bool killed = fd >= 0 && write(fd, "1", 1) == 1;
    if (fd >= 0)
        close(fd);
    return killed;
}

bool process_cgroup_kill(const struct process_cgroup *cgroup)
{
    return write_kill(open_in(cgroup, "cgroup.kill", O_WRONLY));
}

/* The path after "0::" in the text of a /proc/PID/cgroup; "" where there is none. Ends the text behind it. */
static const char *own_path(char *text)
{
    char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL)
        return "";
    char *path = strchr(line, '/');
    if (path == NULL)
        return "";
    path[strcspn(path, "\n")] = '\0';
    return path;
}

unsigned process_cgroup_number(const struct process_cgroup *cgroup)
{
    return cgroup->number;
}

unsigned process_cgroup_number_of(const struct process_cgroups *cgroups, int proc_fd, pid_t pid)
{
    char text[PATH_MAX];
    size_t len = proc_read(proc_fd, pid, "cgroup", text, sizeof(text) - 1);
    text[len] = '\0';
    const char *path = own_path(text);
    size_t base_len = strlen(cgroups->path);
    if (strncmp(path, cgroups->path, base_len) != 0)
        return 0;
    char *end;
    unsigned long number = strtoul(path + base_len, &end, 10);
    return *end == '\0' || *end == '/' ? (unsigned)number : 0;
}

/* --- all of them */

/* Who lives holds a lock on its directory. What still runs in one of a dead server is left alone. */
static void remove_stale(int parent_fd)
{
    int fd = open_dir(parent_fd, ".");
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *found = readdir(dir); found != NULL; found = readdir(dir)) {
        if (strncmp(found->d_name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
            continue;
        int stale = open_dir(parent_fd, found->d_name);
        if (stale >= 0 && flock(stale, LOCK_EX | LOCK_NB) == 0)
            remove_groups(parent_fd, found->d_name, 0);
        if (stale >= 0)
            close(stale);
    }
    closedir(dir);
}

static bool same_file(int at, const char *name, int fd)
{
    struct stat by_name, by_fd;
    return fstatat(at, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &by_fd) == 0 &&
           by_name.st_ino == by_fd.st_ino;
}

/* Makes and locks our directory. Another server that starts may take it for a stale one before it is locked. */
static int make_base(struct process_cgroups *cgroups)
{
    for (int i = 1; i <= NAMES_MAX; i++) {
        int len = snprintf(cgroups->name, sizeof(cgroups->name), NAME_PREFIX "%d", (int)getpid());
        if (i > 1)
            snprintf(cgroups->name + len, sizeof(cgroups->name) - (size_t)len, ".%d", i);
        if (mkdirat(cgroups->parent_fd, cgroups->name, 0755) != 0) {
            if (errno == EEXIST)
                continue;
            return -1;
        }
        int fd = open_dir(cgroups->parent_fd, cgroups->name);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(cgroups->parent_fd, cgroups->name, fd)) {
            cgroups->base_fd = fd;
            return 0;
        }
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static int find_path(struct process_cgroups *cgroups)
{
    char text[PATH_MAX];
    int proc_fd = proc_open();
    size_t len = proc_fd >= 0 ? proc_read(proc_fd, getpid(), "cgroup", text, sizeof(text) - 1) : 0;
    if (proc_fd >= 0)
        close(proc_fd);
    text[len] = '\0';
    const char *path = own_path(text);
    int path_len =
        snprintf(cgroups->path, sizeof(cgroups->path), "%s/%s/", strcmp(path, "/") == 0 ? "" : path, cgroups->name);
    return path[0] == '/' && path_len < (int)sizeof(cgroups->path) ? 0 : -1;
}

SPAWN_CHILD_CODE static int probe_main(void *ctx)
{
    (void)ctx;
    return (int)syscall(SYS_exit_group, 0);
}

/* Starts something in a group: a group that may be made is still of no use where its type or a filter of system calls
 * forbids that. */
static int probe(struct process_cgroups *cgroups)
{
    char stack[PROBE_STACK] __attribute__((aligned(16)));
    struct process_cgroup *cgroup = make(cgroups);
    if (cgroup == NULL)
        return -1;
    int fd = process_cgroup_open(cgroup), pidfd = -1;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fd >= 0 ? spawn_clone(probe_main, NULL, stack, sizeof(stack), fd, &pidfd) : -1;
    sigprocmask(SIG_SETMASK, &before, NULL);
    process_cgroup_close(cgroup, fd);
    siginfo_t info = {0};
    if (pid > 0) {
        waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
        close(pidfd);
    }
    bool started = info.si_code == CLD_EXITED && info.si_status == 0; /* killed where the server's group once was */
    if (!process_cgroup_return(cgroup, !started))
        process_cgroup_abandon(cgroup);
    return started ? 0 : -1;
}

struct process_cgroups *process_cgroups_new(void)
{
    char dir[PATH_MAX];
    struct process_cgroups *cgroups = calloc(1, sizeof(*cgroups));
    if (cgroups == NULL)
        return NULL;
    cgroups->base_fd = -1;
    list_init(&cgroups->used);
    list_init(&cgroups->idle);
    list_init(&cgroups->given_up);
    cgroups->parent_fd = cgroup_dir(NULL, dir) ? open_dir(AT_FDCWD, dir) : -1;
    if (cgroups->parent_fd >= 0) {
        remove_stale(cgroups->parent_fd);
        if (make_base(cgroups) == 0 && find_path(cgroups) == 0 && probe(cgroups) == 0) {
            choose_favourite(cgroups);
            return cgroups;
        }
    }
    process_cgroups_free(cgroups);
    return NULL;
}

/* Whether this process is in our groups itself: then somebody put it there, and all in them are not killed at once. */
static bool holds_us(const struct process_cgroups *cgroups)
{
    int proc_fd = proc_open();
    bool held = proc_fd < 0 || process_cgroup_number_of(cgroups, proc_fd, getpid()) != 0;
    if (proc_fd >= 0)
        close(proc_fd);
    return held;
}

static void free_list(struct list *groups)
{
    LIST_EACH (groups, node) {
        free_group(LIST_ENTRY(node, struct process_cgroup, node));
    }
}

void process_cgroups_free(struct process_cgroups *cgroups)
{
    if (cgroups == NULL)
        return;
    if (cgroups->base_fd >= 0) {
        if (!holds_us(cgroups))
            write_kill(openat(cgroups->base_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC));
        /* What was killed is gone after a moment only. */
        const struct timespec moment = {.tv_nsec = 1000000};
        for (int tries = 0; tries < EMPTY_TRIES_MAX; tries++) {
            remove_groups(cgroups->parent_fd, cgroups->name, 0);
            if (!same_file(cgroups->parent_fd, cgroups->name, cgroups->base_fd))
                break;
            nanosleep(&moment, NULL);
        }
        close(cgroups->base_fd);
    }
    if (cgroups->parent_fd >= 0)
        close(cgroups->parent_fd);
    free_list(&cgroups->used);
    free_list(&cgroups->idle);
    free_list(&cgroups->given_up);
    free(cgroups);
}
