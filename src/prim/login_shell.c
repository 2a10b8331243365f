/* The login shell; called by bind_pty_shell, on a thread. */
#include "prim/login_shell.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOKUP_BYTES = 16 * 1024 };

/* What the database gives to users who may not log in. */
static bool is_refusal(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    return strcmp(name, "nologin") == 0 || strcmp(name, "false") == 0;
}

static bool is_shell(const char *path)
{
    struct stat found;
    return path != NULL && path[0] == '/' && strlen(path) < PATH_MAX && !is_refusal(path) && stat(path, &found) == 0 &&
           S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

static bool find_of_user(uid_t user, char out[PATH_MAX])
{
    char space[LOOKUP_BYTES];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(user, &entry, space, sizeof(space), &found) != 0 || found == NULL || !is_shell(found->pw_shell))
        return false;
    strcpy(out, found->pw_shell);
    return true;
}

void login_shell_find(const char *preferred, uid_t user, char out[PATH_MAX])
{
    if (is_shell(preferred))
        strcpy(out, preferred);
    else if (!find_of_user(user, out))
        strcpy(out, is_shell("/bin/bash") ? "/bin/bash" : "/bin/sh");
}
