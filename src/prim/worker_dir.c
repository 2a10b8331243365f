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
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_DEPTH_MAX = 256 };

static int make_below(struct worker_dir *dir, const char *parent)
{
    char inner[PATH_MAX + 8];
    int len = snprintf(dir->path, sizeof(dir->path), "%s/abxd-XXXXXX", parent);
    if (len >= (int)sizeof(dir->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (mkdtemp(dir->path) == NULL)
        return -1;
    snprintf(inner, sizeof(inner), "%s/home", dir->path);
    int failed = mkdir(inner, 0700);
    snprintf(inner, sizeof(inner), "%s/tmp", dir->path);
    if (failed == 0 && mkdir(inner, 0700) == 0)
        return 0;
    int saved = errno;
    snprintf(inner, sizeof(inner), "%s/home", dir->path);
    rmdir(inner);
    rmdir(dir->path);
    errno = saved;
    return -1;
}

int worker_dir_make(struct worker_dir *dir, const char *parent, struct err *err)
{
    if (parent != NULL && parent[0] == '/' && make_below(dir, parent) == 0)
        return 0;
    if (make_below(dir, "/tmp") == 0)
        return 0;
    dir->path[0] = '\0';
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
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
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
    dir->path[0] = '\0';
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
