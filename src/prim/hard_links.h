/* Files of a tree that have several names, and where the first of them was copied to: so that copies keep the names
 * together. Memory only. */
#ifndef ABX_PRIM_HARD_LINKS_H
#define ABX_PRIM_HARD_LINKS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Past so many, names are copied apart. */
enum { HARD_LINKS_MAX = 1024 * 1024 };

struct hard_links {
    struct hard_link {
        dev_t dev;
        ino_t ino;      /* the source */
        ino_t copy_ino; /* the copy */
        size_t path;    /* of the copy from the top of its tree, in paths */
        size_t next;    /* in its bucket: index + 1 */
    } * items;
    size_t count, cap;
    size_t *buckets; /* index + 1 of the first; as many as cap */
    struct buf paths;
};

void hard_links_init(struct hard_links *links);
void hard_links_deinit(struct hard_links *links);
/* Borrowed until the next call of hard_links_add; NULL: not met yet. */
const struct hard_link *hard_links_find(const struct hard_links *links, dev_t dev, ino_t ino);
/* NUL-terminated, borrowed likewise. */
const char *hard_links_path(const struct hard_links *links, const struct hard_link *link);
/* Remembers a copy; path is copied. Forgets what is too much. -1: out of memory. */
int hard_links_add(struct hard_links *links, dev_t dev, ino_t ino, ino_t copy_ino, const char *path) ABX_MUST_USE;

#endif
