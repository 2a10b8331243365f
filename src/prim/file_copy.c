/* Copies the bytes, holes and attributes of one file; see file_copy.h. */
#include "prim/file_copy.h"

#include "prim/xattrs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024, STEP_BYTES = 16 * 1024 * 1024, STAT_BLOCK_BYTES = 512 };

void file_copier_deinit(struct file_copier *copier)
{
    free(copier->buffer);
    copier->buffer = NULL;
}

static bool is_cancelled(const struct file_copier *copier)
{
    if (!copier->cancelled || !atomic_load_explicit(copier->cancelled, memory_order_relaxed))
        return false;
    errno = ECANCELED;
    return true;
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, bytes, len);
        if (put < 0 && errno != EINTR)
            return -1;
        if (put > 0) {
            bytes += put;
            len -= (size_t)put;
        }
    }
    return 0;
}

/* At most len bytes; answers how many, 0 at the file's end. */
static ssize_t copy_by_hand(struct file_copier *copier, int from_fd, int to_fd, size_t len)
{
    if (!copier->buffer && !(copier->buffer = malloc(BUFFER_BYTES)))
        return -1;
    ssize_t got;
    do {
        got = read(from_fd, copier->buffer, len < BUFFER_BYTES ? len : BUFFER_BYTES);
    } while (got < 0 && errno == EINTR);
    if (got > 0 && write_all(to_fd, copier->buffer, (size_t)got) != 0)
        return -1;
    return got;
}

static bool means_cannot(int reason)
{
    return reason == EXDEV || reason == EINVAL || reason == ENOSYS || reason == EOPNOTSUPP || reason == EBADF ||
           reason == EPERM || reason == ETXTBSY;
}

static ssize_t copy_step(struct file_copier *copier, int from_fd, int to_fd, size_t len)
{
    if (!copier->no_range && len > BUFFER_BYTES) {
        ssize_t done = copy_file_range(from_fd, NULL, to_fd, NULL, len, 0);
        /* 0 can be the end of the file, or a file system that does not know better (copy_file_range(2), bugs). */
        if (done > 0 || (done < 0 && !means_cannot(errno)))
            return done;
        copier->no_range = done < 0;
    }
    return copy_by_hand(copier, from_fd, to_fd, len);
}

/* Up to len bytes from where both descriptors stand; *out_done grows. */
static int copy_span(struct file_copier *copier, int from_fd, int to_fd, uint64_t len, uint64_t *out_done)
{
    while (len > 0) {
        ssize_t done = copy_step(copier, from_fd, to_fd, len < STEP_BYTES ? (size_t)len : STEP_BYTES);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 || is_cancelled(copier))
            return -1;
        if (done == 0)
            return 0;
        len -= (uint64_t)done;
        *out_done += (uint64_t)done;
    }
    return 0;
}

/* Data by data; a hole at the end is made by the length alone. */
static int copy_sparse(struct file_copier *copier, int from_fd, int to_fd, off_t size)
{
    off_t data = 0;
    uint64_t done = 0;
    while ((data = lseek(from_fd, data, SEEK_DATA)) >= 0 && data < size) {
        off_t hole = lseek(from_fd, data, SEEK_HOLE);
        if (hole < 0 || lseek(from_fd, data, SEEK_SET) < 0 || lseek(to_fd, data, SEEK_SET) < 0 ||
            copy_span(copier, from_fd, to_fd, (uint64_t)(hole - data), &done) != 0)
            return -1;
        data = hole;
    }
    if (data < 0 && errno != ENXIO) /* which says: no more data */
        return -1;
    return ftruncate(to_fd, size);
}

static bool clone(struct file_copier *copier, int from_fd, int to_fd)
{
    if (copier->no_clone)
        return false;
    if (ioctl(to_fd, FICLONE, from_fd) == 0)
        return true;
    copier->no_clone = errno != ENOSPC && errno != EDQUOT;
    return false;
}

int file_copy_content(struct file_copier *copier, int from_fd, int to_fd, const struct stat *found, uint64_t *out_len)
{
    if (is_cancelled(copier))
        return -1;
    *out_len = (uint64_t)found->st_size;
    if (found->st_size > 0 && clone(copier, from_fd, to_fd))
        return 0;
    if (found->st_blocks < found->st_size / STAT_BLOCK_BYTES) {
        if (copy_sparse(copier, from_fd, to_fd, found->st_size) == 0)
            return 0;
        if (errno != EINVAL) /* no SEEK_DATA here */
            return -1;
        if (lseek(from_fd, 0, SEEK_SET) < 0 || lseek(to_fd, 0, SEEK_SET) < 0)
            return -1;
    }
    /* What is appended meanwhile is left out, so that the copy of a growing file ends. */
    *out_len = 0;
    return copy_span(copier, from_fd, to_fd, (uint64_t)found->st_size, out_len);
}

/* Whether owner and group are the source's now. */
static bool take_owner(int to_fd, const struct stat *found)
{
    struct stat made;
    if (fstat(to_fd, &made) == 0 && made.st_uid == found->st_uid && made.st_gid == found->st_gid)
        return true;
    if (fchown(to_fd, found->st_uid, found->st_gid) == 0)
        return true;
    (void)!fchown(to_fd, (uid_t)-1, found->st_gid);
    return false;
}

int file_copy_attributes(int from_fd, int to_fd, const struct stat *found)
{
    /* Owner before mode: chown drops the set-id bits. ACLs before mode: they hold its bits too. */
    mode_t mode = found->st_mode & 07777;
    if (!take_owner(to_fd, found))
        mode &= ~(mode_t)(S_ISUID | S_ISGID);
    if (S_ISDIR(found->st_mode))
        (void)fremovexattr(to_fd, "system.posix_acl_default"); /* of the directory that the copy stands in */
    xattrs_copy(from_fd, to_fd);
    struct timespec times[2] = {found->st_atim, found->st_mtim};
    if (fchmod(to_fd, mode) != 0 && errno != EPERM && errno != EOPNOTSUPP)
        return -1;
    return futimens(to_fd, times);
}
