/* The directories from the start of a walk down to where it stands, held open: for what lists and removes trees, whose
 * depth has no limit but whose descriptors have. Blocking. */
#ifndef ABX_PRIM_DIR_CHAIN_H
#define ABX_PRIM_DIR_CHAIN_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* So many of the deepest are held open; those above are closed and opened again on the way back. */
enum { DIR_CHAIN_HELD_MAX = 64 };

/* Zeroed to begin. */
struct dir_chain {
    struct dir_chain_link {
        int fd; /* open for reading; -1 while it is closed */
        dev_t dev;
        ino_t ino;
    } * links;
    size_t depth, cap;
};

/* Takes fd, an entry of the top that was opened without following. -1 with errno: fd was closed. */
int dir_chain_push(struct dir_chain *chain, int fd) ABX_MUST_USE;
/* Closes the top. -1 with errno: the one below had been closed and cannot be opened again; EAGAIN where the directory
 * was moved meanwhile, so that its ".." is another one. Nothing but dir_chain_close may follow then. */
int dir_chain_pop(struct dir_chain *chain) ABX_MUST_USE;
/* The descriptor of the top, borrowed; its position is at the start where it was opened again. */
int dir_chain_top(const struct dir_chain *chain);
void dir_chain_close(struct dir_chain *chain);

#endif
