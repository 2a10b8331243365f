/* Holds the way down into a tree by a bounded number of descriptors, for prim/tree_list and prim/tree_remove. */
#include "prim/dir_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void close_keeping_errno(int fd)
{
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
}

static int reserve(struct dir_chain *chain)
{
    if (chain->depth < chain->cap)
        return 0;
    size_t cap = chain->cap * 2 + 16;
    struct dir_chain_link *grown = realloc(chain->links, cap * sizeof *grown);
    if (!grown)
        return -1;
    chain->links = grown;
    chain->cap = cap;
    return 0;
}

int dir_chain_push(struct dir_chain *chain, int fd)
{
    struct stat found;
    if (reserve(chain) != 0 || fstat(fd, &found) != 0) {
        close_keeping_errno(fd);
        return -1;
    }
    if (chain->depth >= DIR_CHAIN_HELD_MAX) {
        struct dir_chain_link *far = &chain->links[chain->depth - DIR_CHAIN_HELD_MAX];
        if (far->fd >= 0)
            close(far->fd);
        far->fd = -1;
    }
    chain->links[chain->depth++] = (struct dir_chain_link){fd, found.st_dev, found.st_ino};
    return 0;
}

/* The kernel's ".." is wherever the directory stands by now: it counts only where it is the one that was left. */
static int reopen(struct dir_chain_link *link, int inner_fd)
{
    struct stat found;
    int fd = openat(inner_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &found) == 0 && found.st_dev == link->dev && found.st_ino == link->ino) {
        link->fd = fd;
        return 0;
    }
    close(fd);
    errno = EAGAIN;
    return -1;
}

int dir_chain_pop(struct dir_chain *chain)
{
    int inner_fd = chain->links[--chain->depth].fd, result = 0;
    if (chain->depth > 0 && chain->links[chain->depth - 1].fd < 0)
        result = reopen(&chain->links[chain->depth - 1], inner_fd);
    close_keeping_errno(inner_fd);
    return result;
}

int dir_chain_top(const struct dir_chain *chain)
{
    return chain->links[chain->depth - 1].fd;
}

void dir_chain_close(struct dir_chain *chain)
{
    for (size_t i = 0; i < chain->depth; i++)
        if (chain->links[i].fd >= 0)
            close(chain->links[i].fd);
    free(chain->links);
    *chain = (struct dir_chain){0};
}
