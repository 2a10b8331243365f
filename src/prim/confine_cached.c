/* What the kernel can look up below the base without waiting, for reads and writes that the loop does itself. */
#include "prim/confine_walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beyond a mount point there may be a disk, another machine or a process that answers late or never. */
enum { RESOLVE_AT_ONCE = RESOLVE_CACHED | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };

bool confine_is_in_memory(const struct confine *confine)
{
    return confine->fs == CONFINE_FS_MEMORY;
}

/* Whether an absolute path begins with the base's real name; any other takes a walk from the root to understand. */
static bool is_plainly_inside(const struct confine *confine, const char *path, size_t len)
{
    size_t base_len = strlen(confine->real);
    if (len == 0 || path[0] != '/')
        return true;
    return len > base_len && memcmp(path, confine->real, base_len) == 0 && (base_len == 1 || path[base_len] == '/');
}

/* Whether the names alone tell the real path, if none of them is a link: no empty one, "." or "..". */
static bool is_plain(const char *relative)
{
    for (const char *at = relative;; at++) {
        size_t len = strcspn(at, "/");
        if (len == 0 || (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.'))))
            return false;
        at += len;
        if (*at == '\0')
            return true;
    }
}

/* The path relative to the base, where its names tell the real one, and that. */
static int real_path(const struct confine *confine, const char *path, size_t len, char relative[PATH_MAX],
                     char out_path[PATH_MAX])
{
    if (!confine_may_use_openat2(confine) || !is_plainly_inside(confine, path, len) ||
        confine_relative(confine, path, len, relative) != 0 || !is_plain(relative))
        return -1;
    const char *base = strcmp(confine->real, "/") == 0 ? "" : confine->real;
    size_t base_len = strlen(base), relative_len = strlen(relative);
    if (base_len + 1 + relative_len >= PATH_MAX)
        return -1;
    memcpy(out_path, base, base_len);
    out_path[base_len] = '/';
    memcpy(out_path + base_len + 1, relative, relative_len + 1);
    return 0;
}

/* Twice by name rather than through /proc, whose entries the kernel makes anew for each look (measured: 20 us). */
static int open_cached(const struct confine *confine, const char *relative, struct stat *out_found)
{
    struct stat held_found;
    int held = confine_open_beneath(confine, relative, O_PATH, RESOLVE_AT_ONCE), fd = -1;
    if (held < 0)
        return -1;
    if (fstat(held, &held_found) == 0 && S_ISREG(held_found.st_mode)) /* O_NONBLOCK: does not even wait for a lease */
        fd = confine_open_beneath(confine, relative, O_RDONLY | O_NONBLOCK, RESOLVE_AT_ONCE);
    bool same = fd >= 0 && fstat(fd, out_found) == 0 && out_found->st_dev == held_found.st_dev &&
                out_found->st_ino == held_found.st_ino;
    close(held);
    if (fd >= 0 && !same) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int confine_open_cached(const struct confine *confine, const char *path, size_t len, char out_path[PATH_MAX],
                        struct stat *out_found)
{
    char relative[PATH_MAX];
    if ((confine->fs != CONFINE_FS_LOCAL && confine->fs != CONFINE_FS_MEMORY) ||
        real_path(confine, path, len, relative, out_path) != 0)
        return -1;
    return open_cached(confine, relative, out_found);
}

int confine_parent_cached(const struct confine *confine, const char *path, size_t len, struct confine_entry *out,
                          char out_dir_path[PATH_MAX])
{
    char relative[PATH_MAX];
    if (!confine_is_in_memory(confine) || real_path(confine, path, len, relative, out_dir_path) != 0)
        return -1;
    char *slash = strrchr(relative, '/'), *dir_end = strrchr(out_dir_path, '/');
    const char *name = slash ? slash + 1 : relative;
    if (strlen(name) > NAME_MAX)
        return -1;
    memcpy(out->name, name, strlen(name) + 1);
    out->missing[0] = '\0';
    dir_end[dir_end == out_dir_path] = '\0'; /* the root keeps its slash */
    if (slash)
        *slash = '\0';
    out->dir_fd = confine_open_beneath(confine, slash ? relative : ".", O_PATH | O_DIRECTORY, RESOLVE_AT_ONCE);
    return out->dir_fd >= 0 ? 0 : -1;
}
