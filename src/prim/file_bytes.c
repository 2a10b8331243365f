/* Reads open files for file_read.c, file_lines.c and file_stat.c. */
#include "prim/file_bytes.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int file_bytes_read_at(int fd, void *bytes, size_t len, uint64_t offset, size_t *out_len, struct err *err)
{
    size_t have = 0;
    while (have < len) {
        ssize_t got = pread(fd, (char *)bytes + have, len - have, (off_t)(offset + have));
        if (got == 0)
            break;
        if (got > 0)
            have += (size_t)got;
        else if (errno != EINTR)
            return err_set_errno(err, err_from_errno(errno), errno, "cannot read the file");
    }
    *out_len = have;
    return 0;
}

int file_bytes_read_cached(int fd, void *bytes, size_t len, uint64_t offset, size_t *out_len)
{
    struct iovec vector = {.iov_base = bytes, .iov_len = len};
    ssize_t got = preadv2(fd, &vector, 1, (off_t)offset, RWF_NOWAIT);
    *out_len = got > 0 ? (size_t)got : 0;
    return got < 0 ? -1 : 0;
}

/* Bytes that the disk holds, or a hole, which reads as NUL. */
struct extent {
    uint64_t end; /* where it ends; not past `at` where the file ends there */
    bool is_hole;
};

static struct extent extent_at(int fd, uint64_t at, uint64_t size)
{
    off_t data = lseek(fd, (off_t)at, SEEK_DATA);
    if (data > (off_t)at)
        return (struct extent){.end = (uint64_t)data, .is_hole = true};
    if (data < 0 && errno == ENXIO) /* a hole up to the file's end, or the end itself */
        return (struct extent){.end = (uint64_t)lseek(fd, 0, SEEK_END), .is_hole = true};
    off_t hole = data < 0 ? -1 : lseek(fd, (off_t)at, SEEK_HOLE);
    return (struct extent){.end = hole > (off_t)at ? (uint64_t)hole : size};
}

/* Holes are not read: the kernel would fill its cache with pages of NUL. */
static int take_block(int fd, char *block, size_t want, uint64_t at, bool is_hole, size_t *out_len, struct err *err)
{
    if (!is_hole)
        return file_bytes_read_at(fd, block, want, at, out_len, err);
    memset(block, 0, want);
    *out_len = want;
    return 0;
}

static int each_block(int fd, uint64_t size, const atomic_bool *cancelled, file_block_fn on_block, void *ctx,
                      char *block, struct err *err)
{
    struct extent extent = {0};
    size_t want = 0, len = 0;
    for (uint64_t at = 0; at < size && len == want; at += len) {
        if (atomic_load(cancelled))
            return err_set(err, ERR_INTERNAL, "cancelled");
        if (at >= extent.end)
            extent = extent_at(fd, at, size);
        uint64_t end = extent.end < size ? extent.end : size;
        if (end <= at)
            break;
        want = end - at < FILE_BLOCK_BYTES ? (size_t)(end - at) : FILE_BLOCK_BYTES;
        if (take_block(fd, block, want, at, extent.is_hole, &len, err) != 0 ||
            (len > 0 && on_block(ctx, block, len, err) != 0))
            return -1;
    }
    return 0;
}

int file_bytes_each(int fd, uint64_t size, const atomic_bool *cancelled, file_block_fn on_block, void *ctx,
                    struct err *err)
{
    char *block = malloc(FILE_BLOCK_BYTES);
    if (!block)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot read the file");
    int result = each_block(fd, size, cancelled, on_block, ctx, block, err);
    free(block);
    return result;
}

bool file_bytes_are_text(const char *bytes, size_t len)
{
    return len == 0 || (!memchr(bytes, '\0', len) && utf8_valid(bytes, len));
}
