/* /proc/PID/stat and the list of processes; called by process_tree, process lists, strangers and metrics. */
#include "prim/proc_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STAT_TEXT_MAX = 1024 };

int proc_open(void)
{
    return open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

uint64_t proc_hertz(void)
{
    return (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t proc_ticks_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t hertz = proc_hertz();
    return (uint64_t)now.tv_sec * hertz + (uint64_t)now.tv_nsec * hertz / 1000000000;
}

bool proc_is_zombie(const struct proc_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

static int open_file(int proc_fd, pid_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
    return openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
}

static ssize_t read_some(int fd, char *out, size_t size)
{
    ssize_t len;
    do
        len = read(fd, out, size);
    while (len < 0 && errno == EINTR);
    return len;
}

size_t proc_read(int proc_fd, pid_t pid, const char *file, char *out, size_t size)
{
    int fd = open_file(proc_fd, pid, file);
    if (fd < 0)
        return 0;
    size_t have = 0;
    for (ssize_t len = 1; have < size && len > 0;) {
        len = read_some(fd, out + have, size - have);
        have += len > 0 ? (size_t)len : 0;
    }
    close(fd);
    return have;
}

size_t proc_read_once(int proc_fd, pid_t pid, const char *file, char *out, size_t size)
{
    int fd = open_file(proc_fd, pid, file);
    if (fd < 0)
        return 0;
    ssize_t len = read_some(fd, out, size);
    close(fd);
    return len > 0 ? (size_t)len : 0;
}

static void copy_name(struct proc_stat *out, const char *from, const char *to)
{
    size_t len = (size_t)(to - from);
    if (len >= sizeof(out->name))
        len = sizeof(out->name) - 1;
    memcpy(out->name, from, len);
    out->name[len] = '\0';
}

int proc_stat_read(int proc_fd, pid_t pid, struct proc_stat *out)
{
    char text[STAT_TEXT_MAX];
    size_t len = proc_read_once(proc_fd, pid, "stat", text, sizeof(text) - 1);
    text[len] = '\0';
    const char *name = memchr(text, '(', len), *name_end = memrchr(text, ')', len);
    if (!name || !name_end || name_end < name)
        return -1;
    *out = (struct proc_stat){.pid = pid};
    copy_name(out, name + 1, name_end);
    int parent, group, session, foreground;
    unsigned long long user, system, start;
    long long pages;
    /* state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime priority nice
     * threads itrealvalue starttime vsize rss */
    if (sscanf(name_end + 1, " %c %d %d %d %*d %d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %lld",
               &out->state, &parent, &group, &session, &foreground, &user, &system, &start, &pages) != 9)
        return -1;
    out->parent = parent;
    out->group = group;
    out->session = session;
    out->foreground = foreground;
    out->user_ticks = user;
    out->system_ticks = system;
    out->start_ticks = start;
    out->rss_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    return 0;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

static int add_pid(pid_t **pids, size_t *count, size_t *cap, pid_t pid)
{
    if (*count == *cap) {
        size_t wanted = *cap > 0 ? *cap * 2 : 256;
        pid_t *more = realloc(*pids, wanted * sizeof(*more));
        if (!more)
            return -1;
        *pids = more;
        *cap = wanted;
    }
    (*pids)[(*count)++] = pid;
    return 0;
}

int proc_pids(int proc_fd, pid_t **out_pids, size_t *out_count)
{
    size_t cap = 0;
    *out_pids = NULL;
    *out_count = 0;
    int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int failed = 0;
    for (struct dirent *found = readdir(dir); found && failed == 0; found = readdir(dir)) {
        if (found->d_name[0] >= '1' && found->d_name[0] <= '9')
            failed = add_pid(out_pids, out_count, &cap, (pid_t)atoi(found->d_name));
    }
    closedir(dir);
    if (failed != 0) {
        free(*out_pids);
        *out_pids = NULL;
        errno = ENOMEM;
        return -1;
    }
    if (*out_count > 0)
        qsort(*out_pids, *out_count, sizeof(**out_pids), compare_pids);
    return 0;
}
