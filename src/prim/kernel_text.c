/* Reading the small files in which the kernel tells numbers; called by sysinfo, metrics and cgroup_share. */
#include "prim/kernel_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 4096 };

/* A FIFO in its place must not hold up the thread. */
static int open_regular(const char *root, const char *path)
{
    char full[2 * PATH_MAX];
    struct stat found;
    int len = snprintf(full, sizeof(full), "%s%s", root, path);
    if (len < 0 || len >= (int)sizeof(full))
        return -1;
    int fd = open(full, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool read_all(int fd, struct buf *out)
{
    while (out->len + 1 < out->max) {
        size_t more = out->max - 1 - out->len < READ_BYTES ? out->max - 1 - out->len : READ_BYTES;
        if (buf_reserve(out, more + 1) != 0)
            return false;
        ssize_t len = read(fd, out->data + out->len, more);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return false;
        if (len == 0)
            break;
        out->len += (size_t)len;
    }
    return true;
}

bool kernel_text_read(const char *root, const char *path, struct buf *out)
{
    buf_reset(out);
    int fd = open_regular(root, path);
    bool read = fd >= 0 && read_all(fd, out);
    if (fd >= 0)
        close(fd);
    if (!read)
        buf_reset(out);
    if (buf_reserve(out, 1) != 0)
        return false;
    out->data[out->len] = '\0';
    return read;
}

uint64_t kernel_text_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

bool kernel_text_digits(const char **at, uint64_t *out)
{
    const char *digit = *at;
    uint64_t value = 0;
    if (*digit < '0' || *digit > '9')
        return false;
    bool over = false;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        over = over || __builtin_mul_overflow(value, 10, &value) ||
               __builtin_add_overflow(value, (uint64_t)(*digit - '0'), &value);
    *at = digit;
    *out = over ? UINT64_MAX : value;
    return true;
}

bool kernel_text_read_number(const char *root, const char *path, struct buf *scratch, uint64_t *out)
{
    if (!kernel_text_read(root, path, scratch))
        return false;
    const char *at = scratch->data;
    uint64_t value;
    if (!kernel_text_digits(&at, &value) || (*at != '\n' && *at != '\0'))
        return false;
    *out = value;
    return true;
}

bool kernel_text_value(const char *text, const char *key, uint64_t *out)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0)
            continue;
        const char *at = line + len + (line[len] == ':');
        const char *number = at + strspn(at, " \t");
        if (number > line + len && kernel_text_digits(&number, out))
            return true;
    }
    return false;
}
