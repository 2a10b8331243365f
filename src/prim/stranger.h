/* A process of this sandbox that abxd did not start, held by a pidfd: its number cannot become another's meanwhile. */
#ifndef ABX_PRIM_STRANGER_H
#define ABX_PRIM_STRANGER_H

#include "base/err.h"
#include "prim/proc_stat.h"

struct stranger {
    int pidfd;
    struct proc_stat stat; /* as it was when it was opened */
};

/* By its decimal pid. ERR_PROCESS_NOT_FOUND, field "id", where `id` is no such number or nothing bears it; one that has
 * ended and was not waited for (a zombie) does. stranger_close afterwards. */
int stranger_open(struct stranger *out, const char *id, struct err *err) ABX_MUST_USE;
void stranger_close(struct stranger *stranger);

#endif
