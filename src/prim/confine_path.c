/* Turns absolute paths into paths relative to the base, for confine.c and confine_walk.c. Comparing text here only
 * chooses where to start: what remains is confined by the kernel all the same. */
#include "prim/confine_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The part of path after the base's name, or NULL. /srv/share must not fit /srv/share-secret. */
static const char *after_name(const char *path, const char *base)
{
    size_t len = strlen(base);
    if (strncmp(path, base, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return NULL;
    return path + len;
}

/* The base under another name (a bind mount, a link on the way, doubled slashes): the part of path after its shortest
 * prefix that is the base, or NULL. Looks, opens nothing for reading. */
static const char *after_identity(const struct confine *confine, const char *path)
{
    int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        struct stat found;
        bool same = fstat(at, &found) == 0 && found.st_dev == confine->dev && found.st_ino == confine->ino;
        path += strspn(path, "/");
        size_t len = strcspn(path, "/");
        if (same || len == 0 || len > NAME_MAX) {
            close(at);
            return same ? path : NULL;
        }
        char name[NAME_MAX + 1];
        memcpy(name, path, len);
        name[len] = '\0';
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
        path += len;
    }
    return NULL;
}

int confine_relative(const struct confine *confine, const char *path, size_t len, char out[PATH_MAX])
{
    if (len >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (memchr(path, '\0', len)) {
        errno = EINVAL;
        return -1;
    }
    char text[PATH_MAX];
    memcpy(text, path, len);
    text[len] = '\0';

    const char *rest = text;
    if (text[0] == '/') {
        rest = confine->configured ? after_name(text, confine->configured) : NULL;
        if (!rest)
            rest = after_name(text, strcmp(confine->real, "/") == 0 ? "" : confine->real);
        if (!rest)
            rest = after_identity(confine, text);
        if (!rest) {
            errno = EXDEV;
            return -1;
        }
        rest += strspn(rest, "/");
    }
    snprintf(out, PATH_MAX, "%s", *rest ? rest : ".");
    return 0;
}
