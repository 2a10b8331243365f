/* abx.server: what the server is and how it was started. Called by scripts. */
#include "bind/bind.h"
#include "bind/host.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SHELL_TIMEOUT_MS = 120000 };

static uint64_t uptime_ms(const struct host *host)
{
    return (loop_clock_ns() - host->started_at_ns) / 1000000;
}

static int bind_server_uptime_ms(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)uptime_ms(script_host(L)));
    return 1;
}

static int bind_server_draining(lua_State *L)
{
    lua_pushboolean(L, ((struct host *)script_host(L))->draining);
    return 1;
}

static void set_size(lua_State *L, const char *name, size_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

static void push_limits(lua_State *L, const struct host_limits *limits)
{
    lua_createtable(L, 0, 5);
    set_size(L, "requests", limits->requests_max);
    set_size(L, "processes", limits->processes_max);
    set_size(L, "terminals", limits->terminals_max);
    set_size(L, "json_body_bytes", limits->json_body_bytes);
    set_size(L, "content_body_bytes", limits->content_body_bytes);
}

/* server.config() -> table; made anew, because the ports are known only after listening. */
static int bind_server_config(lua_State *L)
{
    const struct host *host = script_host(L);
    lua_createtable(L, 0, 9);
    lua_pushstring(L, confine_base_dir(host->confine));
    lua_setfield(L, -2, "base_dir");
    lua_pushstring(L, access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
    lua_setfield(L, -2, "shell");
    set_size(L, "port", host->port);
    set_size(L, "ws_port", host->ws_port);
    lua_pushstring(L, host->ws_public_url); /* nil where there is none */
    lua_setfield(L, -2, "ws_public_url");
    push_limits(L, &host->limits);
    lua_setfield(L, -2, "limits");
    lua_createtable(L, 0, 1);
    set_size(L, "timeout_ms", SHELL_TIMEOUT_MS);
    lua_setfield(L, -2, "defaults");
    lua_pushstring(L, process_table_has_cgroups(host->processes) ? "cgroup" : "walk");
    lua_setfield(L, -2, "process_tree");
    return 1;
}

static void push_worker(const struct worker *worker, void *ctx)
{
    lua_State *L = ctx;
    const struct process *process = worker_process(worker);
    lua_createtable(L, 0, 5);
    lua_pushstring(L, worker_spec(worker)->name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, process != NULL);
    lua_setfield(L, -2, "running");
    if (process != NULL) {
        lua_pushinteger(L, process_pid(process));
        lua_setfield(L, -2, "pid");
    }
    lua_pushinteger(L, (lua_Integer)worker_load(worker));
    lua_setfield(L, -2, "load");
    lua_pushinteger(L, (lua_Integer)worker_calls(worker));
    lua_setfield(L, -2, "calls");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* server.workers() -> list of {name, running, pid (nil: none lives), load, calls} */
static int bind_server_workers(lua_State *L)
{
    const struct host *host = script_host(L);
    lua_settop(L, 0);
    luaL_checkstack(L, 4, NULL);
    lua_newtable(L);
    if (host->workers != NULL)
        workers_each(host->workers, push_worker, L);
    return 1;
}

static void push_started_at(lua_State *L, const struct host *host)
{
    struct timespec now;
    struct tm utc;
    char text[48];
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t started_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - (int64_t)uptime_ms(host);
    time_t seconds = (time_t)(started_ms / 1000);
    gmtime_r(&seconds, &utc);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + len, sizeof(text) - len, ".%03dZ", (int)(started_ms % 1000));
    lua_pushstring(L, text);
}

int bind_server_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"uptime_ms", bind_server_uptime_ms},
        {"draining", bind_server_draining},
        {"config", bind_server_config},
        {"workers", bind_server_workers},
        {NULL, NULL},
    };
    const struct host *host = script_host(L);
    luaL_newlib(L, functions);
    lua_pushstring(L, host->version);
    lua_setfield(L, -2, "version");
    push_started_at(L, host);
    lua_setfield(L, -2, "started_at");
    lua_pushinteger(L, getpid());
    lua_setfield(L, -2, "pid");
    return 1;
}
