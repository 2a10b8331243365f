/* Copies trees: which directory of the copy belongs to the one that the walk stands in; see tree_copy.h. */
#include "prim/tree_copy.h"

#include "prim/dir_chain.h"
#include "prim/entry_copy.h"
#include "prim/parents.h"
#include "prim/staged.h"
#include "prim/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct work {
    struct tree_copy *copy;
    struct entry_copier copier;
    const char *from, *to; /* the top's names */
    int to_dir;            /* borrowed */
    /* The copy's directories, one for each that the walk is in. So many of them, from the top, were there before; the
     * next one is made under a temporary name. All below that are made as they are to be called. */
    struct dir_chain chain;
    size_t merged;
    struct stat top; /* of the copy, once there is one */
    struct {
        int dir_fd; /* -1: none */
        char name[STAGED_NAME_LEN + 1];
    } staged;
};

static void on_begun(void *ctx)
{
    struct tree_copy *copy = ctx;
    if (copy->parents_lock)
        parents_unlock();
    copy->parents_lock = false;
}

/* The directory that the copy of an entry goes into. */
static int parent_of(const struct work *work)
{
    return work->chain.depth > 0 ? dir_chain_top(&work->chain) : work->to_dir;
}

/* Whether that directory was there before, so that others see what is made in it. */
static bool parent_is_old(const struct work *work)
{
    return work->chain.depth == work->merged;
}

static bool may_replace(const struct work *work)
{
    return work->chain.depth > 0 || work->copy->overwrite;
}

static int refuse_guarded(const struct work *work, const char *name, struct err *err)
{
    const struct confine_guard *guards;
    if (confine_guards(work->copy->confine, &guards) == 0 ||
        !confine_is_guarded(work->copy->confine, parent_of(work), name, NULL))
        return 0;
    err_set(err, ERR_PERMISSION_DENIED, "belongs to the server's configuration: %.150s", name);
    return err_field(err, "destination");
}

/* ---- directories */

static int directory_err(const struct entry_source *from, struct err *err)
{
    return entry_copy_err(err, "destination", from, "make the copy of");
}

