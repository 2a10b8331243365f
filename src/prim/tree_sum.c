/* Counts what is in a tree; see tree_sum.h. For tree_move.c. */
#include "prim/tree_sum.h"

#include "prim/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct counting {
    const atomic_bool *cancelled;
    struct tree_sum *sum;
};

/* FNV-1a over 64-bit words. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 1099511628211u;
}

static void add_state(struct tree_sum *sum, const char *path, const struct stat *found)
{
    uint64_t state = sum->state;
    for (const char *at = path; *at; at++)
        state = mix(state, (unsigned char)*at);
    state = mix(mix(state, found->st_ino), (uint64_t)found->st_size);
    state = mix(mix(state, (uint64_t)found->st_mtim.tv_sec), (uint64_t)found->st_mtim.tv_nsec);
    sum->state = mix(mix(state, (uint64_t)found->st_ctim.tv_sec), (uint64_t)found->st_ctim.tv_nsec);
}

static void add(struct tree_sum *sum, const char *path, const struct stat *found)
{
    add_state(sum, path, found);
    if (S_ISDIR(found->st_mode)) {
        sum->directories++;
    } else if (S_ISREG(found->st_mode)) {
        sum->files++;
        sum->bytes += (uint64_t)found->st_size;
    } else {
        sum->others++;
    }
}

static int on_enter(void *ctx, const struct tree_at *at, struct err *err)
{
    const struct counting *counting = ctx;
    if (atomic_load(counting->cancelled))
        return err_set(err, ERR_BUSY, "cancelled");
    add(counting->sum, at->path, at->dir);
    return 0;
}

static int on_entry(void *ctx, const struct tree_at *at, struct err *err)
{
    const struct counting *counting = ctx;
    struct stat found;
    if (fstatat(at->dir_fd, at->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot look at %.150s", at->path);
    add(counting->sum, at->path, &found);
    return 0;
}

int tree_sum(int dir_fd, const char *name, const atomic_bool *cancelled, struct tree_sum *out, struct err *err)
{
    static const struct tree_visitor visitor = {.enter = on_enter, .entry = on_entry};
    struct counting counting = {cancelled, out};
    struct stat found;
    if (fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot look at %.150s", name);
    if (!S_ISDIR(found.st_mode)) {
        add(out, "", &found);
        return 0;
    }
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot read %.150s", name);
    return tree_walk(fd, &visitor, &counting, err);
}

bool tree_sum_is_copy(const struct tree_sum *sum, const struct tree_sum *copy)
{
    return sum->files == copy->files && sum->directories == copy->directories && sum->others == copy->others &&
           sum->bytes == copy->bytes;
}
