/* Appending without a copy of the file, for file_write.c: all bytes or none. */
#include "prim/append.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* 0, or -1 with errno; *done counts what was written. */
static int write_all(int fd, const char *bytes, size_t len, size_t *done)
{
    while (*done < len) {
        ssize_t put = write(fd, bytes + *done, len - *done);
        if (put < 0 && errno != EINTR)
            return -1;
        *done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

/* Bytes that somebody else put behind ours are not ours to cut off. */
static void cut_back(int fd, off_t end, size_t done)
{
    struct stat found;
    if (done > 0 && fstat(fd, &found) == 0 && found.st_size == end + (off_t)done && ftruncate(fd, end) == 0)
        fsync(fd);
}

int append_in_place(struct replace *replace, const void *bytes, size_t len, int mode, struct stat *out_now,
                    struct err *err)
{
    int fd = replace_open_old(replace, O_WRONLY | O_APPEND, err);
    if (fd < 0)
        return -1;
    size_t done = 0;
    int failed = write_all(fd, bytes, len, &done);
    if (failed == 0 && mode >= 0)
        failed = fchmod(fd, (mode_t)mode);
    if (failed == 0)
        failed = fsync(fd);
    if (failed == 0)
        failed = fstat(fd, out_now);
    if (failed != 0) {
        int reason = errno;
        cut_back(fd, replace->old.st_size, done);
        err_set_errno(err, err_from_errno(reason), reason, "cannot append to %.100s", replace->name);
    }
    close(fd);
    return failed == 0 ? 0 : -1;
}
