/* Writes one uploaded file beside its target and puts it in place; upload.c says when. Everything acts on the
 * directory's descriptor, so nothing here can leave it. */
#include "prim/upload_file.h"

#include "prim/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { TEMP_TRIES_MAX = 16 };

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

/* 0 where a file may take this name; *out_exists and *out_found tell what it would replace. */
static int check_target(int dir_fd, const char *name, bool overwrite, bool *out_exists, struct stat *out_found,
                        struct err *err)
{
    if (fstatat(dir_fd, name, out_found, AT_SYMLINK_NOFOLLOW) != 0) {
        *out_exists = false;
        return errno == ENOENT ? 0 : system_err(err, "look at", name);
    }
    *out_exists = true;
    if (S_ISDIR(out_found->st_mode))
        return err_set(err, ERR_IS_A_DIRECTORY, "the target is a directory: %.100s", name);
    if (S_ISLNK(out_found->st_mode)) /* links were followed already: this one came just now */
        return err_set(err, ERR_BUSY, "the target was changed meanwhile, try again: %.100s", name);
    if (!S_ISREG(out_found->st_mode))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "the target is a FIFO, socket or device: %.100s", name);
    if (!overwrite)
        return err_set(err, ERR_ALREADY_EXISTS, "%.100s exists; overwrite=true replaces it", name);
    return 0;
}

static int open_temp(struct upload_pending *file, struct upload_writer *writer, int dir_fd, struct err *err)
{
    for (int tries = 0; tries < TEMP_TRIES_MAX; tries++) {
        size_t len = (size_t)snprintf(file->temp, sizeof(file->temp), ".abx-upload-");
        secret_random_hex(file->temp + len, 8);
        writer->fd = openat(dir_fd, file->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (writer->fd >= 0) {
            file->has_temp = true;
            return 0;
        }
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    return system_err(err, "make a file beside", file->name);
}

int upload_file_begin(struct upload_pending *file, struct upload_writer *writer, int dir_fd, const char *name,
                      bool overwrite, struct err *err)
{
    struct statfs fs;
    if (fstatfs(dir_fd, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "files of /proc and /sys are not written: %.100s", name);
    file->name = strdup(name);
    if (!file->name)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot take %.100s", name);
    file->overwrite = overwrite;
    sha256_init(&writer->hash);
    if (check_target(dir_fd, name, overwrite, &file->replaces, &file->replaced, err) != 0)
        return -1;
    return open_temp(file, writer, dir_fd, err);
}

int upload_file_write(struct upload_pending *file, struct upload_writer *writer, const char *bytes, size_t len,
                      struct err *err)
{
    sha256_update(&writer->hash, len, (const uint8_t *)bytes);
    file->size += len;
    while (len > 0) {
        ssize_t put = write(writer->fd, bytes, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return system_err(err, "write", file->name);
        bytes += put;
        len -= (size_t)put;
    }
    return 0;
}

/* What it replaces keeps owner and mode, as far as the server may give them. */
static int set_mode(const struct upload_pending *file, int fd, int mode)
{
    if (!file->replaces) {
        pthread_once(&umask_once, read_umask);
        return fchmod(fd, mode >= 0 ? (mode_t)mode : 0666 & ~process_umask);
    }
    mode_t wanted = mode >= 0 ? (mode_t)mode : file->replaced.st_mode & 07777;
    /* Owner before mode: chown drops the set-id bits. Where the owner stays ours, they must not come along. */
    if (fchown(fd, file->replaced.st_uid, file->replaced.st_gid) != 0 && mode < 0)
        wanted &= ~(mode_t)(S_ISUID | S_ISGID);
    return fchmod(fd, wanted);
}

int upload_file_end(struct upload_pending *file, struct upload_writer *writer, int mode, struct err *err)
{
    sha256_hex(&writer->hash, file->sha256);
    struct stat written;
    int result = -1;
    if (set_mode(file, writer->fd, mode) != 0)
        system_err(err, "set the mode of", file->name);
    else if (fsync(writer->fd) != 0)
        system_err(err, "store", file->name);
    else if (fstat(writer->fd, &written) != 0 || (uint64_t)written.st_size != file->size)
        err_set(err, ERR_INTERNAL, "the stored size of %.100s is not what was written", file->name);
    else
        result = 0;
    /* Some file systems say only now that the disk is full. */
    if (close(writer->fd) != 0 && errno != EINTR && result == 0)
        result = system_err(err, "store", file->name);
    writer->fd = -1;
    return result;
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

int upload_file_rename(struct upload_pending *file, int dir_fd, int target_fd, bool *out_created, struct err *err)
{
    struct stat found;
    bool exists;
    if (check_target(target_fd, file->name, file->overwrite, &exists, &found, err) != 0)
        return -1;
    int failed = file->overwrite ? renameat(dir_fd, file->temp, target_fd, file->name)
                                 : rename_new(dir_fd, file->temp, target_fd, file->name);
    if (failed != 0 && errno == EEXIST)
        return err_set(err, ERR_ALREADY_EXISTS, "%.100s exists; overwrite=true replaces it", file->name);
    if (failed != 0 && errno == EXDEV) /* the directories it was to make came from elsewhere meanwhile */
        return err_set(err, ERR_BUSY, "the target was changed meanwhile, try again: %.100s", file->name);
    if (failed != 0)
        return system_err(err, "put in place", file->name);
    file->has_temp = false;
    *out_created = !exists;
    return 0;
}

void upload_file_discard(struct upload_pending *file, int dir_fd)
{
    if (file->has_temp)
        unlinkat(dir_fd, file->temp, 0);
    file->has_temp = false;
}
