/* Reads the sorted names of a directory: for the archive walk, so that an archive of the same tree is always the same;
 * and for a clone that moves to its place. */
#include "helper/dir_names.h"

#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_BYTES_MAX = 64 * 1024 * 1024 };

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int collect(DIR *dir, struct buf *bytes, size_t *out_count)
{
    size_t count = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (buf_append(bytes, entry->d_name, strlen(entry->d_name) + 1) != 0) {
            errno = EOVERFLOW;
            return -1;
        }
        count++;
    }
    *out_count = count;
    return errno == 0 ? 0 : -1;
}

static int sort(struct dir_names *out, struct buf *bytes, size_t count)
{
    const char **names = malloc((count ? count : 1) * sizeof(*names));
    if (!names)
        return -1;
    size_t len;
    char *text = buf_steal(bytes, &len);
    const char *next = text;
    for (size_t i = 0; i < count; i++) {
        names[i] = next;
        next += strlen(next) + 1;
    }
    qsort(names, count, sizeof(*names), compare_names);
    *out = (struct dir_names){.bytes = text, .names = names, .count = count};
    return 0;
}

int dir_names_read(struct dir_names *out, int fd)
{
    /* A descriptor of its own: closedir closes it, and its position is nobody else's. */
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own >= 0 ? fdopendir(own) : NULL;
    if (!dir) {
        int saved = errno;
        if (own >= 0)
            close(own);
        errno = saved;
        return -1;
    }
    struct buf bytes;
    buf_init(&bytes, NAMES_BYTES_MAX);
    size_t count = 0;
    int result = collect(dir, &bytes, &count);
    if (result == 0)
        result = sort(out, &bytes, count);
    int saved = errno;
    closedir(dir);
    buf_deinit(&bytes);
    errno = saved;
    return result;
}

void dir_names_deinit(struct dir_names *names)
{
    free(names->names);
    free(names->bytes);
    *names = (struct dir_names){0};
}
