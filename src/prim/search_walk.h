/* Walks a tree for a search and puts its files into the queue. For search. */
#ifndef ABX_PRIM_SEARCH_WALK_H
#define ABX_PRIM_SEARCH_WALK_H

#include "prim/glob.h"
#include "prim/search_queue.h"

struct search_filter {
    struct glob *glob; /* NULL: all files */
    struct glob **exclude;
    size_t exclude_count;
};

/* Takes dir_fd, open for reading, whose real path that is. Deeper than 256 directories nothing is searched. Returns
 * once all files are in the queue or the search is over. -1 with err: out of descriptors or memory. */
int search_walk(struct search_queue *queue, struct search_worker *self, const struct search_filter *filter, int dir_fd,
                const char *path, struct err *err) ABX_MUST_USE;

#endif
