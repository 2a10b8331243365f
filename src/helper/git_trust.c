/* Tells libgit2 which certificates the operator trusts, in the variables that git and OpenSSL read; see the header. */
#include "helper/git_trust.h"

#include <git2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct git_trust trust;

static const char *named(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* The first directory of a list; libgit2 takes one. Where none is there, the first counts, and is refused. */
static void choose_dir(const char *list)
{
    struct stat found;
    for (const char *at = list; *at; at += strcspn(at, ":"), at += *at == ':') {
        char dir[PATH_MAX];
        int len = snprintf(dir, sizeof(dir), "%.*s", (int)strcspn(at, ":"), at);
        if (len <= 0 || (size_t)len >= sizeof(dir))
            continue;
        bool is_there = dir[0] == '/' && stat(dir, &found) == 0 && S_ISDIR(found.st_mode);
        if (is_there || !trust.dir[0])
            memcpy(trust.dir, dir, (size_t)len + 1);
        if (is_there)
            return;
    }
}

void git_trust_set_up(void)
{
    const char *dirs = named("SSL_CERT_DIR");
    trust = (struct git_trust){.file = named("GIT_SSL_CAINFO")};
    if (!trust.file)
        trust.file = named("SSL_CERT_FILE");
    if (dirs)
        choose_dir(dirs);
    const char *dir = trust.dir[0] ? trust.dir : NULL;
    /* Relative ones would begin where this process stands: in the base, where clients write. */
    if ((trust.file && trust.file[0] != '/') || (dir && dir[0] != '/'))
        trust.broken = true;
    else if (trust.file || dir)
        trust.broken = git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, trust.file, dir) != 0;
    git_error_clear();
}

const struct git_trust *git_trust(void)
{
    return &trust;
}

int git_trust_check(struct err *err)
{
    if (!trust.broken)
        return 0;
    return err_set(err, ERR_GIT_NETWORK, "the trusted certificates cannot be read: %.150s",
                   trust.file ? trust.file : trust.dir);
}
