/* Opens what clients name, below the base directory only: openat2 where the kernel has it, else the walk. For uploads,
 * downloads, working directories and every other verb that takes a path. */
#include "prim/confine.h"

#include "base/log.h"
#include "prim/confine_walk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { AGAIN_MAX = 16, PATH_SHOWN_MAX = 120 };

/* The kernel answers EAGAIN where something on the way of a ".." was renamed meanwhile. */
int confine_open_beneath(const struct confine *confine, const char *relative, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve};
    if (flags & O_PATH)
        how.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC; /* openat2 refuses what open(2) would ignore */
    for (int tries = 0;; tries++) {
        long fd = syscall(SYS_openat2, confine->base_fd, relative, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tries == AGAIN_MAX || resolve)
            return (int)fd;
    }
}

static int open_beneath(const struct confine *confine, const char *relative, int flags)
{
    return confine_open_beneath(confine, relative, flags, 0);
}

/* Says what errno means for this path. */
static int path_err(struct err *err, const char *path, size_t len)
{
    int reason = errno, shown = len > PATH_SHOWN_MAX ? PATH_SHOWN_MAX : (int)len;
    switch (reason) {
    case EXDEV:
        return err_set(err, ERR_PATH_OUTSIDE_BASE, "%.*s leads outside the base directory; name a path inside it",
                       shown, path);
    case EINVAL:
        return err_set(err, ERR_INVALID_PATH, "a path cannot hold a NUL byte");
    case ENAMETOOLONG:
        return err_set(err, ERR_INVALID_PATH, "path too long or too deep (%d bytes, %d for a name): %.*s...",
                       PATH_MAX - 1, NAME_MAX, shown, path);
    case ELOOP:
        return err_set(err, ERR_INVALID_PATH, "too many links on the way (at most %d): %.*s", WALK_LINKS_MAX, shown,
                       path);
    case ENOENT:
        return err_set(err, ERR_FILE_NOT_FOUND, "no such file or directory: %.*s", shown, path);
    case ENOTDIR:
        return err_set(err, ERR_NOT_A_DIRECTORY, "the path, or a part of it, is not a directory: %.*s", shown, path);
    case EACCES:
        return err_set(err, ERR_PERMISSION_DENIED, "permission denied: %.*s", shown, path);
    case EBUSY:
        return err_set(err, ERR_BASE_DIR_PROTECTED, "the base directory itself cannot be changed: %.*s", shown, path);
    case EAGAIN:
        return err_set(err, ERR_BUSY, "moved while it was opened, try again: %.*s", shown, path);
    default:
        return err_set_errno(err, err_from_errno(reason), reason, "cannot open %.*s", shown, path);
    }
}

static bool has_proc(void)
{
    return access("/proc/self/fd/0", F_OK) == 0 || access("/proc/self/fd", X_OK) == 0;
}

/* Keeps the configured name as well: clients use it, and it need not be the real one. */
static int name_base(struct confine *confine, const char *base_dir)
{
    confine->real = realpath(base_dir, NULL);
    if (!confine->real)
        return -1;
    if (base_dir[0] != '/')
        return 0;
    confine->configured = strdup(base_dir);
    if (!confine->configured)
        return -1;
    size_t len = strlen(confine->configured);
    while (len > 0 && confine->configured[len - 1] == '/')
        confine->configured[--len] = '\0';
    return 0;
}

/* 0, or -1 with errno where not even the base can be opened. */
static int probe_openat2(struct confine *confine)
{
    int fd = open_beneath(confine, ".", O_PATH);
    if (fd >= 0) {
        close(fd);
        confine->use_openat2 = true;
        return 0;
    }
    if (errno != ENOSYS && errno != EPERM)
        return -1;
    log_warn("confine", "openat2 is not available (%s): paths are walked component by component", strerror(errno));
    return 0;
}

