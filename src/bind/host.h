/* The server's parts as bindings see them (script_host): filled in by server, borrowed, alive as long as any
 * generation. */
#ifndef ABX_BIND_HOST_H
#define ABX_BIND_HOST_H

#include "base/loop.h"
#include "base/pool.h"
#include "prim/confine.h"
#include "prim/contexts.h"
#include "prim/cpu_meter.h"
#include "prim/process.h"
#include "prim/session.h"
#include "prim/terminals.h"
#include "prim/worker.h"
#include "script/generation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct browser;
struct git_workers;

struct host {
    struct loop *loop;
    struct pool *long_jobs; /* walks, searches and copies of trees */
    struct confine *confine;
    struct process_table *processes;
    struct session_table *sessions;
    struct terminals *terminals; /* NULL: the group terminal is off */
    struct workers *workers;     /* helper processes that answer calls */
    struct contexts *contexts;   /* of code; NULL until they are first needed */
    struct browser *browser;     /* NULL until it is first needed */
    struct cpu_meter *cpu_meter;
    struct git_workers *git;                     /* those that work on repositories */
    size_t (*requests_running)(const void *ctx); /* those that run now */
    const void *requests_ctx;
    const char *helper_path; /* the abxd-helper executable */
    const char *workers_dir; /* absolute, holds the programs of workers; NULL: there is none */
    const char *version;
    uint64_t started_at_ns;                 /* loop_clock_ns at start */
    unsigned port, ws_port;                 /* known after listening; ws_port 0: the group terminal is off */
    const char *ws_public_url;              /* NULL: clients reach ws_port by the name in their Host */
    const char *const *browser_allow_hosts; /* that the browser may reach in any case; ends with NULL. NULL: none */
    bool draining;
    struct host_limits {
        size_t requests_max, processes_max, terminals_max;
        size_t json_body_bytes, content_body_bytes;
    } limits;
};

/* The bindings that server hands to every generation; ends with name NULL. */
extern const struct script_binding bind_all[];

#endif
