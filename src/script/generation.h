/* One generation of the tables: a Lua state with its groups, routes, packs and commands, loaded whole or not at all. */
#ifndef ABX_SCRIPT_GENERATION_H
#define ABX_SCRIPT_GENERATION_H

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "model/route.h"

#include <stdbool.h>
#include <stddef.h>

struct generation;
struct lua_State;

/* A Lua library in C, as `require(name)` gives it. `open` is a lua_CFunction that leaves one table. */
struct script_binding {
    const char *name; /* "abx.proc" */
    int (*open)(struct lua_State *L);
};

struct script_limits {
    unsigned cpu_ms;          /* between two yields; 500 */
    size_t task_memory_bytes; /* 64 MiB; the state's ceiling is four times that */
    unsigned load_cpu_ms;     /* for loading a generation; 2000 */
};

struct script_options {
    struct loop *loop;
    const char *lua_dir;                   /* holds groups/ routes/ packs/ abx/ */
    const char *commands_file;             /* NULL: none */
    const char *const *packs;              /* NULL-terminated names */
    const char *const *enabled_groups;     /* NULL: the defaults */
    const char *const *disabled_groups;    /* NULL: none */
    const struct script_binding *bindings; /* ends with name NULL */
    void *host;                            /* what bindings get from script_host(L); the server's parts */
    struct script_limits limits;
};

/* Faults found while loading, as "file:line: message" lines; all of them, not the first only. */
struct faults {
    struct buf text; /* lines end with \n */
    size_t count;
};
void faults_init(struct faults *faults);
void faults_deinit(struct faults *faults);
/* line 0: not known. */
void faults_add(struct faults *faults, const char *file, int line, const char *fmt, ...) ABX_PRINTF(4, 5);

/* Loads everything; NULL when there is any fault. Blocks for some milliseconds (reads files, runs the tables' chunks
 * within load_cpu_ms). One reference. */
struct generation *generation_load(const struct script_options *options, struct faults *faults);
struct generation *generation_ref(struct generation *generation);
/* The last reference frees the Lua state: each task holds one, so a swapped-out generation lives as long as its
 * requests. */
void generation_unref(struct generation *generation);

unsigned generation_number(const struct generation *generation); /* counts up from 1 in this process */
size_t generation_route_count(const struct generation *generation);
const struct route *generation_route(const struct generation *generation, size_t index);
size_t generation_group_count(const struct generation *generation);
const struct group *generation_group(const struct generation *generation, size_t index);
size_t generation_command_count(const struct generation *generation); /* hidden ones too */
size_t generation_lua_bytes(const struct generation *generation);

#endif
