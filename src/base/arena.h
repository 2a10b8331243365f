/* Memory that belongs to one request and is given back at once. */
#ifndef ABX_BASE_ARENA_H
#define ABX_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used_bytes, limit_bytes;
};

/* Nothing is allocated before the first arena_alloc; past limit_bytes arena_alloc answers NULL. */
void arena_init(struct arena *arena, size_t limit_bytes);
/* Frees every block. */
void arena_deinit(struct arena *arena);
/* Frees every block but the first one, which is kept for the next request. */
void arena_reset(struct arena *arena);

/* Zeroed memory aligned for any type; NULL past the limit or out of memory. Lives until reset or deinit. */
void *arena_alloc(struct arena *arena, size_t size);
/* A NUL-terminated copy of len bytes (which may hold NUL themselves). */
char *arena_strndup(struct arena *arena, const char *text, size_t len);

#endif
