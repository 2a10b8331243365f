/* One Lua state and the memory it may take. For the files of script/ only; bindings use script/bindings.h. */
#ifndef ABX_SCRIPT_VM_H
#define ABX_SCRIPT_VM_H

#include "base/arena.h"
#include "base/err.h"
#include "script/generation.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task;

/* Who pays for a block: each carries its owner, so that garbage of one task, collected while another runs, is taken off
 * the right bill. Lives until its task is over and its last block is freed. */
struct account {
    size_t used_bytes, limit_bytes;
    bool closed;
    struct account *next_idle;
};

enum { VM_IDLE_MAX = 64, VM_SOURCE_MAX_BYTES = 1024 * 1024 };

struct vm {
    lua_State *L;
    struct generation *generation;

    size_t used_bytes, ceiling_bytes, task_bytes;
    struct account host;     /* what no task allocated: the tables, the pool */
    struct account *charged; /* who pays now; never NULL */
    struct account *idle_accounts;
    size_t left_bytes; /* of accounts whose task is over: garbage, or what the modules keep */
    bool told_kept;
    bool capped; /* the host's own calls are not: nothing protects them */

    struct task *running; /* the task whose code runs now, in whatever coroutine; NULL while tables load */
    struct task *idle_tasks, *all_tasks;
    size_t idle_coroutines;
    unsigned requiring; /* nesting of `require`: nothing may wait in there */

    struct loop *loop;
    void *host_parts;
    const struct script_binding *bindings;
    struct script_limits limits;
    char *lua_dir;         /* as configured, without a slash at the end */
    struct faults *faults; /* while tables load, else NULL */

    /* registry references */
    int array_meta, reply_meta, failure_meta, request_meta, body_meta, out_meta, file_meta, raw_json_meta, box_meta;
    int modules;                         /* what require has loaded, by name */
    int groups, routes, packs, commands; /* lists for abx.tables */
};

/* Opens the state with its sandbox; -1: memory or the kernel's timer. vm_close frees all but the struct itself. */
int vm_open(struct vm *vm, struct generation *generation, const struct script_options *options,
            struct err *err) ABX_MUST_USE;
void vm_close(struct vm *vm);

/* The one that L belongs to. */
struct vm *vm_of(lua_State *L);

/* generation.c */
struct vm *generation_vm(struct generation *generation);

/* Accounts. NULL out of memory. */
struct account *vm_account_open(struct vm *vm);
void vm_account_close(struct vm *vm, struct account *account);
/* Memory ran out, so all garbage is gone: where what is left belongs to no task, and is so much that tasks no longer
 * get their share, the log says so, once. */
void vm_tell_kept(struct vm *vm);

/* "lua/routes/core.lua" for a file below lua_dir's parent, else the path as it is. */
const char *vm_display(const struct vm *vm, const char *path);

/* Reads a source: at most VM_SOURCE_MAX_BYTES, without a byte order mark, text only. NULL with *err; freed by free().
 */
char *vm_read_source(const char *path, size_t *out_len, struct err *err);

#endif
