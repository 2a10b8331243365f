/* abx.system: what the machine is and does. Called by lua/routes/system.lua. */
#include "bind/bind_system.h"

#include "base/json.h"
#include "bind/bind.h"
#include "bind/bind_fs.h"
#include "bind/host.h"
#include "prim/metrics.h"
#include "prim/spawn.h"
#include "prim/sysinfo.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MORE_MAX_BYTES = 1024 * 1024 };

/* --- info */

struct info_job {
    struct fs_job job;
    size_t more_len;
    char more[]; /* further members as JSON, "…}" without what opens the object */
};

static void free_job(struct fs_job *job)
{
    free(job);
}

static int run_info(struct fs_job *job, struct err *err)
{
    const struct info_job *info = (const struct info_job *)job;
    const char *base_dir = confine_base_dir(job->confine);
    struct sysinfo found;
    struct buf *out = &job->answer;
    sysinfo_read("", &found);
    if (buf_append_text(out, "{") != 0 || sysinfo_write(&found, out) != 0 ||
        buf_append_text(out, ",\"base_dir\":") != 0 || json_write_string(out, base_dir, strlen(base_dir)) != 0 ||
        (info->more_len > 1 && buf_append_text(out, ",") != 0) || buf_append(out, info->more, info->more_len) != 0)
        return err_set(err, ERR_INTERNAL, "out of memory for what the machine is");
    return 0;
}

/* system.info(more) -> raw JSON: what the machine is, and the members of the table `more` | nil, code, message. Yields.
 */
static int bind_system_info(lua_State *L)
{
    struct err err;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct buf *more = lua_push_buf(L, MORE_MAX_BYTES);
    if (lua_write_json(L, 1, more, &err) != 0)
        return lua_push_err(L, &err);
    if (more->data[0] != '{')
        return luaL_error(L, "system.info takes a table with names");
    struct info_job *info = fs_job_new(L, sizeof(*info) + more->len, run_info, free_job);
    info->job.blamed = NULL;
    info->more_len = more->len - 1;
    memcpy(info->more, more->data + 1, info->more_len);
    return fs_job_start(L, &info->job, FS_JOB_ON_SHORT_THREADS, false);
}

/* --- metrics */

struct metrics_job {
    struct fs_job job;
    struct cpu_meter *meter;
    struct metrics_server server;
};

/* The very first question waits until there is something to compare with, where it is in nobody's way. */
static int run_metrics(struct fs_job *job, struct err *err)
{
    struct metrics_job *metrics = (struct metrics_job *)job;
    struct metrics found;
    struct cpu_use cpu;
    unsigned wait_ms = cpu_meter_ask(metrics->meter, "", loop_clock_ns(), &cpu);
    job->go_on = wait_ms > 0 && job->place != FS_JOB_ON_LONG_THREADS;
    if (job->go_on)
        return 0;
    while (wait_ms > 0 && !atomic_load(&job->cancelled)) {
        struct timespec pause = {.tv_sec = wait_ms / 1000, .tv_nsec = (long)(wait_ms % 1000) * 1000000};
        nanosleep(&pause, NULL);
        wait_ms = cpu_meter_ask(metrics->meter, "", loop_clock_ns(), &cpu);
    }
    metrics_read("", &found);
    found.cpu = cpu;
    if (metrics_write(&found, &metrics->server, &job->answer) != 0)
        return err_set(err, ERR_INTERNAL, "out of memory for metrics");
    return 0;
}

/* system.metrics() -> raw JSON | nil, code, message. Yields. */
static int bind_system_metrics(lua_State *L)
{
    const struct host *host = script_host(L);
    lua_settop(L, 0);
    struct metrics_job *metrics = fs_job_new(L, sizeof(*metrics), run_metrics, free_job);
    metrics->job.blamed = NULL;
    metrics->meter = host->cpu_meter;
    metrics->server = (struct metrics_server){.requests = host->requests_running(host->requests_ctx),
                                              .processes = process_table_living(host->processes),
                                              .terminals = process_table_living_terminals(host->processes)};
    return fs_job_start(L, &metrics->job, FS_JOB_ON_SHORT_THREADS, false);
}

/* --- programs */

/* Tells one state of a file from another. */
static bool fingerprint(int base_fd, const char *path, char *out, size_t size)
{
    struct stat found;
    if (fstatat(base_fd, path, &found, 0) != 0)
        return false;
    snprintf(out, size, "%jx:%jx:%jx:%jx.%09lx", (uintmax_t)found.st_dev, (uintmax_t)found.st_ino,
             (uintmax_t)found.st_size, (uintmax_t)found.st_mtim.tv_sec, (unsigned long)found.st_mtim.tv_nsec);
    return true;
}

/* system.find_program(name) -> path, fingerprint of the file it leads to | nil. As a new process in the base directory
 * would find it. */
static int bind_system_find_program(lua_State *L)
{
    const struct host *host = script_host(L);
    const char *name = luaL_checkstring(L, 1), *search_path = env_block_get(process_table_env(host->processes), "PATH");
    char path[PATH_MAX], mark[96];
    struct err err;
    int base_fd = confine_open_dir(host->confine, "", 0, &err);
    if (base_fd < 0)
        return 0;
    bool found =
        spawn_find(name, search_path, base_fd, path, &err) == 0 && fingerprint(base_fd, path, mark, sizeof(mark));
    close(base_fd);
    if (!found)
        return 0;
    lua_pushstring(L, path);
    lua_pushstring(L, mark);
    return 2;
}

int bind_system_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"info", bind_system_info},   {"metrics", bind_system_metrics},           {"disks", bind_system_disks},
        {"ports", bind_system_ports}, {"find_program", bind_system_find_program}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
