/* Bump allocation for requests: parsing, checking and answering one all take from its arena. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_FIRST_BYTES = 4096, ARENA_BLOCK_MAX_BYTES = 256 * 1024 };

struct arena_block {
    struct arena_block *older;
    size_t used, cap;
    alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
    *arena = (struct arena){.limit_bytes = limit_bytes};
}

void arena_deinit(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *older; block; block = older) {
        older = block->older;
        free(block);
    }
    arena->blocks = NULL;
    arena->used_bytes = 0;
}

void arena_reset(struct arena *arena)
{
    struct arena_block *block = arena->blocks;
    while (block && block->older) {
        struct arena_block *older = block->older;
        free(block);
        block = older;
    }
    /* One huge first allocation is not worth keeping. */
    if (block && block->cap > ARENA_BLOCK_MAX_BYTES) {
        free(block);
        block = NULL;
    }
    if (block)
        block->used = 0;
    arena->blocks = block;
    arena->used_bytes = 0;
}

static struct arena_block *block_new(size_t cap)
{
    struct arena_block *block = malloc(sizeof *block + cap);
    if (block) {
        block->older = NULL;
        block->used = 0;
        block->cap = cap;
    }
    return block;
}

/* A block for `size` more bytes. Allocations too big to share one get their own behind the current block, which stays
 * in use. */
static struct arena_block *block_for(struct arena *arena, size_t size)
{
    struct arena_block *head = arena->blocks;
    if (head && head->cap - head->used >= size)
        return head;

    size_t cap = head ? head->cap * 2 : ARENA_FIRST_BYTES;
    if (cap > ARENA_BLOCK_MAX_BYTES)
        cap = ARENA_BLOCK_MAX_BYTES;
    bool alone = size > cap / 4 && head;
    if (size > cap || alone)
        cap = size;
    struct arena_block *block = block_new(cap);
    if (!block)
        return NULL;
    if (alone) {
        block->older = head->older;
        head->older = block;
    } else {
        block->older = head;
        arena->blocks = block;
    }
    return block;
}

/* Texts are packed (align 1), all else is aligned for any type. */
static void *take(struct arena *arena, size_t size, size_t align)
{
    if (size > arena->limit_bytes || arena->used_bytes > arena->limit_bytes - size)
        return NULL;
    struct arena_block *head = arena->blocks;
    size_t padding = head ? -head->used & (align - 1) : 0;
    /* Too little room in this block means a new one, which starts aligned. */
    struct arena_block *block = block_for(arena, size + padding);
    if (!block)
        return NULL;
    block->used += -block->used & (align - 1);
    void *memory = block->bytes + block->used;
    block->used += size;
    arena->used_bytes += size;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    void *memory = take(arena, size, alignof(max_align_t));
    return memory ? memset(memory, 0, size) : NULL;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? take(arena, len + 1, 1) : NULL;
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
