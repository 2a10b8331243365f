/* Removal by descriptors, level by level; see tree_remove.h. Called by bind/bind_file_delete.c. */
#include "prim/tree_remove.h"

#include "prim/dir_chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 * 1024 };
/* How often directories are read again because others fill them while they are emptied. */
enum { REFILLS_MAX = 1000 };

/* A directory that is being emptied: files go as they are read, directories once the block is through, as a block is
 * only good until the next one is read. */
struct level {
    char *dirs; /* names of directories, each with its NUL */
    size_t dirs_len, dirs_cap, at;
};

struct removal {
    const struct confine *confine;
    const atomic_bool *cancelled;
    bool guarded; /* there are protected paths: each entry is looked at first */
    int start_fd; /* holds the start, `start`; borrowed */
    const char *start;
    struct dir_chain chain;
    struct level *levels; /* one for each directory of chain */
    size_t level_cap;
    char *block;
    unsigned refills;
    uint64_t *count;
};

static struct level *top(struct removal *removal)
{
    return &removal->levels[removal->chain.depth - 1];
}

static int fail(struct err *err, int reason, const char *name)
{
    switch (reason) {
    case ENOTEMPTY:
    case EEXIST:
        return err_set(err, ERR_NOT_EMPTY,
                       "the directory is not empty; recursive=true removes all that is in it: %.120s", name);
    case EBUSY:
        return err_set(err, ERR_BUSY, "in use, perhaps as a mount point: %.120s", name);
    case EAGAIN:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
        return err_set(err, ERR_BUSY, "moved while it was removed, try again: %.120s", name);
    case ENOENT:
        return err_set(err, ERR_FILE_NOT_FOUND, "no such file or directory: %.120s", name);
    default:
        return err_set_errno(err, err_from_errno(reason), reason, "cannot remove %.120s", name);
    }
}

static int refuse_guarded(struct removal *removal, int dir_fd, const char *name, struct err *err)
{
    struct stat found;
    if (!removal->guarded || fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    if (!confine_is_guarded(removal->confine, dir_fd, name, &found))
        return 0;
    return err_set(err, ERR_PERMISSION_DENIED, "belongs to the server's configuration: %.120s", name);
}

static int put_off(struct level *level, const char *name)
{
    size_t size = strlen(name) + 1;
    if (level->dirs_cap - level->dirs_len < size) {
        size_t cap = level->dirs_cap + level->dirs_cap / 2 + size;
        char *grown = realloc(level->dirs, cap);
        if (!grown)
            return -1;
        level->dirs = grown;
        level->dirs_cap = cap;
    }
    memcpy(level->dirs + level->dirs_len, name, size);
    level->dirs_len += size;
    return 0;
}

/* One entry of the top as it was read: removed, or put off where it is a directory. */
static int remove_entry(struct removal *removal, const char *name, unsigned char type, struct err *err)
{
    int dir_fd = dir_chain_top(&removal->chain);
    if (refuse_guarded(removal, dir_fd, name, err) != 0)
        return -1;
    /* Linux refuses to unlink a directory, by EISDIR, so an unknown type needs no look before. */
    if (type != DT_DIR) {
        if (unlinkat(dir_fd, name, 0) == 0) {
            ++*removal->count;
            return 0;
        }
        if (errno != EISDIR)
            return errno == ENOENT ? 0 : fail(err, errno, name);
    }
    return put_off(top(removal), name) == 0 ? 0 : fail(err, ENOMEM, name);
}

/* 1 where the top had more entries, 0 at its end. */
static int remove_block(struct removal *removal, struct err *err)
{
    int dir_fd = dir_chain_top(&removal->chain);
    long got = syscall(SYS_getdents64, dir_fd, removal->block, BLOCK_BYTES);
    if (got < 0 && errno != ENOENT) /* ENOENT: somebody removed the directory itself */
        return fail(err, errno, "a directory that cannot be read");
    for (long at = 0; at < got;) {
        const struct dirent64 *entry = (const struct dirent64 *)(removal->block + at);
        bool is_dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!is_dots && remove_entry(removal, entry->d_name, entry->d_type, err) != 0)
            return -1;
        at += entry->d_reclen;
    }
    return got > 0;
}

/* Whether a file system, or another part of one, is mounted on the directory. */
static bool is_mount(int parent_fd, int fd)
{
    struct statx found, parent;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &found) != 0)
        return false;
    if (found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        return found.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return statx(parent_fd, "", AT_EMPTY_PATH, STATX_TYPE, &parent) == 0 &&
           (parent.stx_dev_major != found.stx_dev_major || parent.stx_dev_minor != found.stx_dev_minor);
}

static int push_level(struct removal *removal)
{
    if (removal->chain.depth > removal->level_cap) {
        size_t cap = removal->level_cap * 2 + 16;
        struct level *grown = realloc(removal->levels, cap * sizeof *grown);
        if (!grown)
            return -1;
        removal->levels = grown;
        removal->level_cap = cap;
    }
    *top(removal) = (struct level){0};
    return 0;
}

/* Removes what takes part in no walk: a directory that is empty, or what took a directory's place meanwhile. */
static int remove_name(struct removal *removal, int dir_fd, const char *name)
{
    int result = unlinkat(dir_fd, name, AT_REMOVEDIR);
    if (result != 0 && errno == ENOTDIR)
        result = unlinkat(dir_fd, name, 0);
    if (result == 0)
        ++*removal->count;
    return result != 0 && errno != ENOENT ? -1 : 0;
}

