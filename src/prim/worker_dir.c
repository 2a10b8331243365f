/* Private directories of workers: made, put into an environment, and removed; see the header. */
#include "prim/worker_dir.h"

#include "base/log.h"
#include "prim/tree_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "abxd-worker-"

enum { OPEN_DEPTH_MAX = 256, MAKE_TRIES_MAX = 3 };

/* Locks a directory that is ours alone (a parent may give it S_ISGID). -1: it is not, or somebody else holds it, or it
 * was removed meanwhile. */
static int hold(int parent_fd, const char *name)
{
    struct stat held, named;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 && held.st_uid == geteuid() &&
        (held.st_mode & (07777 & ~S_ISGID)) == 0700 && fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_dev == held.st_dev && named.st_ino == held.st_ino)
        return fd;
    close(fd);
    return -1;
}

static int make_outer(struct worker_dir *dir, const char *parent)
{
    for (int tries = 1;; tries++) {
        int len = snprintf(dir->path, sizeof(dir->path), "%s/" PREFIX "XXXXXX", parent);
        if (len >= (int)sizeof(dir->path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (mkdtemp(dir->path) == NULL)
            return -1;
        dir->held_fd = hold(AT_FDCWD, dir->path);
        if (dir->held_fd >= 0 || tries == MAKE_TRIES_MAX)
            return 0;
        rmdir(dir->path); /* the sweep of another server had it first */
    }
}

static void let_go(struct worker_dir *dir)
{
    dir->path[0] = '\0';
    if (dir->held_fd >= 0)
        close(dir->held_fd);
    dir->held_fd = -1;
}

static int make_below(struct worker_dir *dir, const char *parent)
{
    if (make_outer(dir, parent) != 0)
        return -1;
    int fd = open(dir->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && mkdirat(fd, "home", 0700) == 0 && mkdirat(fd, "tmp", 0700) == 0) {
        close(fd);
        return 0;
    }
    int saved = errno;
    if (fd >= 0) {
        unlinkat(fd, "home", AT_REMOVEDIR);
        close(fd);
    }
    rmdir(dir->path);
    let_go(dir);
    errno = saved;
    return -1;
}

int worker_dir_make(struct worker_dir *dir, const char *parent, struct err *err)
{
    if (parent != NULL && parent[0] == '/' && make_below(dir, parent) == 0)
        return 0;
    if (make_below(dir, "/tmp") == 0)
        return 0;
    *dir = (struct worker_dir){.held_fd = -1};
    /* Of the server's own directory: no permission is what a client may have in mind then. */
    enum err_code code = err_from_errno(errno) == ERR_NO_SPACE ? ERR_NO_SPACE : ERR_UNAVAILABLE;
    return err_set_errno(err, code, errno, "cannot make a private directory in /tmp, nor where TMPDIR says");
}

/* Lets us into all directories below, which a program may have closed even to its owner. Links are not followed: who is
 * swapped for one meanwhile keeps its mode. */
static void open_up(int parent_fd, const char *name, int depth)
{
    char self[64];
    int fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd); /* fchmod refuses O_PATH */
    chmod(self, 0700);
    int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    DIR *list = readable >= 0 ? fdopendir(readable) : NULL;
    if (list == NULL) {
        if (readable >= 0)
            close(readable);
        return;
    }
    for (struct dirent *entry; depth < OPEN_DEPTH_MAX && (entry = readdir(list)) != NULL;)
        if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0)
            open_up(dirfd(list), entry->d_name, depth + 1);
    closedir(list);
}

void worker_dir_remove(struct worker_dir *dir, const struct confine *confine)
{
    uint64_t removed = 0;
    struct err err;
    atomic_bool cancelled = false;
    if (dir->path[0] == '\0')
        return;
    const char *name = strrchr(dir->path, '/') + 1;
    char parent[PATH_MAX];
    snprintf(parent, sizeof(parent), "%.*s/", (int)(name - 1 - dir->path), dir->path);
    int parent_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int failed = parent_fd < 0 ? err_set_errno(&err, ERR_INTERNAL, errno, "cannot open its parent") : 0;
    if (failed == 0)
        failed = tree_remove_at(confine, parent_fd, name, true, &cancelled, &removed, &err);
    if (failed != 0 && parent_fd >= 0 && err.code == ERR_PERMISSION_DENIED) {
        open_up(parent_fd, name, 0);
        failed = tree_remove_at(confine, parent_fd, name, true, &cancelled, &removed, &err);
    }
    if (failed != 0 && err.code != ERR_FILE_NOT_FOUND)
        log_warn("worker", "the private directory %s stays: %s", dir->path, err.text);
    if (parent_fd >= 0)
        close(parent_fd);
    let_go(dir);
}

void worker_dir_sweep(const char *parent, const struct confine *confine)
{
    DIR *list = opendir(parent);
    if (list == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        struct worker_dir dir;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            snprintf(dir.path, sizeof(dir.path), "%s/%s", parent, entry->d_name) >= (int)sizeof(dir.path))
            continue;
        dir.held_fd = hold(dirfd(list), entry->d_name);
        if (dir.held_fd >= 0)
            worker_dir_remove(&dir, confine);
    }
    closedir(list);
}

static bool is_plain_name(const char *name, size_t len)
{
    return len > 0 && len <= NAME_MAX && strnlen(name, len) == len && memchr(name, '/', len) == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* A FIFO would keep us waiting without O_NONBLOCK. */
static int open_told(int dir_fd, const char *name, uint64_t size, struct stat *found, struct err *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "the file %.100s cannot be opened", name);
    if (fstat(fd, found) == 0 && S_ISREG(found->st_mode) && found->st_uid == geteuid() && found->st_nlink == 1 &&
        (uint64_t)found->st_size == size)
        return fd;
    close(fd);
    return err_set(err, ERR_INTERNAL, "the file %.100s is not what was told of it", name);
}

int worker_dir_take(const struct worker_dir *dir, const char *name, size_t name_len, uint64_t size,
                    struct stat *out_found, struct err *err)
{
    char tmp[PATH_MAX + 8];
    struct stat found;
    if (!is_plain_name(name, name_len))
        return err_set(err, ERR_INTERNAL, "a file without a plain name");
    bool held = dir->held_fd >= 0; /* else the path is absolute, and the descriptor does not matter */
    snprintf(tmp, sizeof(tmp), "%s%stmp", held ? "" : dir->path, held ? "" : "/");
    int dir_fd = openat(dir->held_fd, tmp, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "its directory cannot be opened");
    int fd = open_told(dir_fd, name, size, &found, err);
    if (fd >= 0)
        unlinkat(dir_fd, name, 0);
    close(dir_fd);
    if (fd >= 0)
        *out_found = found;
    return fd;
}

int worker_dir_env(const struct worker_dir *dir, const struct env_block *from, struct env_block *out)
{
    static const char *const inner[] = {"HOME", "/home", "TMPDIR", "/tmp"};
    char **kept = malloc((from->count + 1) * sizeof(*kept));
    size_t count = 0;
    env_block_init(out);
    if (kept == NULL)
        return -1;
    for (size_t i = 0; i < from->count; i++)
        if (strncmp(from->vars[i], "XDG_", strlen("XDG_")) != 0)
            kept[count++] = from->vars[i];
    kept[count] = NULL;
    int failed = env_block_inherit(out, kept);
    free(kept);
    for (size_t i = 0; i < 4 && failed == 0; i += 2) {
        char path[PATH_MAX + 8];
        snprintf(path, sizeof(path), "%s%s", dir->path, inner[i + 1]);
        failed = env_block_set(out, inner[i], path);
    }
    return failed;
}