static int open_directory(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* -1 with errno. */
static int make_directory(int dir_fd, const char *name)
{
    return mkdirat(dir_fd, name, 0700) == 0 ? open_directory(dir_fd, name) : -1;
}

static void unstage(struct work *work)
{
    if (work->staged.dir_fd >= 0)
        close(work->staged.dir_fd);
    if (work->copier.staged_fd >= 0)
        close(work->copier.staged_fd);
    work->staged.dir_fd = work->copier.staged_fd = -1;
}

/* A new directory among entries that were there before. -1 with errno. */
static int stage_directory(struct work *work, size_t path_len)
{
    work->staged.dir_fd = fcntl(parent_of(work), F_DUPFD_CLOEXEC, 0);
    if (work->staged.dir_fd < 0)
        return -1;
    staged_name(work->staged.name);
    int fd = make_directory(work->staged.dir_fd, work->staged.name);
    if (fd >= 0 && path_len > 0) {
        work->copier.staged_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        work->copier.staged_path_len = path_len;
    }
    return fd;
}

/* Opens the directory that is to hold the copy, which is made unless it is there. */
static int open_copy(struct work *work, const struct entry_source *from, const char *to, struct err *err)
{
    int fd;
    if (!parent_is_old(work)) {
        fd = make_directory(parent_of(work), to);
    } else {
        bool exists;
        struct stat old;
        if (staged_look(parent_of(work), to, true, may_replace(work), &exists, &old, err) != 0 ||
            refuse_guarded(work, to, err) != 0)
            return -1;
        fd = exists ? open_directory(parent_of(work), to) : stage_directory(work, strlen(from->path));
        work->merged += exists && fd >= 0;
    }
    return fd >= 0 ? fd : directory_err(from, err);
}

/* What is found inside the tree again, by a mount, would be copied without end. */
static int refuse_own_copy(const struct work *work, const struct tree_at *at, struct err *err)
{
    if (work->chain.depth == 0 || at->dir->st_dev != work->top.st_dev || at->dir->st_ino != work->top.st_ino)
        return 0;
    err_set(err, ERR_INVALID_REQUEST, "the destination lies inside the source");
    return err_field(err, "destination");
}

static int hold_top(struct work *work, int fd)
{
    work->copier.top_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return work->copier.top_fd < 0 || fstat(fd, &work->top) != 0 ? -1 : 0;
}

static int on_enter(void *ctx, const struct tree_at *at, struct err *err)
{
    struct work *work = ctx;
    struct entry_source from = {at->dir_fd, at->depth > 0 ? at->name : work->from, at->path, DT_DIR};
    if (atomic_load(work->copy->cancelled))
        return err_set(err, ERR_BUSY, "cancelled");
    if (entry_copy_check(&work->copier, &from, at->fd, at->dir, err) != 0 || refuse_own_copy(work, at, err) != 0)
        return -1;
    int fd = open_copy(work, &from, at->depth > 0 ? at->name : work->to, err);
    if (fd < 0)
        return -1;
    on_begun(work->copy);
    work->copy->others++;
    if (dir_chain_push(&work->chain, fd) != 0 || (at->depth == 0 && hold_top(work, fd) != 0))
        return directory_err(&from, err);
    return 0;
}

static int finish_directory(struct work *work, const struct tree_at *at, const char *to, struct err *err)
{
    struct entry_source from = {-1, to, at->path, DT_DIR};
    if (file_copy_attributes(at->fd, dir_chain_top(&work->chain), at->dir) != 0)
        return directory_err(&from, err);
    if (work->chain.depth > work->merged + 1)
        return 0;
    if (staged_place(work->staged.dir_fd, work->staged.name, to, false, err) != 0)
        return -1;
    unstage(work);
    return 0;
}

static int on_leave(void *ctx, const struct tree_at *at, struct err *err)
{
    struct work *work = ctx;
    if (work->chain.depth == work->merged)
        work->merged--;
    else if (finish_directory(work, at, at->depth > 0 ? at->name : work->to, err) != 0)
        return -1;
    if (dir_chain_pop(&work->chain) == 0)
        return 0;
    err_set(err, ERR_BUSY, "the destination was moved meanwhile");
    return err_field(err, "destination");
}

/* ---- everything else */

/* Among entries that were there before: the copy takes its name when it is whole. */
static int copy_beside(struct work *work, const struct entry_source *from, const char *to, struct err *err)
{
    bool exists;
    struct stat old;
    char temp[STAGED_NAME_LEN + 1];
    if (staged_look(parent_of(work), to, false, may_replace(work), &exists, &old, err) != 0 ||
        refuse_guarded(work, to, err) != 0)
        return -1;
    staged_name(temp);
    if (entry_copy(&work->copier, from, parent_of(work), temp, err) == 0 &&
        staged_place(parent_of(work), temp, to, may_replace(work), err) == 0)
        return 0;
    unlinkat(parent_of(work), temp, 0);
    return -1;
}

static int on_entry(void *ctx, const struct tree_at *at, struct err *err)
{
    struct work *work = ctx;
    struct entry_source from = {at->dir_fd, at->name, at->path, at->type};
    if (atomic_load_explicit(work->copy->cancelled, memory_order_relaxed))
        return err_set(err, ERR_BUSY, "cancelled");
    if (parent_is_old(work))
        return copy_beside(work, &from, at->name, err);
    return entry_copy(&work->copier, &from, parent_of(work), at->name, err);
}

static int copy_top(struct work *work, const struct entry_source *from, struct err *err)
{
    static const struct tree_visitor visitor = {.enter = on_enter, .entry = on_entry, .leave = on_leave};
    if (from->type == DT_SOCK) {
        err_set(err, ERR_NOT_A_REGULAR_FILE, "a socket is not copied: %.150s", from->name);
        return err_field(err, "source");
    }
    if (from->type != DT_DIR)
        return copy_beside(work, from, work->to, err);
    int fd = open_directory(from->dir_fd, from->name);
    return fd < 0 ? entry_copy_err(err, "source", from, "read") : tree_walk(fd, &visitor, work, err);
}

int tree_copy(struct tree_copy *copy, int from_dir, const char *from, int to_dir, const char *to, struct err *err)
{
    struct work work = {.copy = copy, .from = from, .to = to, .to_dir = to_dir, .staged = {.dir_fd = -1}};
    work.copier = (struct entry_copier){.confine = copy->confine,
                                        .begun = on_begun,
                                        .begun_ctx = copy,
                                        .files = {.cancelled = copy->cancelled},
                                        .top_fd = -1,
                                        .staged_fd = -1};
    hard_links_init(&work.copier.links);
    struct stat found;
    struct entry_source source = {from_dir, from, "", DT_UNKNOWN};
    int result = fstatat(from_dir, from, &found, AT_SYMLINK_NOFOLLOW);
    source.type = result == 0 ? (unsigned char)IFTODT(found.st_mode) : DT_UNKNOWN;
    result = result == 0 ? copy_top(&work, &source, err) : entry_copy_err(err, "source", &source, "read");
    if (result != 0 && work.staged.dir_fd >= 0)
        staged_discard(copy->confine, work.staged.dir_fd, work.staged.name);
    unstage(&work);
    if (work.copier.top_fd >= 0)
        close(work.copier.top_fd);
    dir_chain_close(&work.chain);
    copy->files = work.copier.file_count;
    copy->bytes = work.copier.bytes;
    copy->others += work.copier.other_count;
    entry_copier_deinit(&work.copier);
    return result;
}