/* Goes down into a directory. 0 as well where it is gone already, whatever took its place: then the level stays. */
static int enter(struct removal *removal, int dir_fd, const char *name, struct err *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        /* One that nobody may read can still be empty. */
        int reason = errno;
        if (reason == ENOENT ||
            ((reason == EACCES || reason == ENOTDIR || reason == ELOOP) && remove_name(removal, dir_fd, name) == 0))
            return 0;
        return fail(err, reason, name);
    }
    if (is_mount(dir_fd, fd)) {
        close(fd);
        return fail(err, EBUSY, name);
    }
    if (dir_chain_push(&removal->chain, fd) != 0 || push_level(removal) != 0)
        return fail(err, errno, name);
    return 0;
}

/* The top is empty as far as it was read: it goes as well. What others put into it meanwhile, or what a file system did
 * not tell of because entries went while it was read, is for another pass. */
static int leave(struct removal *removal, struct err *err)
{
    free(top(removal)->dirs);
    if (dir_chain_pop(&removal->chain) != 0)
        return fail(err, errno, "a directory on the way");
    struct level *outer = removal->chain.depth > 0 ? top(removal) : NULL;
    int dir_fd = outer ? dir_chain_top(&removal->chain) : removal->start_fd;
    const char *name = outer ? outer->dirs + outer->at : removal->start;
    if (remove_name(removal, dir_fd, name) == 0) {
        if (outer)
            outer->at += strlen(name) + 1;
        return 0;
    }
    /* EISDIR: it was swapped for something else and back again. */
    bool again = errno == ENOTEMPTY || errno == EEXIST || errno == EISDIR;
    if (!again || ++removal->refills > REFILLS_MAX)
        return fail(err, errno, name);
    return outer ? 0 : enter(removal, dir_fd, name, err);
}

static int step(struct removal *removal, struct err *err)
{
    struct level *level = top(removal);
    if (level->at < level->dirs_len) {
        size_t depth = removal->chain.depth, size = strlen(level->dirs + level->at) + 1;
        if (enter(removal, dir_chain_top(&removal->chain), level->dirs + level->at, err) != 0)
            return -1;
        if (removal->chain.depth == depth)
            level->at += size;
        return 0;
    }
    level->at = level->dirs_len = 0;
    int more = remove_block(removal, err);
    return more == 0 ? leave(removal, err) : more < 0 ? -1 : 0;
}

static int remove_tree(struct removal *removal, struct err *err)
{
    removal->block = malloc(BLOCK_BYTES);
    if (!removal->block)
        return fail(err, ENOMEM, removal->start);
    int result = enter(removal, removal->start_fd, removal->start, err);
    while (result == 0 && removal->chain.depth > 0) {
        if (atomic_load_explicit(removal->cancelled, memory_order_relaxed))
            result = err_set(err, ERR_HANDLER_TIMEOUT, "the removal was cancelled");
        else
            result = step(removal, err);
    }
    for (size_t i = 0; i < removal->chain.depth && i < removal->level_cap; i++)
        free(removal->levels[i].dirs);
    free(removal->levels);
    free(removal->block);
    dir_chain_close(&removal->chain);
    return result;
}

int tree_remove_at(const struct confine *confine, int dir_fd, const char *name, bool recursive,
                   const atomic_bool *cancelled, uint64_t *out_count, struct err *err)
{
    const struct confine_guard *guards;
    struct removal removal = {
        .confine = confine, .cancelled = cancelled, .start_fd = dir_fd, .start = name, .count = out_count};
    removal.guarded = confine_guards(confine, &guards) > 0;
    if (refuse_guarded(&removal, dir_fd, name, err) != 0)
        return -1;
    int result = unlinkat(dir_fd, name, 0);
    if (result != 0 && errno == EISDIR) {
        if (recursive)
            return remove_tree(&removal, err);
        result = unlinkat(dir_fd, name, AT_REMOVEDIR);
    }
    if (result != 0)
        return fail(err, errno, name);
    ++*out_count;
    return 0;
}

int tree_remove_path(const struct confine *confine, const char *path, size_t len, bool recursive,
                     const atomic_bool *cancelled, char out_path[PATH_MAX + NAME_MAX + 2], uint64_t *out_count,
                     struct err *err)
{
    struct confine_entry entry;
    if (confine_parent(confine, path, len, 0, &entry, err) != 0)
        return -1;
    int result = -1;
    *out_count = 0;
    if (confine_is_kernel_fs(entry.dir_fd))
        err_set(err, ERR_NOT_A_REGULAR_FILE, "entries of /proc and /sys are not removed");
    else if (confine_path_of(entry.dir_fd, out_path, PATH_MAX, err) == 0)
        result = tree_remove_at(confine, entry.dir_fd, entry.name, recursive, cancelled, out_count, err);
    close(entry.dir_fd);
    size_t dir_len = result == 0 && strcmp(out_path, "/") != 0 ? strlen(out_path) : 0;
    if (result == 0)
        snprintf(out_path + dir_len, NAME_MAX + 2, "/%s", entry.name);
    return result;
}