struct confine *confine_new(const char *base_dir, bool force_walk, struct err *err)
{
    struct confine *confine = calloc(1, sizeof(*confine));
    if (!confine) {
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot open the base directory");
        return NULL;
    }
    struct stat found;
    confine->base_fd = open(base_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    confine->has_proc = has_proc();
    if (confine->base_fd < 0 || fstat(confine->base_fd, &found) != 0 || name_base(confine, base_dir) != 0 ||
        (!force_walk && probe_openat2(confine) != 0)) {
        err_set_errno(err, err_from_errno(errno), errno, "cannot open the base directory %s", base_dir);
        confine_free(confine);
        return NULL;
    }
    confine->dev = found.st_dev;
    confine->ino = found.st_ino;
    confine->fs = confine_fs_of(confine->base_fd);
    return confine;
}

void confine_free(struct confine *confine)
{
    if (!confine)
        return;
    if (confine->base_fd >= 0)
        close(confine->base_fd);
    confine_guards_free(confine);
    free(confine->configured);
    free(confine->real);
    free(confine);
}

const char *confine_base_dir(const struct confine *confine)
{
    return confine->real;
}

int confine_base_fd(const struct confine *confine)
{
    return confine->base_fd;
}

bool confine_uses_openat2(const struct confine *confine)
{
    return confine->use_openat2;
}

bool confine_may_use_openat2(const struct confine *confine)
{
    return confine->use_openat2 && confine->guard_count == 0;
}

/* EXDEV is also the answer to a link with an absolute target that leads inside, ELOOP also that to procfs's magic
 * links; EAGAIN comes where the machine renames so much, anywhere, that no long way with ".." is quiet for long: then
 * the walk decides. */
static bool walk_decides(int openat2_errno)
{
    return openat2_errno == EXDEV || openat2_errno == ELOOP || openat2_errno == EAGAIN;
}

/* Opens for real what an O_PATH descriptor holds. The link in /proc leads to that very inode, whatever its name means
 * by now. Without procfs the name is opened again in its directory, and must be the same inode. */
static int reopen(const struct confine *confine, const struct walk_end *end, int flags)
{
    /* O_TRUNC only once the inode is known to be the right one. */
    int open_flags = (flags & ~(O_TRUNC | O_NOFOLLOW)) | O_CLOEXEC, fd;
    if (confine->has_proc) {
        char link[64];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", end->fd);
        fd = open(link, open_flags);
    } else if (end->dir_fd >= 0) {
        fd = openat(end->dir_fd, end->name, open_flags | O_NOFOLLOW);
    } else {
        fd = openat(end->fd, ".", open_flags);
    }
    if (fd < 0)
        return -1;
    struct stat held, opened;
    bool same = fstat(end->fd, &held) == 0 && fstat(fd, &opened) == 0 && held.st_dev == opened.st_dev &&
                held.st_ino == opened.st_ino;
    if (same && (!(flags & O_TRUNC) || ftruncate(fd, 0) == 0))
        return fd;
    int reason = same ? errno : EAGAIN;
    close(fd);
    errno = reason;
    return -1;
}

static void end_close(const struct walk_end *end)
{
    int saved_errno = errno;
    if (end->fd >= 0)
        close(end->fd);
    if (end->dir_fd >= 0)
        close(end->dir_fd);
    errno = saved_errno;
}

static int open_by_walk(const struct confine *confine, const char *relative, int flags)
{
    struct walk_end end;
    if (confine_walk(confine, relative, flags & O_NOFOLLOW ? WALK_NOFOLLOW : 0, &end) != 0)
        return -1;
    struct stat found;
    int fd = -1;
    if (fstat(end.fd, &found) != 0) {
        /* errno says it */
    } else if ((flags & O_DIRECTORY) && !S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
    } else if (flags & O_PATH) {
        fd = end.fd;
        end.fd = -1;
    } else if (S_ISLNK(found.st_mode)) {
        errno = ELOOP;
    } else {
        fd = reopen(confine, &end, flags);
    }
    end_close(&end);
    return fd;
}

int confine_open(const struct confine *confine, const char *path, size_t len, int flags, struct err *err)
{
    assert(!(flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE);
    char relative[PATH_MAX];
    if (confine_relative(confine, path, len, relative) != 0)
        return path_err(err, path, len);
    int fd = -1;
    if (confine_may_use_openat2(confine)) {
        fd = open_beneath(confine, relative, flags);
        if (fd < 0 && !walk_decides(errno))
            return path_err(err, path, len);
    }
    if (fd < 0)
        fd = open_by_walk(confine, relative, flags);
    return fd >= 0 ? fd : path_err(err, path, len);
}

int confine_open_dir(const struct confine *confine, const char *path, size_t len, struct err *err)
{
    int fd = confine_open(confine, path, len, O_RDONLY | O_DIRECTORY, err);
    if (fd < 0)
        return -1;
    /* A directory that can be read but not searched is of no use as working directory or to list. */
    if (faccessat(fd, ".", F_OK, 0) == 0)
        return fd;
    path_err(err, path, len);
    close(fd);
    return -1;
}

enum confine_fs confine_fs_of(int fd)
{
    struct statfs found;
    if (fstatfs(fd, &found) != 0)
        return CONFINE_FS_KERNEL;
    switch ((unsigned long)found.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC: /* these stand below /sys */
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
        return CONFINE_FS_KERNEL;
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
        return CONFINE_FS_MEMORY;
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return CONFINE_FS_LOCAL;
    default:
        return CONFINE_FS_OTHER;
    }
}

bool confine_is_kernel_fs(int fd)
{
    return confine_fs_of(fd) == CONFINE_FS_KERNEL;
}

/* 0 where the O_PATH descriptor holds a file that may be read and written. */
static int check_regular(int fd, const char *path, size_t len, struct err *err)
{
    struct stat found;
    int shown = len > PATH_SHOWN_MAX ? PATH_SHOWN_MAX : (int)len;
    if (fstat(fd, &found) != 0)
        return path_err(err, path, len);
    if (S_ISDIR(found.st_mode))
        return err_set(err, ERR_IS_A_DIRECTORY, "a directory, not a file: %.*s", shown, path);
    if (!S_ISREG(found.st_mode) || confine_is_kernel_fs(fd))
        return err_set(err, ERR_NOT_A_REGULAR_FILE,
                       "not a regular file (a FIFO, socket, device, or a file of /proc or /sys): %.*s", shown, path);
    return 0;
}

int confine_open_file(const struct confine *confine, const char *path, size_t len, int flags, struct err *err)
{
    char relative[PATH_MAX];
    if (confine_relative(confine, path, len, relative) != 0)
        return path_err(err, path, len);
    /* O_PATH first: even a non-blocking open of a FIFO or a device is seen by whoever sits at its other end. */
    struct walk_end end = {.fd = -1, .dir_fd = -1};
    if (confine_may_use_openat2(confine) && confine->has_proc) {
        end.fd = open_beneath(confine, relative, O_PATH);
        if (end.fd < 0 && !walk_decides(errno))
            return path_err(err, path, len);
    }
    if (end.fd < 0 && confine_walk(confine, relative, 0, &end) != 0)
        return path_err(err, path, len);

    int fd = -1;
    if (check_regular(end.fd, path, len, err) == 0) {
        fd = reopen(confine, &end, flags);
        if (fd < 0)
            path_err(err, path, len);
    }
    end_close(&end);
    return fd;
}

/* The usual case of confine_parent: an ordinary last name in a directory that exists. 0: *out is filled; 1: the walk
 * must decide; -1 with errno. */
static int parent_by_openat2(const struct confine *confine, const char *relative, int flags, struct confine_entry *out)
{
    const char *slash = strrchr(relative, '/'), *name = slash ? slash + 1 : relative;
    size_t name_len = strlen(name);
    if (name_len == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 1;
    if (name_len > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - relative) : 1, slash ? relative : ".");
    int dir_fd = open_beneath(confine, dir, O_PATH | O_DIRECTORY);
    if (dir_fd < 0)
        return walk_decides(errno) || (errno == ENOENT && (flags & CONFINE_MISSING_PARENTS)) ? 1 : -1;

    struct stat found;
    int stat_errno = fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    bool is_followed = stat_errno == 0 && S_ISLNK(found.st_mode) && (flags & CONFINE_FOLLOW);
    if (is_followed || (stat_errno != 0 && stat_errno != ENOENT)) {
        close(dir_fd);
        errno = stat_errno;
        return is_followed ? 1 : -1;
    }
    out->dir_fd = dir_fd;
    memcpy(out->name, name, name_len + 1);
    out->missing[0] = '\0';
    return 0;
}

int confine_parent(const struct confine *confine, const char *path, size_t len, int flags, struct confine_entry *out,
                   struct err *err)
{
    char relative[PATH_MAX];
    if (confine_relative(confine, path, len, relative) != 0)
        return path_err(err, path, len);
    int found = confine_may_use_openat2(confine) ? parent_by_openat2(confine, relative, flags, out) : 1;
    if (found <= 0)
        return found == 0 ? 0 : path_err(err, path, len);

    struct walk_end end;
    int how = WALK_ENTRY;
    how |= flags & CONFINE_FOLLOW ? 0 : WALK_NOFOLLOW;
    how |= flags & CONFINE_MISSING_PARENTS ? WALK_MISSING_PARENTS : 0;
    if (confine_walk(confine, relative, how, &end) != 0)
        return path_err(err, path, len);
    out->dir_fd = end.dir_fd;
    memcpy(out->name, end.name, sizeof(out->name));
    memcpy(out->missing, end.missing, strlen(end.missing) + 1);
    return 0;
}

/* What the kernel adds to the name of a file that has lost it, such as one that was just replaced by rename. A file may
 * be called so, but then it has a link. */
static size_t len_without_mark(int fd, const char *path, size_t len)
{
    static const char mark[] = " (deleted)";
    size_t mark_len = sizeof(mark) - 1;
    struct stat found;
    bool is_gone = len > mark_len && memcmp(path + len - mark_len, mark, mark_len) == 0 && fstat(fd, &found) == 0 &&
                   found.st_nlink == 0;
    return is_gone ? len - mark_len : len;
}

int confine_path_of(int fd, char *out, size_t out_size, struct err *err)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, out, out_size);
    if (len < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot tell the path of an open file");
    if ((size_t)len >= out_size)
        return err_set(err, ERR_INVALID_PATH, "the real path is too long");
    out[len_without_mark(fd, out, (size_t)len)] = '\0';
    return 0;
}
