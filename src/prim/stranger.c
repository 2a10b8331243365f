/* Processes that are in no table; called by bind_proc_describe and bind_proc_signal. */
#include "prim/stranger.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* 0 where it is no pid: a sign, a blank or a leading zero are none either. */
static pid_t parse_pid(const char *id)
{
    char *end;
    if (id[0] < '1' || id[0] > '9')
        return 0;
    errno = 0;
    long pid = strtol(id, &end, 10);
    return *end == '\0' && errno == 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int not_found(const char *id, struct err *err)
{
    err_set(err, ERR_PROCESS_NOT_FOUND, "no process is called %.40s; GET /processes?scope=all lists them", id);
    return err_field(err, "id");
}

int stranger_open(struct stranger *out, const char *id, struct err *err)
{
    pid_t pid = parse_pid(id);
    /* First the descriptor, then the look: what is seen is what the descriptor holds, or has ended since. */
    *out = (struct stranger){.pidfd = pid > 0 ? pidfd_open(pid, 0) : -1};
    if (out->pidfd < 0)
        return not_found(id, err);
    int proc_fd = proc_open();
    int failed = proc_fd >= 0 ? proc_stat_read(proc_fd, pid, &out->stat) : -1;
    if (proc_fd >= 0)
        close(proc_fd);
    if (failed == 0)
        return 0;
    stranger_close(out);
    return not_found(id, err);
}

void stranger_close(struct stranger *stranger)
{
    if (stranger->pidfd >= 0)
        close(stranger->pidfd);
    stranger->pidfd = -1;
}
