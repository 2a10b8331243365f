/* A hash table of inodes; see hard_links.h. For tree_copy.c. */
#include "prim/hard_links.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64, PATHS_MAX_BYTES = 256 * 1024 * 1024 };

void hard_links_init(struct hard_links *links)
{
    *links = (struct hard_links){0};
    buf_init(&links->paths, PATHS_MAX_BYTES);
}

void hard_links_deinit(struct hard_links *links)
{
    free(links->items);
    free(links->buckets);
    buf_deinit(&links->paths);
    hard_links_init(links);
}

/* Inode numbers often differ in their low bits only: Fibonacci hashing spreads them. cap is a power of two. */
static size_t *bucket_of(const struct hard_links *links, dev_t dev, ino_t ino)
{
    uint64_t hash = ((uint64_t)ino ^ ((uint64_t)dev << 32)) * 11400714819323198485u;
    return &links->buckets[(hash >> 32) & (links->cap - 1)];
}

const struct hard_link *hard_links_find(const struct hard_links *links, dev_t dev, ino_t ino)
{
    if (links->count == 0)
        return NULL;
    for (size_t at = *bucket_of(links, dev, ino); at > 0; at = links->items[at - 1].next)
        if (links->items[at - 1].dev == dev && links->items[at - 1].ino == ino)
            return &links->items[at - 1];
    return NULL;
}

const char *hard_links_path(const struct hard_links *links, const struct hard_link *link)
{
    return links->paths.data + link->path;
}

static void put_in_bucket(struct hard_links *links, size_t index)
{
    struct hard_link *item = &links->items[index];
    size_t *bucket = bucket_of(links, item->dev, item->ino);
    item->next = *bucket;
    *bucket = index + 1;
}

static int grow(struct hard_links *links)
{
    size_t cap = links->cap > 0 ? 2 * links->cap : FIRST_CAP;
    struct hard_link *items = realloc(links->items, cap * sizeof *items);
    if (!items)
        return -1;
    links->items = items;
    size_t *buckets = calloc(cap, sizeof *buckets);
    if (!buckets)
        return -1;
    free(links->buckets);
    links->buckets = buckets;
    links->cap = cap;
    for (size_t i = 0; i < links->count; i++)
        put_in_bucket(links, i);
    return 0;
}

int hard_links_add(struct hard_links *links, dev_t dev, ino_t ino, ino_t copy_ino, const char *path)
{
    if (links->count == HARD_LINKS_MAX)
        return 0;
    if (links->count == links->cap && grow(links) != 0)
        return -1;
    size_t at = links->paths.len;
    if (buf_append(&links->paths, path, strlen(path) + 1) != 0)
        return links->paths.len > PATHS_MAX_BYTES / 2 ? 0 : -1;
    links->items[links->count] = (struct hard_link){dev, ino, copy_ino, at, 0};
    put_in_bucket(links, links->count++);
    return 0;
}
