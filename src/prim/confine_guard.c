/* Protected paths inside the base: the operator's tables and configuration, which no verb may touch (for server, at
 * start). Where there is none, nothing here costs anything. */
#include "prim/confine_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether dir_fd is the directory that the guarded name stands in. */
static bool is_dir_of(int dir_fd, const struct confine_guard *guard)
{
    struct stat dir;
    return fstat(dir_fd, &dir) == 0 && dir.st_dev == guard->dir_dev && dir.st_ino == guard->dir_ino;
}

bool confine_is_guarded(const struct confine *confine, int dir_fd, const char *name, const struct stat *found)
{
    for (size_t i = 0; i < confine->guard_count; i++) {
        const struct confine_guard *guard = &confine->guards[i];
        if (found && guard->exists && found->st_dev == guard->dev && found->st_ino == guard->ino)
            return true;
        if (strcmp(name, guard->name) == 0 && is_dir_of(dir_fd, guard))
            return true;
    }
    return false;
}

size_t confine_guards(const struct confine *confine, const struct confine_guard **out_guards)
{
    *out_guards = confine->guards;
    return confine->guard_count;
}

void confine_guard_word(const struct confine_guard *guard, char out[CONFINE_GUARD_WORD_MAX])
{
    snprintf(out, CONFINE_GUARD_WORD_MAX, "%llu:%llu:%llu:%llu:%s", (unsigned long long)guard->dev,
             (unsigned long long)guard->ino, (unsigned long long)guard->dir_dev, (unsigned long long)guard->dir_ino,
             guard->name);
}

/* Room for one more, nothing of it set; NULL out of memory. */
static struct confine_guard *grow(struct confine *confine)
{
    struct confine_guard *grown = realloc(confine->guards, (confine->guard_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    confine->guards = grown;
    return &grown[confine->guard_count];
}

int confine_guard_adopt(struct confine *confine, const char *word, struct err *err)
{
    unsigned long long dev, ino, dir_dev, dir_ino;
    int name_at = 0;
    if (sscanf(word, "%llu:%llu:%llu:%llu:%n", &dev, &ino, &dir_dev, &dir_ino, &name_at) != 4 || name_at == 0)
        return err_set(err, ERR_INVALID_REQUEST, "no word for a protected path: %s", word);
    struct confine_guard *guard = grow(confine);
    char *name = strdup(word + name_at);
    if (!guard || !name) {
        free(name);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    *guard = (struct confine_guard){.dev = dev, .dir_dev = dir_dev, .ino = ino, .dir_ino = dir_ino, .name = name};
    guard->exists = ino != 0;
    confine->guard_count++;
    return 0;
}

void confine_guards_free(struct confine *confine)
{
    for (size_t i = 0; i < confine->guard_count; i++)
        free(confine->guards[i].name);
    free(confine->guards);
}

/* Whether the directory is the base or lies below it: climbs to the root, where ".." stands still. Takes fd. */
static bool is_below(const struct confine *confine, int fd)
{
    struct stat here = {0}, before;
    do {
        before = here;
        if (fstat(fd, &here) != 0)
            break;
        if (here.st_dev == confine->dev && here.st_ino == confine->ino) {
            close(fd);
            return true;
        }
        int parent = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = parent;
    } while (fd >= 0 && (here.st_dev != before.st_dev || here.st_ino != before.st_ino));
    if (fd >= 0)
        close(fd);
    return false;
}

/* Guards the entry `name` of the directory dir if that lies in the base. 1: it does, 0: not, -1: out of memory. */
static int guard_entry(struct confine *confine, int dir_fd, const char *name)
{
    struct stat dir, found;
    int climb_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    if (climb_fd < 0 || fstat(dir_fd, &dir) != 0 || !is_below(confine, climb_fd))
        return 0;
    struct confine_guard *guard = grow(confine);
    if (!guard)
        return -1;
    guard->dir_dev = dir.st_dev;
    guard->dir_ino = dir.st_ino;
    guard->exists = fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
    guard->dev = guard->exists ? found.st_dev : 0;
    guard->ino = guard->exists ? found.st_ino : 0;
    guard->name = strdup(name);
    if (!guard->name)
        return -1;
    confine->guard_count++;
    return 1;
}

/* Splits an absolute path into its directory, opened, and the name in it; where the directory is missing as well, the
 * first missing name of the path. -1: the root itself, or unreadable. Changes path. */
static int split(char *path, const char **out_name)
{
    for (;;) {
        size_t len = strlen(path);
        while (len > 1 && path[len - 1] == '/')
            path[--len] = '\0';
        char *slash = strrchr(path, '/');
        if (!slash || len <= 1)
            return -1;
        *out_name = slash + 1;
        if (slash == path)
            return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        *slash = '\0';
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 || errno != ENOENT)
            return fd;
    }
}

/* As guard_entry, for a whole path. */
static int guard_path(struct confine *confine, const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return -1;
    const char *name;
    int dir_fd = split(copy, &name);
    int inside = dir_fd < 0 ? 0 : guard_entry(confine, dir_fd, name);
    if (dir_fd >= 0)
        close(dir_fd);
    free(copy);
    return inside;
}

int confine_protect(struct confine *confine, const char *absolute_path, bool *out_inside, struct err *err)
{
    if (absolute_path[0] != '/')
        return err_set(err, ERR_INVALID_PATH, "a protected path must be absolute: %s", absolute_path);
    /* The name that was given may be a link in the base to somewhere else, or lead into it: both ends count. */
    int inside = guard_path(confine, absolute_path);
    char *real = realpath(absolute_path, NULL);
    int real_inside = real && strcmp(real, absolute_path) != 0 ? guard_path(confine, real) : 0;
    free(real);
    struct stat found;
    bool is_base = stat(absolute_path, &found) == 0 && found.st_dev == confine->dev && found.st_ino == confine->ino;
    if (inside < 0 || real_inside < 0)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot protect %s", absolute_path);
    *out_inside = inside > 0 || real_inside > 0 || is_base;
    return 0;
}
