/* The environment of a child, built variable by variable; and which names are secret or protected. */
#ifndef ABX_PRIM_ENV_BLOCK_H
#define ABX_PRIM_ENV_BLOCK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL-terminated vector of "NAME=value", as execve wants it. */
struct env_block {
    char **vars;
    size_t count, cap;
    /* Finds a name: an open-addressing table of positions in vars + 1, where 0 is free. At most half of it is taken. */
    uint32_t *slots;
    size_t slot_count; /* 0 or a power of two */
};

void env_block_init(struct env_block *block);
void env_block_deinit(struct env_block *block);
/* Copies every variable of envp but ABX_SERVER_*. 0 or -1 (out of memory). */
int env_block_inherit(struct env_block *block, char *const *envp) ABX_MUST_USE;
/* Adds or replaces. -1 out of memory. The name is not checked here. */
int env_block_set(struct env_block *block, const char *name, const char *value) ABX_MUST_USE;
/* The last variable takes the place of the one that goes. */
void env_block_unset(struct env_block *block, const char *name);
const char *env_block_get(const struct env_block *block, const char *name); /* NULL: not set */

/* [A-Za-z_][A-Za-z0-9_]* */
bool env_name_valid(const char *name, size_t len);

#endif
