/* Carries a file's extended attributes over to the one that replaces it; for replace.c. */
#include "prim/xattrs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_listxattrat
#define SYS_listxattrat 465 /* the same number everywhere; younger than the headers of Debian 12 */
#endif

static const char access_acl[] = "system.posix_acl_access";

static bool vouches_for_bytes(const char *name)
{
    return strcmp(name, "security.capability") == 0 || strcmp(name, "security.ima") == 0 ||
           strcmp(name, "security.evm") == 0;
}

static void copy_named(int from_fd, int to_fd, const char *names, size_t len)
{
    char *value = malloc(XATTR_SIZE_MAX);
    if (!value)
        return;
    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        ssize_t size = vouches_for_bytes(name) ? -1 : fgetxattr(from_fd, name, value, XATTR_SIZE_MAX);
        if (size >= 0)
            (void)fsetxattr(to_fd, name, value, (size_t)size, 0);
    }
    free(value);
}

/* Its directory may have given the new file one that the old one never had. */
static void drop_acl(int fd)
{
    (void)fremovexattr(fd, access_acl);
}

void xattrs_copy(int from_fd, int to_fd)
{
    drop_acl(to_fd);
    char few[1024], *names = few;
    ssize_t len = flistxattr(from_fd, few, sizeof(few));
    if (len < 0 && errno == ERANGE) {
        names = malloc(XATTR_LIST_MAX);
        len = names ? flistxattr(from_fd, names, XATTR_LIST_MAX) : -1;
    }
    if (len > 0)
        copy_named(from_fd, to_fd, names, (size_t)len);
    if (names != few)
        free(names);
}

void xattrs_copy_entry(int dir_fd, const char *name, int to_fd)
{
    /* Most files have none, and Linux 6.13 can tell so without a descriptor. */
    if (syscall(SYS_listxattrat, dir_fd, name, AT_SYMLINK_NOFOLLOW, NULL, (size_t)0) == 0) {
        drop_acl(to_fd);
        return;
    }
    int from_fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from_fd < 0)
        return;
    xattrs_copy(from_fd, to_fd);
    close(from_fd);
}
