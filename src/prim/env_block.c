/* The environment of a child, built variable by variable; used by the process table, sessions and bind_proc. */
#include "prim/env_block.h"

#include <stdlib.h>
#include <string.h>

#define PROTECTED_PREFIX "ABX_SERVER_"

void env_block_init(struct env_block *block)
{
    *block = (struct env_block){0};
}

void env_block_deinit(struct env_block *block)
{
    for (size_t i = 0; i < block->count; i++)
        free(block->vars[i]);
    free(block->vars);
    free(block->slots);
    env_block_init(block);
}

/* --- the index */

static size_t hash_of(const char *name, size_t len)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static size_t home_of(const struct env_block *block, size_t at)
{
    const char *var = block->vars[at];
    return hash_of(var, strcspn(var, "=")) & (block->slot_count - 1);
}

/* The slot that has the name, else the free one where it belongs. There must be slots. */
static size_t find_slot(const struct env_block *block, const char *name, size_t len)
{
    size_t slot = hash_of(name, len) & (block->slot_count - 1);
    while (block->slots[slot] != 0) {
        const char *var = block->vars[block->slots[slot] - 1];
        if (strncmp(var, name, len) == 0 && var[len] == '=')
            break;
        slot = (slot + 1) & (block->slot_count - 1);
    }
    return slot;
}

/* The position of a variable, or count. */
static size_t find(const struct env_block *block, const char *name, size_t len)
{
    if (block->slot_count == 0)
        return block->count;
    uint32_t found = block->slots[find_slot(block, name, len)];
    return found != 0 ? found - 1 : block->count;
}

static int grow(struct env_block *block)
{
    size_t cap = block->cap != 0 ? block->cap * 2 : 32;
    char **vars = realloc(block->vars, cap * sizeof(*vars));
    if (vars == NULL)
        return -1;
    block->vars = vars;
    uint32_t *slots = calloc(cap * 2, sizeof(*slots));
    if (slots == NULL)
        return -1;
    free(block->slots);
    block->slots = slots;
    block->slot_count = cap * 2;
    block->cap = cap;
    for (size_t i = 0; i < block->count; i++)
        slots[find_slot(block, block->vars[i], strcspn(block->vars[i], "="))] = (uint32_t)i + 1;
    return 0;
}

/* Frees a slot; those behind it that were pushed on by it move up, so that no search ends too early. */
static void clear_slot(struct env_block *block, size_t hole)
{
    size_t mask = block->slot_count - 1;
    for (size_t slot = (hole + 1) & mask; block->slots[slot] != 0; slot = (slot + 1) & mask) {
        size_t home = home_of(block, block->slots[slot] - 1);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            block->slots[hole] = block->slots[slot];
            hole = slot;
        }
    }
    block->slots[hole] = 0;
}

/* --- variables */

static int put(struct env_block *block, const char *name, size_t name_len, const char *value)
{
    size_t value_len = strlen(value);
    char *var = malloc(name_len + 1 + value_len + 1);
    if (var == NULL)
        return -1;
    memcpy(var, name, name_len);
    var[name_len] = '=';
    memcpy(var + name_len + 1, value, value_len + 1);
    size_t at = find(block, name, name_len);
    if (at < block->count) {
        free(block->vars[at]);
        block->vars[at] = var;
        return 0;
    }
    if (block->count + 1 >= block->cap && grow(block) != 0) { /* one for the NULL at the end */
        free(var);
        return -1;
    }
    block->slots[find_slot(block, name, name_len)] = (uint32_t)block->count + 1;
    block->vars[block->count++] = var;
    block->vars[block->count] = NULL;
    return 0;
}

int env_block_inherit(struct env_block *block, char *const *envp)
{
    for (; *envp != NULL; envp++) {
        const char *equals = strchr(*envp, '=');
        if (equals == NULL || strncmp(*envp, PROTECTED_PREFIX, strlen(PROTECTED_PREFIX)) == 0)
            continue;
        if (put(block, *envp, (size_t)(equals - *envp), equals + 1) != 0)
            return -1;
    }
    return 0;
}

int env_block_set(struct env_block *block, const char *name, const char *value)
{
    return put(block, name, strlen(name), value);
}

void env_block_unset(struct env_block *block, const char *name)
{
    size_t len = strlen(name), at = find(block, name, len);
    if (at == block->count)
        return;
    clear_slot(block, find_slot(block, name, len));
    free(block->vars[at]);
    size_t last = --block->count;
    if (at != last) {
        const char *var = block->vars[last];
        block->slots[find_slot(block, var, strcspn(var, "="))] = (uint32_t)at + 1;
        block->vars[at] = block->vars[last];
    }
    block->vars[last] = NULL;
}

const char *env_block_get(const struct env_block *block, const char *name)
{
    size_t at = find(block, name, strlen(name));
    return at < block->count ? block->vars[at] + strlen(name) + 1 : NULL;
}

bool env_name_valid(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return len > 0;
}
