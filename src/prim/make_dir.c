/* Directories made on a parent's descriptor; see make_dir.h. Called by bind/bind_file_mkdir.c. */
#include "prim/make_dir.h"

#include "prim/parents.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 120 };

static int shown(size_t len)
{
    return len > TEXT_MAX ? TEXT_MAX : (int)len;
}

/* The mode is set only once the directory is held: until then nobody else gets in. The new one, open; -1 with errno. */
static int make_entry(int dir_fd, const char *name, int mode)
{
    if (mkdirat(dir_fd, name, mode >= 0 ? 0700 : 0777) != 0)
        return -1;
    int fd = openat(dir_fd, name, (mode >= 0 ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (mode < 0 || fchmod(fd, (mode_t)mode) == 0))
        return fd;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    unlinkat(dir_fd, name, AT_REMOVEDIR);
    errno = reason;
    return -1;
}

/* 1 where the directory stands, 0 where nothing does, -1 where something else does, or it may not be used. */
static int look(const struct confine *confine, const char *path, size_t len, bool parents, char out_path[PATH_MAX],
                struct err *err)
{
    int fd = confine_open(confine, path, len, O_PATH, err);
    struct stat found;
    if (fd < 0 && err->code == ERR_NOT_A_DIRECTORY && parents)
        return err_set(err, ERR_ALREADY_EXISTS, "a file is in the way: %.*s", shown(len), path);
    if (fd < 0)
        return err->code == ERR_FILE_NOT_FOUND ? 0 : -1;
    int result = -1;
    if (fstat(fd, &found) != 0 || !S_ISDIR(found.st_mode))
        err_set(err, ERR_ALREADY_EXISTS, "something else has that name: %.*s", shown(len), path);
    else if (confine_path_of(fd, out_path, PATH_MAX, err) == 0)
        result = 1;
    close(fd);
    return result;
}

/* The new directory, open. -1: nothing that was made here is left. */
static int make(const struct confine *confine, const char *path, size_t len, int flags, int mode, struct err *err)
{
    struct confine_entry entry;
    size_t made;
    int fd = -1, parent_fd = -1;
    if (confine_parent(confine, path, len, flags, &entry, err) != 0)
        return -1;
    if (confine_is_kernel_fs(entry.dir_fd))
        err_set(err, ERR_NOT_A_REGULAR_FILE, "nothing is made in /proc or /sys: %.*s", shown(len), path);
    else
        parent_fd = parents_make(entry.dir_fd, entry.missing, &made, err);
    if (parent_fd >= 0) {
        fd = make_entry(parent_fd, entry.name, mode);
        if (fd < 0) {
            err_set_errno(err, err_from_errno(errno), errno, "cannot make the directory %.*s", shown(len), path);
            parents_remove(entry.dir_fd, entry.missing, made);
        }
        close(parent_fd);
    }
    close(entry.dir_fd);
    return fd;
}

int make_dir(const struct confine *confine, const char *path, size_t len, bool parents, int mode,
             char out_path[PATH_MAX], bool *out_created, struct err *err)
{
    int found = look(confine, path, len, parents, out_path, err);
    if (found != 0) {
        *out_created = false;
        return found > 0 ? 0 : -1;
    }
    parents_lock();
    int fd = make(confine, path, len, parents ? CONFINE_MISSING_PARENTS : 0, mode, err);
    parents_unlock();
    if (fd >= 0) {
        int result = confine_path_of(fd, out_path, PATH_MAX, err);
        close(fd);
        *out_created = true;
        return result;
    }
    if (err->code != ERR_ALREADY_EXISTS)
        return -1;
    /* Either another one made it meanwhile, or a link that leads nowhere is in the way. */
    struct err ignored;
    *out_created = false;
    return look(confine, path, len, parents, out_path, &ignored) > 0 ? 0 : -1;
}
