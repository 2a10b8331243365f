/* Copies files, links, FIFOs and sockets one by one; see entry_copy.h. */
#include "prim/entry_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void entry_copier_deinit(struct entry_copier *copier)
{
    hard_links_deinit(&copier->links);
    file_copier_deinit(&copier->files);
}

static const char *shown(const struct entry_source *from)
{
    return from->path[0] ? from->path : from->name;
}

int entry_copy_err(struct err *err, const char *field, const struct entry_source *from, const char *doing)
{
    int reason = errno;
    err_set_errno(err, err_from_errno(reason), reason, "cannot %s %.150s", doing, shown(from));
    return err_field(err, field);
}

static int source_err(struct err *err, const struct entry_source *from)
{
    return entry_copy_err(err, "source", from, "read");
}

static int destination_err(struct err *err, const struct entry_source *from)
{
    return entry_copy_err(err, "destination", from, "make the copy of");
}

static int refuse(struct err *err, enum err_code code, const struct entry_source *from, const char *why)
{
    err_set(err, code, "%s: %.150s", why, shown(from));
    return err_field(err, "source");
}

static int changed(struct err *err, const struct entry_source *from)
{
    return refuse(err, ERR_BUSY, from, "changed while it was copied, try again");
}

int entry_copy_check(struct entry_copier *copier, const struct entry_source *from, int fd, const struct stat *found,
                     struct err *err)
{
    const struct confine_guard *guards;
    if (from->path[0] && confine_guards(copier->confine, &guards) > 0 &&
        confine_is_guarded(copier->confine, from->dir_fd, from->name, found))
        return refuse(err, ERR_PERMISSION_DENIED, from, "belongs to the server's configuration");
    /* A tree changes to another file system where one is mounted only. */
    if (copier->has_checked_dev && copier->checked_dev == found->st_dev)
        return 0;
    if (confine_is_kernel_fs(fd))
        return refuse(err, ERR_NOT_A_REGULAR_FILE, from, "files of /proc and /sys are not copied");
    copier->checked_dev = found->st_dev;
    copier->has_checked_dev = true;
    return 0;
}

static void begun(struct entry_copier *copier)
{
    if (copier->begun)
        copier->begun(copier->begun_ctx);
}

/* ---- several names of one file */

/* The directory that holds a copy made before, and its name there. Goes down step by step, as another thread may have
 * put a link in place of a directory. */
static int open_dir_of(const struct entry_copier *copier, const struct entry_source *from, const char *path,
                       const char **out_name)
{
    int start = copier->top_fd;
    size_t staged_len = copier->staged_path_len;
    if (copier->staged_fd >= 0 && strncmp(path, from->path, staged_len) == 0 && path[staged_len] == '/') {
        start = copier->staged_fd;
        path += staged_len + 1;
    }
    int fd = fcntl(start, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; fd >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        char name[NAME_MAX + 1];
        snprintf(name, sizeof name, "%.*s", (int)(slash - path), path);
        int inner = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = inner;
    }
    *out_name = path;
    return fd;
}

/* Makes `to` one more name of the copy that was made of the same file before. false: there is none, or it cannot have
 * more names. */
static bool link_to_copy(struct entry_copier *copier, const struct entry_source *from, const struct stat *found,
                         int to_dir, const char *to)
{
    const struct hard_link *link = hard_links_find(&copier->links, found->st_dev, found->st_ino);
    const char *name;
    if (!link || copier->top_fd < 0)
        return false;
    int dir_fd = open_dir_of(copier, from, hard_links_path(&copier->links, link), &name);
    if (dir_fd < 0)
        return false;
    struct stat made;
    bool linked = linkat(dir_fd, name, to_dir, to, 0) == 0;
    close(dir_fd);
    if (!linked)
        return false;
    if (fstatat(to_dir, to, &made, AT_SYMLINK_NOFOLLOW) == 0 && made.st_ino == link->copy_ino)
        return true;
    unlinkat(to_dir, to, 0); /* something else took its name */
    return false;
}

static int remember_copy(struct entry_copier *copier, const struct entry_source *from, const struct stat *found,
                         int to_dir, const char *to, struct err *err)
{
    struct stat made;
    if (found->st_nlink < 2 || copier->top_fd < 0)
        return 0;
    if (fstatat(to_dir, to, &made, AT_SYMLINK_NOFOLLOW) != 0)
        return destination_err(err, from);
    if (hard_links_add(&copier->links, found->st_dev, found->st_ino, made.st_ino, from->path) == 0)
        return 0;
    errno = ENOMEM;
    return destination_err(err, from);
}

/* ---- regular files */

