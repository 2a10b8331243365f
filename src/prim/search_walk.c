/* The walk of a search: depth first, each directory sorted, held open by its descriptor; see search_walk.h. */
#include "prim/search_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 256 };

struct walk {
    struct search_queue *queue;
    struct search_worker *self;
    const struct search_filter *filter;
    size_t relative_at; /* in path, where the start's own path ends */
    int depth;
    struct err *err;
    char path[PATH_MAX + DEPTH_MAX * (NAME_MAX + 1)];
};

/* The directory at path, opened. NULL: dir_fd is closed; *out_errno ENOMEM, or 0 where it is to be left out. */
static struct search_dir *dir_new(int dir_fd, const char *path, size_t path_len, int *out_errno)
{
    struct stat found;
    struct search_dir *dir = NULL;
    *out_errno = 0;
    if (!confine_is_kernel_fs(dir_fd) && fstat(dir_fd, &found) == 0) {
        dir = malloc(sizeof *dir + path_len + 1);
        *out_errno = dir ? 0 : ENOMEM;
    }
    if (!dir) {
        close(dir_fd);
        return NULL;
    }
    *dir = (struct search_dir){.users = 1, .fd = dir_fd, .dev = found.st_dev};
    memcpy(dir->path, path, path_len);
    dir->path[path_len] = '\0';
    if (dir_scan(dir_fd, &dir->scan) == 0 || errno != ENOMEM)
        return dir; /* what could be read of it is searched */
    *out_errno = ENOMEM;
    search_dir_drop(dir);
    return NULL;
}

static int fail(struct walk *walk, int reason)
{
    return err_set_errno(walk->err, err_from_errno(reason), reason, "cannot search");
}

static bool is_wanted(const struct walk *walk, const char *relative, size_t len, bool is_file)
{
    for (size_t i = 0; i < walk->filter->exclude_count; i++)
        if (glob_matches(walk->filter->exclude[i], relative, len))
            return false;
    return !is_file || !walk->filter->glob || glob_matches(walk->filter->glob, relative, len);
}

/* DT_REG, DT_DIR, or DT_UNKNOWN for all that is left out. */
static unsigned char kind_of(const struct search_dir *dir, const struct dir_name *name)
{
    struct stat found;
    if (name->type != DT_UNKNOWN)
        return name->type;
    if (fstatat(dir->fd, name->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return DT_UNKNOWN;
    return S_ISREG(found.st_mode) ? DT_REG : S_ISDIR(found.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* Hands the chunk over and empties it. */
static void flush(struct walk *walk, struct search_dir *dir, struct search_chunk *chunk)
{
    if (chunk->count == 0)
        return;
    chunk->dir = dir;
    atomic_fetch_add(&dir->users, 1);
    if (!search_queue_add(walk->queue, walk->self, chunk))
        search_dir_drop(dir);
    chunk->count = 0;
}

static int walk_dir(struct walk *walk, struct search_dir *dir, size_t path_len);

/* The directory `name`, whose path stands in walk->path. */
static int descend(struct walk *walk, const struct search_dir *parent, const char *name, size_t path_len)
{
    struct stat found;
    if (walk->depth == DEPTH_MAX)
        return 0;
    int fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), reason = errno;
    if (fd < 0 && reason == EACCES)
        atomic_fetch_add(&walk->queue->unreadable, 1);
    if (fd < 0)
        return reason == EMFILE || reason == ENFILE ? fail(walk, reason) : 0;
    if (fstat(fd, &found) != 0 || confine_is_guarded(walk->queue->confine, parent->fd, name, &found)) {
        close(fd);
        return 0;
    }
    struct search_dir *dir = dir_new(fd, walk->path, path_len, &reason);
    if (!dir)
        return reason == 0 ? 0 : fail(walk, reason);
    walk->depth++;
    int result = walk_dir(walk, dir, path_len);
    walk->depth--;
    search_dir_drop(dir);
    return result;
}

static int walk_entry(struct walk *walk, struct search_dir *dir, size_t dir_len, const struct dir_name *name,
                      struct search_chunk *chunk)
{
    unsigned char kind = kind_of(dir, name);
    size_t name_len = strlen(name->name), path_len = dir_len + 1 + name_len;
    if ((kind != DT_REG && kind != DT_DIR) || path_len >= sizeof walk->path)
        return 0;
    walk->path[dir_len] = '/';
    memcpy(walk->path + dir_len + 1, name->name, name_len + 1);
    if (!is_wanted(walk, walk->path + walk->relative_at, path_len - walk->relative_at, kind == DT_REG))
        return 0;
    if (kind == DT_REG)
        chunk->names[chunk->count++] = name->name;
    if (kind == DT_DIR || chunk->count == SEARCH_CHUNK_FILES)
        flush(walk, dir, chunk);
    return kind == DT_DIR ? descend(walk, dir, name->name, path_len) : 0;
}

/* path_len of walk->path is the directory's. */
static int walk_dir(struct walk *walk, struct search_dir *dir, size_t path_len)
{
    struct search_chunk chunk = {.count = 0};
    int result = 0;
    for (size_t i = 0; i < dir->scan.count && result == 0 && !search_is_over(&walk->queue->limits); i++)
        result = walk_entry(walk, dir, path_len, &dir->scan.names[i], &chunk);
    if (result == 0)
        flush(walk, dir, &chunk);
    return result;
}

int search_walk(struct search_queue *queue, struct search_worker *self, const struct search_filter *filter, int dir_fd,
                const char *path, struct err *err)
{
    int reason, result = 0;
    size_t path_len = strlen(path);
    struct walk *walk = malloc(sizeof *walk);
    if (!walk) {
        close(dir_fd);
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot search");
    }
    *walk = (struct walk){.queue = queue, .self = self, .filter = filter, .err = err};
    if (path_len == 1)
        path_len = 0; /* the root */
    memcpy(walk->path, path, path_len);
    walk->relative_at = path_len + 1;
    struct search_dir *dir = dir_new(dir_fd, path, path_len, &reason);
    if (dir) {
        result = walk_dir(walk, dir, path_len);
        search_dir_drop(dir);
    } else if (reason != 0) {
        result = fail(walk, reason);
    }
    free(walk);
    return result;
}
