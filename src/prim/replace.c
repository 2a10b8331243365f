/* The temporary file beside a target, what it keeps of the target, and the rename; for upload_file.c, file_write.c and
 * copies. */
#include "prim/replace.h"

#include "prim/confine.h"
#include "prim/entry.h"
#include "prim/secret.h"
#include "prim/xattrs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEMP_TRIES_MAX = 16, LATER_MAX_NS = 100 * 1000 * 1000 };
enum { AT_ONCE_OLD_MAX_BLOCKS = 1024 * 1024 / 512 }; /* giving the pages of more than 1 MiB back takes its time */

static pthread_once_t umask_once = PTHREAD_ONCE_INIT;
static mode_t process_umask = 022;

/* umask(2) can only be read by changing it, which other threads would notice. */
static void read_umask(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return;
    char line[128];
    unsigned mask;
    while (fgets(line, sizeof(line), status)) {
        if (sscanf(line, "Umask: %o", &mask) == 1)
            process_umask = (mode_t)mask & 0777;
    }
    fclose(status);
}

static int system_err(struct err *err, const char *doing, const char *name)
{
    int reason = errno;
    return err_set_errno(err, err_from_errno(reason), reason, "cannot %s %.100s", doing, name);
}

void replace_init(struct replace *r, int dir_fd, const char *name)
{
    size_t len = strlen(name);
    assert(len <= NAME_MAX);
    *r = (struct replace){.dir_fd = dir_fd, .target_fd = dir_fd, .fd = -1, .overwrite = true, .size = -1};
    memcpy(r->name, name, len + 1);
}

static int check_if_match(const struct replace *r, struct err *err)
{
    if (!r->exists)
        err_set(err, ERR_STALE_WRITE, "if_match needs a file, but there is none: %.100s", r->name);
    if (!r->exists)
        return err_field(err, "if_match");
    char etag[ENTRY_ETAG_MAX];
    entry_etag(etag, &r->old);
    size_t bare_len = strlen(etag) - 2;
    bool is_bare = strlen(r->if_match) == bare_len && memcmp(r->if_match, etag + 1, bare_len) == 0;
    if (is_bare || strcmp(r->if_match, "*") == 0 || strcmp(r->if_match, etag) == 0)
        return 0;
    err_set(err, ERR_STALE_WRITE, "%.100s was changed meanwhile; read it again (its etag is %s)", r->name, etag);
    return err_field(err, "if_match");
}

int replace_look(struct replace *r, struct err *err)
{
    r->exists = fstatat(r->target_fd, r->name, &r->old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!r->exists && errno != ENOENT)
        return system_err(err, "look at", r->name);
    if (r->exists && S_ISDIR(r->old.st_mode))
        return err_set(err, ERR_IS_A_DIRECTORY, "the target is a directory: %.100s", r->name);
    if (r->exists && S_ISLNK(r->old.st_mode)) /* links were followed already: this one came just now */
        return err_set(err, ERR_BUSY, "the target was changed meanwhile, try again: %.100s", r->name);
    if (r->exists && !S_ISREG(r->old.st_mode))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "the target is a FIFO, socket or device: %.100s", r->name);
    if (r->exists && !r->overwrite)
        return err_set(err, ERR_ALREADY_EXISTS, "%.100s exists; overwrite=true replaces it", r->name);
    if (r->exists && r->at_once && r->old.st_blocks > AT_ONCE_OLD_MAX_BLOCKS)
        return err_set(err, ERR_BUSY, "%.100s is large", r->name);
    return r->if_match ? check_if_match(r, err) : 0;
}

