/* Who is in the foreground; called by terminal_rows, on a thread, and by terminal. */
#include "prim/terminal_foreground.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether it lives and is of that group and session: numbers are used again. */
static bool is_member(int proc_fd, pid_t pid, pid_t group, pid_t session, struct proc_stat *out)
{
    return proc_stat_read(proc_fd, pid, out) == 0 && !proc_is_zombie(out) && out->group == group &&
           out->session == session;
}

/* The leader of `sleep 0 | sleep 9` ends first. */
static bool find_member(int proc_fd, pid_t group, pid_t session, struct proc_stat *out)
{
    pid_t *pids;
    size_t count;
    bool found = is_member(proc_fd, group, group, session, out);
    if (found || proc_pids(proc_fd, &pids, &count) != 0)
        return found;
    for (size_t i = 0; i < count && !found; i++)
        found = is_member(proc_fd, pids[i], group, session, out);
    free(pids);
    return found;
}

bool terminal_foreground_lives(int proc_fd, pid_t group, pid_t session)
{
    struct proc_stat member;
    return find_member(proc_fd, group, session, &member);
}

static bool read_cwd(struct terminal_foreground *out, int proc_fd, pid_t pid)
{
    char path[32];
    snprintf(path, sizeof(path), "%d/cwd", (int)pid);
    ssize_t len = readlinkat(proc_fd, path, out->cwd, sizeof(out->cwd));
    out->cwd_len = len > 0 && (size_t)len < sizeof(out->cwd) ? (size_t)len : 0;
    return out->cwd_len > 0;
}

void terminal_foreground_look(struct terminal_foreground *out, int proc_fd, pid_t first)
{
    struct proc_stat stat, front;
    out->name[0] = '\0';
    out->cwd_len = 0;
    /* It may have ended and been waited for since the table was looked at, and its number be another one's. */
    if (proc_stat_read(proc_fd, first, &stat) != 0 || proc_is_zombie(&stat) || stat.parent != getpid())
        return;
    bool found = stat.foreground > 0 && find_member(proc_fd, stat.foreground, stat.session, &front);
    if (found)
        memcpy(out->name, front.name, sizeof(out->name));
    if (!found || !read_cwd(out, proc_fd, front.pid))
        read_cwd(out, proc_fd, first);
}
