/* Generations: a Lua state with everything loaded into it, or the list of what is wrong. Called by server, held by the
 * pipeline and by each task. */
#include "script/generation.h"

#include "script/budget.h"
#include "script/load.h"
#include "script/sandbox.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULTS_MAX_BYTES = 256 * 1024, TABLES_MAX_BYTES = 64 * 1024 * 1024 };

static unsigned loaded_count;

void faults_init(struct faults *faults)
{
    *faults = (struct faults){0};
    buf_init(&faults->text, FAULTS_MAX_BYTES);
}

void faults_deinit(struct faults *faults)
{
    buf_deinit(&faults->text);
}

void faults_add(struct faults *faults, const char *file, int line, const char *fmt, ...)
{
    char text[1024], place[24] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++) { /* a fault is one line */
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    }
    if (line > 0)
        snprintf(place, sizeof(place), ":%d", line);
    faults->count++;
    if (buf_printf(&faults->text, "%s%s: %s\n", file, place, text) != 0)
        return; /* counted, if not told */
}

/* A lua_CFunction: memory may run out in any of this. */
static int load_all(lua_State *L)
{
    struct loader *loader = lua_touserdata(L, 1);
    if (access(loader->vm->lua_dir, X_OK) != 0) {
        /* One fault rather than one for each folder and each module in it. */
        faults_add(loader->faults, loader->vm->lua_dir, 0, "%s", strerror(errno));
        return 0;
    }
    load_groups(loader);
    load_routes(loader);
    load_commands(loader);
    sandbox_freeze_loaded(L);
    return 0;
}

static void load(struct generation *generation, const struct script_options *options, struct faults *faults)
{
    struct vm *vm = &generation->vm;
    struct loader loader = {.options = options,
                            .generation = generation,
                            .vm = vm,
                            .L = vm->L,
                            .faults = faults,
                            .source = {.display = options->lua_dir, .text = ""}};
    struct budget before;
    arena_init(&loader.scratch, TABLES_MAX_BYTES);
    vm->faults = faults;
    vm->capped = true;
    budget_enter(&before, vm->L, options->limits.load_cpu_ms);
    lua_pushcfunction(vm->L, load_all);
    lua_pushlightuserdata(vm->L, &loader);
    int status = lua_pcall(vm->L, 1, 0, 0);
    budget_leave(&before, vm->L);
    vm->capped = false;
    vm->faults = NULL;
    if (status != LUA_OK)
        load_fault(&loader, 0, "%s", lua_type(vm->L, -1) == LUA_TSTRING ? lua_tostring(vm->L, -1) : "cannot be loaded");
    lua_settop(vm->L, 0);
    arena_deinit(&loader.scratch);
}

struct generation *generation_load(const struct script_options *options, struct faults *faults)
{
    struct err err;
    size_t faults_before = faults->count;
    struct generation *generation = calloc(1, sizeof(*generation));
    if (generation == NULL || vm_open(&generation->vm, generation, options, &err) != 0) {
        faults_add(faults, "configuration", 0, "%s", generation ? err.text : "out of memory");
        free(generation);
        return NULL;
    }
    generation->references = 1;
    arena_init(&generation->arena, TABLES_MAX_BYTES);
    load(generation, options, faults);
    if (faults->count > faults_before) {
        generation_unref(generation);
        return NULL;
    }
    lua_gc(generation->vm.L, LUA_GCCOLLECT); /* what loading left over */
    generation->number = ++loaded_count;
    return generation;
}

struct generation *generation_ref(struct generation *generation)
{
    generation->references++;
    return generation;
}

void generation_unref(struct generation *generation)
{
    if (generation == NULL || --generation->references > 0)
        return;
    vm_close(&generation->vm);
    arena_deinit(&generation->arena);
    free(generation->routes);
    free(generation);
}

struct vm *generation_vm(struct generation *generation)
{
    return &generation->vm;
}

unsigned generation_number(const struct generation *generation)
{
    return generation->number;
}

size_t generation_route_count(const struct generation *generation)
{
    return generation->route_count;
}

const struct route *generation_route(const struct generation *generation, size_t index)
{
    return generation->routes[index];
}

size_t generation_group_count(const struct generation *generation)
{
    return generation->group_count;
}

const struct group *generation_group(const struct generation *generation, size_t index)
{
    return &generation->groups[index];
}

size_t generation_command_count(const struct generation *generation)
{
    lua_State *L = generation->vm.L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, generation->vm.commands);
    size_t count = lua_rawlen(L, -1);
    lua_pop(L, 1);
    return count;
}

size_t generation_lua_bytes(const struct generation *generation)
{
    return generation->vm.used_bytes;
}
