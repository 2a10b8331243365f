/* Goes through a tree by a stack of its own, so that its depth costs memory only; see tree_walk.h. */
#include "prim/tree_walk.h"

#include "base/buf.h"
#include "prim/dir_chain.h"
#include "prim/dir_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = 4 * 1024 * 1024 };

struct level {
    struct dir_scan scan;
    size_t next;      /* of its names */
    const char *name; /* in the scan of the level above */
    size_t path_len;
    struct stat found;
};

struct walk {
    const struct tree_visitor *visitor;
    void *ctx;
    struct dir_chain chain;
    struct level *levels;
    size_t depth, cap;
    struct buf path; /* of the entry in hand, and a NUL */
};

static int no_memory(struct err *err)
{
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot walk through a tree");
}

static int cannot_read(const struct walk *walk, struct err *err)
{
    int reason = errno;
    /* What was a directory a moment ago is something else by now. */
    enum err_code code = reason == ELOOP || reason == ENOTDIR ? ERR_BUSY : err_from_errno(reason);
    const char *path = walk->path.data;
    return err_set_errno(err, code, reason, "cannot read %.150s", path[0] ? path : "the directory");
}

/* The path of the entry in hand becomes that of its directory, and the name. */
static int set_path(struct walk *walk, size_t dir_path_len, const char *name, struct err *err)
{
    walk->path.len = dir_path_len;
    if ((dir_path_len > 0 && buf_append(&walk->path, "/", 1) != 0) ||
        buf_append(&walk->path, name, strlen(name) + 1) != 0)
        return err_set(err, ERR_INVALID_PATH, "the tree is too deep");
    return 0;
}

static int reserve_level(struct walk *walk)
{
    if (walk->depth < walk->cap)
        return 0;
    size_t cap = walk->cap * 2 + 16;
    struct level *grown = realloc(walk->levels, cap * sizeof *grown);
    if (!grown)
        return -1;
    walk->levels = grown;
    walk->cap = cap;
    return 0;
}

static int push(struct walk *walk, int fd, const char *name, const struct stat *found, struct err *err)
{
    if (reserve_level(walk) != 0 || dir_chain_push(&walk->chain, fd) != 0)
        return no_memory(err);
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){.name = name, .path_len = walk->path.len - 1, .found = *found};
    return dir_scan(fd, &level->scan) == 0 ? 0 : cannot_read(walk, err);
}

/* Takes fd. dir_fd and name say where it stands. */
static int enter(struct walk *walk, int fd, int dir_fd, const char *name, struct err *err)
{
    struct stat found;
    int result = fstat(fd, &found) == 0 ? 0 : cannot_read(walk, err);
    if (result == 0 && walk->visitor->enter) {
        struct tree_at at = {dir_fd, name, walk->path.data, DT_DIR, fd, &found, walk->depth};
        result = walk->visitor->enter(walk->ctx, &at, err);
    }
    if (result == 0)
        return push(walk, fd, name, &found, err);
    close(fd);
    return -1;
}

static int leave(struct walk *walk, struct err *err)
{
    struct level *level = &walk->levels[walk->depth - 1];
    walk->path.data[level->path_len] = '\0';
    int result = 0;
    if (walk->visitor->leave) {
        struct tree_at at = {
            -1, level->name, walk->path.data, DT_DIR, dir_chain_top(&walk->chain), &level->found, walk->depth - 1};
        result = walk->visitor->leave(walk->ctx, &at, err);
    }
    dir_scan_free(&level->scan);
    walk->depth--;
    if (dir_chain_pop(&walk->chain) != 0 && result == 0)
        result = cannot_read(walk, err);
    return result;
}

/* The type that getdents64 told, or where it told none, what fstatat tells. */
static int type_of(struct walk *walk, const struct dir_name *entry, unsigned char *out_type, struct err *err)
{
    struct stat found;
    *out_type = entry->type;
    if (entry->type != DT_UNKNOWN)
        return 0;
    if (fstatat(dir_chain_top(&walk->chain), entry->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return cannot_read(walk, err);
    *out_type = (unsigned char)IFTODT(found.st_mode);
    return 0;
}

static int visit(struct walk *walk, const struct dir_name *entry, struct err *err)
{
    unsigned char type;
    int dir_fd = dir_chain_top(&walk->chain);
    if (set_path(walk, walk->levels[walk->depth - 1].path_len, entry->name, err) != 0 ||
        type_of(walk, entry, &type, err) != 0)
        return -1;
    if (type != DT_DIR) {
        struct tree_at at = {dir_fd, entry->name, walk->path.data, type, -1, NULL, walk->depth};
        return walk->visitor->entry ? walk->visitor->entry(walk->ctx, &at, err) : 0;
    }
    if (walk->visitor->approach)
        walk->visitor->approach(dir_fd, entry->name);
    int fd = openat(dir_fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? cannot_read(walk, err) : enter(walk, fd, dir_fd, entry->name, err);
}

int tree_walk(int fd, const struct tree_visitor *visitor, void *ctx, struct err *err)
{
    struct walk walk = {.visitor = visitor, .ctx = ctx};
    buf_init(&walk.path, PATH_MAX_BYTES);
    int result = set_path(&walk, 0, "", err);
    if (result == 0)
        result = enter(&walk, fd, -1, "", err);
    else
        close(fd);
    while (result == 0 && walk.depth > 0) {
        struct level *level = &walk.levels[walk.depth - 1];
        result =
            level->next < level->scan.count ? visit(&walk, &level->scan.names[level->next++], err) : leave(&walk, err);
    }
    while (walk.depth > 0)
        dir_scan_free(&walk.levels[--walk.depth].scan);
    dir_chain_close(&walk.chain);
    buf_deinit(&walk.path);
    free(walk.levels);
    return result;
}
