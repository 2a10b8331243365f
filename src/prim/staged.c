/* Temporary names, what may stand at a target, and the rename; for tree_copy.c and tree_move.c. */
#include "prim/staged.h"

#include "base/log.h"
#include "prim/file_lock.h"
#include "prim/secret.h"
#include "prim/tree_remove.h"
#include "prim/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char field[] = "destination";

void staged_name(char out[STAGED_NAME_LEN + 1])
{
    static const char prefix[] = ".abx-";
    memcpy(out, prefix, sizeof prefix);
    secret_random_hex(out + sizeof prefix - 1, (STAGED_NAME_LEN + 1 - sizeof prefix) / 2);
}

bool staged_is_name(const char *name)
{
    return strlen(name) == STAGED_NAME_LEN && strncmp(name, ".abx-", 5) == 0 &&
           strspn(name + 5, "0123456789abcdef") == STAGED_NAME_LEN - 5;
}

static int refuse_kind(struct err *err, bool is_dir, const char *name)
{
    if (is_dir)
        err_set(err, ERR_NOT_A_DIRECTORY, "a directory cannot replace what is none: %.150s", name);
    else
        err_set(err, ERR_IS_A_DIRECTORY, "a directory stands there: %.150s; name the entry itself", name);
    return err_field(err, field);
}

int staged_look(int dir_fd, const char *name, bool is_dir, bool overwrite, bool *out_exists, struct stat *out_found,
                struct err *err)
{
    *out_exists = fstatat(dir_fd, name, out_found, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*out_exists && errno != ENOENT)
        return staged_rename_err(err, errno, name);
    if (confine_is_kernel_fs(dir_fd)) {
        err_set(err, ERR_NOT_A_REGULAR_FILE, "nothing is made in /proc and /sys: %.150s", name);
        return err_field(err, field);
    }
    if (!*out_exists)
        return 0;
    if (!overwrite)
        return staged_rename_err(err, EEXIST, name);
    return S_ISDIR(out_found->st_mode) == is_dir ? 0 : refuse_kind(err, is_dir, name);
}

/* Where the file system cannot rename without replacing, a second name does; a directory gets none, but replaces
 * nothing except an empty one. */
static int rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
    if (syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    struct stat found;
    if (fstatat(from_fd, from, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    if (linkat(from_fd, from, to_fd, to, 0) == 0)
        return unlinkat(from_fd, from, 0);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK)
        return -1;
    if (fstatat(to_fd, to, &found, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) {
        errno = EEXIST;
        return -1;
    }
    return renameat(from_fd, from, to_fd, to);
}

int staged_rename(int from_fd, const char *from, int to_fd, const char *to, bool overwrite)
{
    struct file_lock lock = {0};
    struct err err;
    if (file_lock_take(&lock, to_fd, to, &err) != 0) {
        errno = err.saved_errno;
        return -1;
    }
    int result = overwrite ? renameat(from_fd, from, to_fd, to) : rename_new(from_fd, from, to_fd, to);
    int reason = errno;
    file_lock_release(&lock);
    errno = reason;
    return result;
}

int staged_rename_err(struct err *err, int reason, const char *to)
{
    if (reason == EEXIST)
        err_set(err, ERR_ALREADY_EXISTS, "%.150s exists; overwrite=true replaces it", to);
    else if (reason == ENOTEMPTY)
        err_set(err, ERR_NOT_EMPTY, "the directory %.150s is not empty", to);
    else if (reason == EISDIR || reason == ENOTDIR)
        refuse_kind(err, reason == ENOTDIR, to);
    else if (reason == EXDEV) /* asked for within one directory only: something was mounted meanwhile */
        err_set(err, ERR_BUSY, "%.150s was changed meanwhile, try again", to);
    else
        err_set_errno(err, err_from_errno(reason), reason, "cannot make %.150s", to);
    return err_field(err, field);
}

int staged_place(int dir_fd, const char *temp, const char *name, bool overwrite, struct err *err)
{
    return staged_rename(dir_fd, temp, dir_fd, name, overwrite) == 0 ? 0 : staged_rename_err(err, errno, name);
}

/* Copies of directories that may not be written, or not even be read, got their mode already. */
static void open_up_at(int dir_fd, const char *name)
{
    char link[64];
    int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    (void)!chmod(link, 0700); /* fchmod refuses O_PATH */
    close(fd);
}

static void open_up(int dir_fd, const char *name)
{
    static const struct tree_visitor visitor = {.approach = open_up_at};
    struct err ignored;
    open_up_at(dir_fd, name);
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && tree_walk(fd, &visitor, NULL, &ignored) != 0)
        log_warn("files", "a directory below %s cannot be opened: %s", name, ignored.text);
}

void staged_discard(const struct confine *confine, int dir_fd, const char *temp)
{
    static const atomic_bool never = false;
    uint64_t count = 0;
    struct err err;
    if (tree_remove_at(confine, dir_fd, temp, true, &never, &count, &err) == 0 || err.code == ERR_FILE_NOT_FOUND)
        return;
    open_up(dir_fd, temp);
    if (tree_remove_at(confine, dir_fd, temp, true, &never, &count, &err) != 0)
        log_warn("files", "%s could not be removed: %s", temp, err.text);
}
