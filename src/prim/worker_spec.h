/* What a worker is: its program, and the bounds of each of its processes. */
#ifndef ABX_PRIM_WORKER_SPEC_H
#define ABX_PRIM_WORKER_SPEC_H

#include "base/err.h"
#include "prim/process.h"

#include <stdbool.h>
#include <stddef.h>

struct worker_spec {
    const char *name; /* "git", "python": the tag of its processes, and what messages call it */
    enum process_kind kind;
    char *const *argv;       /* the program is looked for on PATH of the environment */
    const char *package;     /* the package that brings argv[0]; ERR_UNAVAILABLE names it. NULL: it is part of abxd */
    bool client_env;         /* process_table_env instead of process_table_own_env */
    unsigned calls_at_once;  /* 0, 1: one queue; more: as many are sent, the rest waits */
    size_t memory_max_bytes; /* RLIMIT_DATA of each of its processes (private writable memory); 0: no bound */
    unsigned fds_max;        /* RLIMIT_NOFILE; 0: as the server's */
    unsigned grace_ms;       /* from asking it to stop a call (or to end) to SIGKILL of its tree */
};

/* A copy that owns its texts, with at least one call at once; the caller gives it to worker_spec_deinit. -1 out of
 * memory: then there is nothing to give. */
int worker_spec_copy(const struct worker_spec *from, struct worker_spec *out) ABX_MUST_USE;
void worker_spec_deinit(struct worker_spec *spec);

#endif
