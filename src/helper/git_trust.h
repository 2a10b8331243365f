/* Whose certificates count for https: those that libgit2 knows by itself (Debian's), or instead of them those that the
 * environment of the server names. */
#ifndef ABX_HELPER_GIT_TRUST_H
#define ABX_HELPER_GIT_TRUST_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>

struct git_trust {
    const char *file;   /* GIT_SSL_CAINFO or SSL_CERT_FILE; NULL: none is named */
    char dir[PATH_MAX]; /* of SSL_CERT_DIR, which may be a list, the first that is there; "": none is named */
    bool broken;        /* what is named cannot be read */
};

/* Reads the environment and tells libgit2, which reads a file at once; after git_libgit2_init, before Landlock. */
void git_trust_set_up(void);
const struct git_trust *git_trust(void);
/* ERR_GIT_NETWORK where the named ones cannot be read: nobody is trusted then, rather than somebody else. */
int git_trust_check(struct err *err) ABX_MUST_USE;

#endif