int replace_open(struct replace *r, struct err *err)
{
    enum confine_fs fs = r->at_once ? CONFINE_FS_MEMORY : confine_fs_of(r->dir_fd);
    if (fs == CONFINE_FS_KERNEL)
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "files of /proc and /sys are not written: %.100s", r->name);
    r->in_memory = fs == CONFINE_FS_MEMORY;
    for (int tries = 0; tries < TEMP_TRIES_MAX; tries++) {
        size_t len = (size_t)snprintf(r->temp, sizeof(r->temp), ".abx-");
        secret_random_hex(r->temp + len, 8);
        r->fd = openat(r->dir_fd, r->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (r->fd >= 0) {
            r->has_temp = true;
            return 0;
        }
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    return system_err(err, "make a file beside", r->name);
}

int replace_begin(struct replace *r, int dir_fd, const char *name, bool overwrite, struct err *err)
{
    replace_init(r, dir_fd, name);
    r->overwrite = overwrite;
    return replace_look(r, err) != 0 ? -1 : replace_open(r, err);
}

int replace_write(struct replace *r, const void *bytes, size_t len, struct err *err)
{
    const char *at = bytes;
    r->size = (r->size < 0 ? 0 : r->size) + (int64_t)len;
    while (len > 0) {
        ssize_t put = write(r->fd, at, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return system_err(err, "write", r->name);
        at += put;
        len -= (size_t)put;
    }
    return 0;
}

int replace_lock(struct replace *r, struct err *err)
{
    if (r->lock.held)
        return 0;
    return r->at_once ? file_lock_try(&r->lock, r->target_fd, r->name, err)
                      : file_lock_take(&r->lock, r->target_fd, r->name, err);
}

static int check_old(struct replace *r, int fd, struct err *err)
{
    dev_t dev = r->old.st_dev;
    ino_t ino = r->old.st_ino;
    if (fstat(fd, &r->old) != 0)
        return system_err(err, "look at", r->name);
    if (r->old.st_ino != ino || r->old.st_dev != dev)
        return err_set(err, ERR_BUSY, "the target was changed meanwhile, try again: %.100s", r->name);
    if (confine_is_kernel_fs(fd))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "files of /proc and /sys are not written: %.100s", r->name);
    return 0;
}

int replace_open_old(struct replace *r, int flags, struct err *err)
{
    int fd = openat(r->target_fd, r->name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return system_err(err, "open", r->name);
    if (check_old(r, fd, err) == 0)
        return fd;
    close(fd);
    return -1;
}

static int keep_what_was(struct replace *r, const struct stat *written, int mode, struct err *err)
{
    mode_t wanted = mode >= 0 ? (mode_t)mode : r->old.st_mode & 07777;
    if (!r->exists && mode < 0) {
        pthread_once(&umask_once, read_umask);
        wanted = 0666 & ~process_umask;
    }
    /* Owner before mode: chown drops the set-id bits. ACL before mode: it holds the mode's bits too. */
    bool same_owner = !r->exists || (written->st_uid == r->old.st_uid && written->st_gid == r->old.st_gid);
    if (!same_owner && fchown(r->fd, r->old.st_uid, r->old.st_gid) != 0)
        return err_set(err, ERR_PERMISSION_DENIED,
                       "%.100s belongs to another user or group, which the server cannot keep", r->name);
    if (r->exists)
        xattrs_copy_entry(r->target_fd, r->name, r->fd);
    return fchmod(r->fd, wanted) == 0 ? 0 : system_err(err, "set the mode of", r->name);
}

/* Two replacements within one tick of the kernel's clock can get the inode of the first file back, and with it the etag
 * of other bytes. A time further ahead than that is somebody's wish, and not followed. */
static int set_later(struct replace *r, const struct stat *written, struct err *err)
{
    const struct timespec *old = &r->old.st_mtim, *now = &written->st_mtim;
    int64_t ahead_ns = (int64_t)(old->tv_sec - now->tv_sec) * 1000000000 + old->tv_nsec - now->tv_nsec;
    if (!r->exists || ahead_ns < 0 || ahead_ns > LATER_MAX_NS)
        return 0;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *old};
    times[1].tv_nsec++;
    if (times[1].tv_nsec == 1000000000)
        times[1] = (struct timespec){old->tv_sec + 1, 0};
    return futimens(r->fd, times) == 0 ? 0 : system_err(err, "set the time of", r->name);
}

int replace_finish(struct replace *r, int mode, bool durable, struct err *err)
{
    struct stat written;
    if (fstat(r->fd, &written) != 0 || (r->size >= 0 && written.st_size != r->size))
        return err_set(err, ERR_INTERNAL, "the stored size of %.100s is not what was written", r->name);
    if (keep_what_was(r, &written, mode, err) != 0 || (r->later && set_later(r, &written, err) != 0))
        return -1;
    return !durable || r->in_memory || fsync(r->fd) == 0 ? 0 : system_err(err, "store", r->name);
}

int replace_close(struct replace *r, struct err *err)
{
    int fd = r->fd;
    r->fd = -1;
    /* Some file systems say only now that the disk is full. */
    return fd < 0 || close(fd) == 0 || errno == EINTR ? 0 : system_err(err, "store", r->name);
}

/* rename that never replaces; where the file system cannot, a second name does. */
static int rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
    if (syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (linkat(from_fd, from, to_fd, to, 0) != 0)
        return -1;
    unlinkat(from_fd, from, 0);
    return 0;
}

/* The target was looked at, and is locked. */
static int rename_locked(struct replace *r, bool *out_created, struct err *err)
{
    int failed = r->overwrite ? renameat(r->dir_fd, r->temp, r->target_fd, r->name)
                              : rename_new(r->dir_fd, r->temp, r->target_fd, r->name);
    if (failed != 0 && errno == EEXIST)
        return err_set(err, ERR_ALREADY_EXISTS, "%.100s exists; overwrite=true replaces it", r->name);
    if (failed != 0 && errno == EXDEV) /* the directories it was to stand in came from elsewhere meanwhile */
        return err_set(err, ERR_BUSY, "the target was changed meanwhile, try again: %.100s", r->name);
    if (failed != 0)
        return system_err(err, "put in place", r->name);
    r->has_temp = false;
    *out_created = !r->exists;
    if (r->fd >= 0 && fstat(r->fd, &r->now) != 0)
        r->now = (struct stat){0}; /* it is in place all the same */
    return 0;
}

int replace_rename(struct replace *r, bool *out_created, struct err *err)
{
    if (replace_lock(r, err) != 0)
        return -1;
    int result = replace_look(r, err);
    if (result == 0)
        result = rename_locked(r, out_created, err);
    file_lock_release(&r->lock);
    return result;
}

static int commit_locked(struct replace *r, int mode, bool durable, bool *out_created, struct err *err)
{
    if (replace_look(r, err) != 0 || replace_finish(r, mode, durable, err) != 0)
        return -1;
    if (!durable && replace_close(r, err) != 0)
        return -1;
    if (rename_locked(r, out_created, err) != 0)
        return -1;
    if (durable && !r->in_memory)
        replace_sync_dir(r->target_fd);
    return 0;
}

int replace_commit(struct replace *r, int mode, bool durable, bool *out_created, struct err *err)
{
    if (replace_lock(r, err) != 0)
        return -1;
    int result = commit_locked(r, mode, durable, out_created, err);
    file_lock_release(&r->lock);
    return result;
}

void replace_abort(struct replace *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    if (r->has_temp)
        unlinkat(r->dir_fd, r->temp, 0);
    r->has_temp = false;
    file_lock_release(&r->lock);
}

void replace_sync_dir(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}
