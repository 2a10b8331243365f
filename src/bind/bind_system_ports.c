/* system.ports: where programs listen. Called by lua/routes/system.lua. */
#include "bind/bind_fs.h"
#include "bind/bind_system.h"
#include "bind/host.h"
#include "prim/ports.h"
#include "script/bindings.h"

#include <stdio.h>
#include <stdlib.h>

struct ports_job {
    struct fs_job job;
    struct ports_entry *entries; /* the process table as it was at the call */
    size_t count, cap;
    bool no_memory;
};

static int ports_run(struct fs_job *job, struct err *err)
{
    const struct ports_job *ports = (const struct ports_job *)job;
    return ports_write(&job->answer, ports->entries, ports->count, err);
}

static void ports_free(struct fs_job *job)
{
    free(((struct ports_job *)job)->entries);
    free(job);
}

static void add_entry(struct process *process, void *ctx)
{
    struct ports_job *ports = ctx;
    if (ports->count == ports->cap) {
        size_t cap = ports->cap > 0 ? ports->cap * 2 : 64;
        struct ports_entry *more = realloc(ports->entries, cap * sizeof(*more));
        ports->no_memory |= more == NULL;
        if (more == NULL)
            return;
        ports->entries = more;
        ports->cap = cap;
    }
    struct ports_entry *entry = &ports->entries[ports->count++];
    entry->pid = process_state(process) == PROCESS_RUNNING ? process_pid(process) : 0;
    snprintf(entry->id, sizeof(entry->id), "%s", process_id(process));
}

/* system.ports() -> JSON | nil, code, message, field.  Yields. */
int bind_system_ports(lua_State *L)
{
    const struct host *host = script_host(L);
    struct ports_job *ports = fs_job_new(L, sizeof(*ports), ports_run, ports_free);
    ports->job.blamed = NULL;
    process_table_each(host->processes, add_entry, ports);
    if (ports->no_memory) {
        ports_free(&ports->job);
        return luaL_error(L, "out of memory");
    }
    return fs_job_start(L, &ports->job, FS_JOB_ON_SHORT_THREADS, false);
}
