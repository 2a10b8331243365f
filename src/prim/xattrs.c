/* Carries a file's extended attributes over to the one that replaces it; for replace.c. */
#include "prim/xattrs.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

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

void xattrs_copy(int from_fd, int to_fd)
{
    /* Its directory may have given the new file an ACL that the old one never had. */
    (void)fremovexattr(to_fd, access_acl);
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
