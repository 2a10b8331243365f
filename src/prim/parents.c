/* Directories that are missing on the way to a target, made and taken back; for every verb with create_parents.
 * Everything acts on descriptors and follows no links, so nothing here can leave the base. */
#include "prim/parents.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void parents_lock(void)
{
    pthread_mutex_lock(&changing);
}

bool parents_try_lock(void)
{
    return pthread_mutex_trylock(&changing) == 0;
}

void parents_unlock(void)
{
    pthread_mutex_unlock(&changing);
}

/* The next name of "a/b/c" into name; false at the end. */
static bool next_name(const char **at, char name[NAME_MAX + 1])
{
    size_t len = strcspn(*at, "/");
    if (len == 0)
        return false;
    memcpy(name, *at, len);
    name[len] = '\0';
    *at += len;
    *at += **at == '/';
    return true;
}

static int step_into(int fd, const char *name)
{
    int inner = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return inner;
}

int parents_make(int dir_fd, const char *missing, size_t *out_made, struct err *err)
{
    char name[NAME_MAX + 1], done[PATH_MAX];
    const char *at = missing;
    size_t made = 0;
    int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    while (fd >= 0 && next_name(&at, name)) {
        bool exists = mkdirat(fd, name, 0777) != 0;
        if (exists && errno != EEXIST) {
            int reason = errno;
            close(fd);
            errno = reason;
            fd = -1;
            at -= strlen(name) + (at[-1] == '/');
            break;
        }
        made = exists ? 0 : made + 1; /* what was made above one that stood there is no longer ours alone */
        fd = step_into(fd, name);
    }
    if (fd >= 0) {
        *out_made = made;
        return fd;
    }
    int reason = errno;
    memcpy(done, missing, (size_t)(at - missing));
    done[at - missing] = '\0';
    parents_remove(dir_fd, done, made);
    if (reason == ELOOP || reason == ENOTDIR)
        return err_set(err, ERR_BUSY, "a directory on the way was changed meanwhile, try again: %.100s", missing);
    return err_set_errno(err, err_from_errno(reason), reason, "cannot make the directory %.100s", missing);
}

/* The directory that "a/b" names, without its last name, which goes to name. */
static int open_parent(int dir_fd, const char *path, char name[NAME_MAX + 1])
{
    char next[NAME_MAX + 1];
    int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    if (!next_name(&path, name))
        name[0] = '\0';
    while (fd >= 0 && next_name(&path, next)) {
        fd = step_into(fd, name);
        memcpy(name, next, strlen(next) + 1);
    }
    return fd;
}

void parents_remove(int dir_fd, const char *missing, size_t made)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    size_t len = strlen(missing);
    memcpy(path, missing, len + 1);
    for (; made > 0; made--) {
        while (len > 0 && path[len - 1] == '/')
            path[--len] = '\0';
        int fd = open_parent(dir_fd, path, name);
        if (fd < 0)
            return;
        bool removed = unlinkat(fd, name, AT_REMOVEDIR) == 0;
        close(fd);
        if (!removed)
            return; /* something stands in it by now */
        len -= strlen(name);
        path[len] = '\0';
    }
}
