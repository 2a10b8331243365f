/* Which remotes git may talk to: http and https, and repositories inside the base; for the operations on remotes. */
#ifndef ABX_HELPER_GIT_URL_H
#define ABX_HELPER_GIT_URL_H

#include "helper/git.h"

#include <limits.h>
#include <stdbool.h>

/* Who is talked to: credentials belong to exactly one of these. */
struct git_origin {
    bool https;
    char host[256]; /* in lower case, IPv6 without brackets */
    unsigned port;
};

struct git_url {
    bool is_path;
    char text[PATH_MAX];      /* for libgit2 and for the configuration: the URL, or the real absolute path */
    struct git_origin origin; /* unless is_path */
};

/* Scheme, host and port of an http(s) URL; -1 for all else, and for one with a user or password in it. */
int git_origin_of(const char *url, struct git_origin *out) ABX_MUST_USE;
bool git_origin_equal(const struct git_origin *a, const struct git_origin *b);

/* Checks what a client or a repository's configuration gives. Relative paths begin at relative_to (absolute).
 * ERR_URL_NOT_ALLOWED for other schemes and for credentials in the URL, ERR_PATH_OUTSIDE_BASE,
 * ERR_REPOSITORY_NOT_FOUND; `field` is named by the error. With must_exist a path is checked to be a repository. */
int git_url_read(const struct git_call *call, const char *field, const char *text, const char *relative_to,
                 bool must_exist, struct git_url *out, struct err *err) ABX_MUST_USE;

/* Writes a stored URL without the user and the password that may be in it; NULL is null. */
void git_url_out(struct json_out *out, const char *name, const char *url);

#endif
