/* Renames, or where that cannot be, copies, compares and removes; see tree_move.h. */
#include "prim/tree_move.h"

#include "prim/dir_scan.h"
#include "prim/parents.h"
#include "prim/staged.h"
#include "prim/tree_copy.h"
#include "prim/tree_remove.h"
#include "prim/tree_sum.h"
#include "prim/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- protected paths */

/* A path that is missing today is protected too, by the directory it would stand in: that must not go either. */
static int refuse_guarded_dir(void *ctx, const struct tree_at *at, struct err *err)
{
    const struct confine_guard *guards;
    size_t count = confine_guards(ctx, &guards);
    for (size_t i = 0; i < count; i++) {
        if (at->dir->st_dev == guards[i].dir_dev && at->dir->st_ino == guards[i].dir_ino)
            return err_set(err, ERR_PERMISSION_DENIED, "holds the server's configuration: %.150s",
                           at->path[0] ? at->path : "the directory");
    }
    return 0;
}

static int refuse_guarded(const struct confine *confine, int dir_fd, const char *name, struct err *err)
{
    static const struct tree_visitor visitor = {.enter = refuse_guarded_dir};
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot read %.150s", name);
    return tree_walk(fd, &visitor, (void *)confine, err);
}

/* ---- by copy */

static int copy_and_compare(const struct tree_move *move, struct tree_copy *copy, int from_dir, const char *from,
                            int to_dir, const char *temp, struct err *err)
{
    struct tree_sum before = {0}, after = {0}, made = {0};
    if (tree_sum(from_dir, from, move->cancelled, &before, err) != 0 ||
        tree_copy(copy, from_dir, from, to_dir, temp, err) != 0)
        return -1;
    if (tree_sum(from_dir, from, move->cancelled, &after, err) == 0 &&
        tree_sum(to_dir, temp, move->cancelled, &made, err) == 0) {
        if (before.state == after.state && tree_sum_is_copy(&after, &made))
            return 0;
        err_set(err, ERR_BUSY, "%.150s was changed while it was copied to the other file system, try again", from);
    }
    staged_discard(move->confine, to_dir, temp);
    return -1;
}

static int remove_source(const struct tree_move *move, int from_dir, const char *from, struct err *err)
{
    static const atomic_bool never = false; /* half a source is of no use to anybody */
    struct err cause;
    uint64_t count = 0;
    if (tree_remove_at(move->confine, from_dir, from, true, &never, &count, &cause) == 0)
        return 0;
    err_set(err, cause.code, "the destination is whole, but the source could not be removed: %.170s", cause.text);
    err->saved_errno = cause.saved_errno;
    return -1;
}

/* The rename at the end would say so too, but only then. */
static int refuse_full(int dir_fd, const char *name, struct err *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct dir_scan scan;
    bool is_full = dir_scan(fd, &scan) == 0 && scan.count > 0;
    dir_scan_free(&scan);
    close(fd);
    return is_full ? staged_rename_err(err, ENOTEMPTY, name) : 0;
}

static int move_by_copy(struct tree_move *move, int from_dir, const char *from, int to_dir, const char *to,
                        struct err *err)
{
    char temp[STAGED_NAME_LEN + 1];
    struct tree_copy copy = {.confine = move->confine, .cancelled = move->cancelled};
    if (refuse_full(to_dir, to, err) != 0)
        return -1;
    staged_name(temp);
    if (copy_and_compare(move, &copy, from_dir, from, to_dir, temp, err) != 0)
        return -1;
    if (staged_place(to_dir, temp, to, move->overwrite, err) != 0) {
        staged_discard(move->confine, to_dir, temp);
        return -1;
    }
    return remove_source(move, from_dir, from, err);
}

/* ---- by rename */

static int rename_err(const char *from, const char *to, int reason, bool overwrite, struct err *err)
{
    if (reason == EEXIST && overwrite) /* rename(2): the other word for ENOTEMPTY */
        reason = ENOTEMPTY;
    if (reason == EINVAL) {
        err_set(err, ERR_INVALID_REQUEST, "%.150s cannot be moved into itself", from);
        return err_field(err, "destination");
    }
    if (reason == EBUSY)
        return err_set(err, ERR_BUSY, "in use, perhaps as a mount point: %.150s or %.60s", from, to);
    return staged_rename_err(err, reason, to);
}

/* Between two names of one file rename(2) does nothing and says so to nobody. */
static void drop_second_name(int from_dir, const char *from, const struct stat *moved)
{
    struct stat left;
    if (fstatat(from_dir, from, &left, AT_SYMLINK_NOFOLLOW) == 0 && left.st_dev == moved->st_dev &&
        left.st_ino == moved->st_ino && left.st_nlink > 1)
        unlinkat(from_dir, from, 0);
}

/* A walk through a whole tree must keep nobody from parents_lock: in its stead an empty directory holds the
 * destination's.
 */
static int release_lock(struct tree_move *move, int to_dir, char holder[STAGED_NAME_LEN + 1], struct err *err)
{
    if (!move->parents_lock)
        return 0;
    staged_name(holder);
    if (mkdirat(to_dir, holder, 0700) != 0) {
        int reason = errno;
        holder[0] = '\0';
        return staged_rename_err(err, reason, "a directory beside the destination");
    }
    parents_unlock();
    move->parents_lock = false;
    return 0;
}

/* source is what stands under `from`. */
static int move_entry(struct tree_move *move, int from_dir, const char *from, const struct stat *source, int to_dir,
                      const char *to, char holder[STAGED_NAME_LEN + 1], struct err *err)
{
    struct stat old;
    bool exists, is_dir = S_ISDIR(source->st_mode);
    const struct confine_guard *guards;
    if (staged_look(to_dir, to, is_dir, move->overwrite, &exists, &old, err) != 0)
        return -1;
    if (is_dir && confine_guards(move->confine, &guards) > 0 &&
        (release_lock(move, to_dir, holder, err) != 0 || refuse_guarded(move->confine, from_dir, from, err) != 0))
        return -1;
    if (staged_rename(from_dir, from, to_dir, to, move->overwrite) == 0) {
        if (exists && old.st_dev == source->st_dev && old.st_ino == source->st_ino)
            drop_second_name(from_dir, from, source);
        return 0;
    }
    if (errno != EXDEV)
        return rename_err(from, to, errno, move->overwrite, err);
    if (release_lock(move, to_dir, holder, err) != 0)
        return -1;
    return move_by_copy(move, from_dir, from, to_dir, to, err);
}

int tree_move(struct tree_move *move, int from_dir, const char *from, int to_dir, const char *to, struct err *err)
{
    struct stat source;
    char holder[STAGED_NAME_LEN + 1] = "";
    if (fstatat(from_dir, from, &source, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot look at %.150s", from);
    int result = move_entry(move, from_dir, from, &source, to_dir, to, holder, err);
    if (holder[0])
        unlinkat(to_dir, holder, AT_REMOVEDIR);
    return result;
}
