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
    env_block_init(block);
}

static size_t find(const struct env_block *block, const char *name, size_t len)
{
    size_t i = 0;
    while (i < block->count && (strncmp(block->vars[i], name, len) != 0 || block->vars[i][len] != '='))
        i++;
    return i;
}

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
    if (block->count + 1 >= block->cap) { /* one for the NULL at the end */
        size_t cap = block->cap != 0 ? block->cap * 2 : 32;
        char **vars = realloc(block->vars, cap * sizeof(*vars));
        if (vars == NULL) {
            free(var);
            return -1;
        }
        block->vars = vars;
        block->cap = cap;
    }
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
    size_t at = find(block, name, strlen(name));
    if (at == block->count)
        return;
    free(block->vars[at]);
    block->count--;
    memmove(&block->vars[at], &block->vars[at + 1], (block->count - at + 1) * sizeof(*block->vars));
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