static int fill(struct entry_copier *copier, const struct entry_source *from, int from_fd, int to_fd,
                const struct stat *found, struct err *err)
{
    uint64_t len;
    if (file_copy_content(&copier->files, from_fd, to_fd, found, &len) != 0)
        return errno == ENOSPC || errno == EDQUOT ? destination_err(err, from)
                                                  : entry_copy_err(err, "source", from, "copy");
    if (file_copy_attributes(from_fd, to_fd, found) != 0)
        return destination_err(err, from);
    copier->bytes += len;
    return 0;
}

static int make_file(struct entry_copier *copier, const struct entry_source *from, int from_fd,
                     const struct stat *found, int to_dir, const char *to, struct err *err)
{
    int to_fd = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to_fd < 0)
        return destination_err(err, from);
    begun(copier);
    int result = fill(copier, from, from_fd, to_fd, found, err);
    /* Some file systems say only now that the disk is full. */
    if (close(to_fd) != 0 && errno != EINTR && result == 0)
        result = destination_err(err, from);
    return result == 0 ? remember_copy(copier, from, found, to_dir, to, err) : -1;
}

static int copy_file(struct entry_copier *copier, const struct entry_source *from, int to_dir, const char *to,
                     struct err *err)
{
    /* Its type was just told; should a FIFO have taken its place, this does not wait for its other end. */
    int fd = openat(from->dir_fd, from->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? changed(err, from) : source_err(err, from);
    struct stat found;
    int result;
    if (fstat(fd, &found) != 0)
        result = source_err(err, from);
    else if (!S_ISREG(found.st_mode))
        result = changed(err, from);
    else
        result = entry_copy_check(copier, from, fd, &found, err);
    if (result == 0 && !(found.st_nlink > 1 && link_to_copy(copier, from, &found, to_dir, to)))
        result = make_file(copier, from, fd, &found, to_dir, to, err);
    copier->file_count += result == 0;
    close(fd);
    return result;
}

/* ---- links, FIFOs, sockets */

/* Owner, mode (links have none) and times of what was just made as `to`. */
static int dress(int to_dir, const char *to, const struct stat *found)
{
    char held[64];
    struct stat made;
    int fd = openat(to_dir, to, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool owned = fstat(fd, &made) == 0 && made.st_uid == found->st_uid && made.st_gid == found->st_gid;
    if (!owned)
        (void)!fchownat(fd, "", found->st_uid, found->st_gid, AT_EMPTY_PATH);
    snprintf(held, sizeof held, "/proc/self/fd/%d", fd); /* fchmod refuses O_PATH */
    if (!S_ISLNK(found->st_mode))
        (void)!chmod(held, found->st_mode & 0777);
    close(fd);
    struct timespec times[2] = {found->st_atim, found->st_mtim};
    return utimensat(to_dir, to, times, AT_SYMLINK_NOFOLLOW);
}

static int make_link(const struct entry_source *from, int to_dir, const char *to, struct err *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(from->dir_fd, from->name, target, sizeof target);
    if (len >= 0 && (size_t)len == sizeof target) {
        errno = ENAMETOOLONG;
        len = -1;
    }
    if (len < 0)
        return errno == EINVAL ? changed(err, from) : source_err(err, from); /* no link any more */
    target[len] = '\0';
    return symlinkat(target, to_dir, to) == 0 ? 0 : destination_err(err, from);
}

static int copy_other(struct entry_copier *copier, const struct entry_source *from, int to_dir, const char *to,
                      struct err *err)
{
    struct stat found;
    if (fstatat(from->dir_fd, from->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return source_err(err, from);
    if ((unsigned char)IFTODT(found.st_mode) != from->type)
        return changed(err, from);
    if (entry_copy_check(copier, from, from->dir_fd, &found, err) != 0)
        return -1;
    copier->other_count++;
    if (found.st_nlink > 1 && link_to_copy(copier, from, &found, to_dir, to))
        return 0;
    int result;
    if (S_ISLNK(found.st_mode))
        result = make_link(from, to_dir, to, err);
    else if (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode))
        result = mknodat(to_dir, to, (found.st_mode & S_IFMT) | 0600, 0) == 0 ? 0 : destination_err(err, from);
    else
        return refuse(err, ERR_NOT_A_REGULAR_FILE, from, "devices are not copied");
    if (result != 0)
        return -1;
    begun(copier);
    if (dress(to_dir, to, &found) != 0)
        return destination_err(err, from);
    return remember_copy(copier, from, &found, to_dir, to, err);
}

int entry_copy(struct entry_copier *copier, const struct entry_source *from, int to_dir, const char *to,
               struct err *err)
{
    return from->type == DT_REG ? copy_file(copier, from, to_dir, to, err) : copy_other(copier, from, to_dir, to, err);
}
