/* What the files confine*.c share and nobody else includes: the base itself, and how a path is walked where openat2
 * cannot answer. Functions here answer -1 with errno; confine.c makes the client's words of it. */
#ifndef ABX_PRIM_CONFINE_WALK_H
#define ABX_PRIM_CONFINE_WALK_H

#include "prim/confine.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct confine {
    int base_fd; /* O_PATH */
    dev_t dev;
    ino_t ino;
    char *configured; /* the base's name as configured, without slashes at its end ("" for the root); NULL: relative */
    char *real;
    bool use_openat2;
    enum confine_fs fs;
    bool has_proc; /* /proc/self/fd works: a held O_PATH descriptor can be opened for real */
    struct confine_guard *guards;
    size_t guard_count;
};

/* Turns a client's path, or the target of an absolute link, into one relative to the base ("." for the base itself).
 * EXDEV: it is absolute and does not lead through the base. ENAMETOOLONG, EINVAL (NUL inside). */
int confine_relative(const struct confine *confine, const char *path, size_t len, char out[PATH_MAX]) ABX_MUST_USE;

/* openat2 beneath the base, without magic links; resolve: RESOLVE_* besides. */
int confine_open_beneath(const struct confine *confine, const char *relative, int flags, uint64_t resolve) ABX_MUST_USE;
/* Protected paths are seen only by the walk, which knows each directory it goes through. */
bool confine_may_use_openat2(const struct confine *confine);

enum {
    WALK_NOFOLLOW = 1,        /* a final link is the result */
    WALK_ENTRY = 2,           /* find directory and name; the entry itself need not exist */
    WALK_MISSING_PARENTS = 4, /* with WALK_ENTRY: end where a directory on the way is missing */
};
enum { WALK_LINKS_MAX = 40, WALK_DEPTH_MAX = 256 };

struct walk_end {
    int fd;                  /* O_PATH; -1 with WALK_ENTRY */
    int dir_fd;              /* -1 without WALK_ENTRY where the end is a directory */
    char name[NAME_MAX + 1]; /* in dir_fd */
    char missing[PATH_MAX];  /* with WALK_ENTRY: the directories between, as in confine_entry */
};

/* Component by component from the base, each opened without following. EXDEV: it leads outside. ELOOP: too many links.
 * EBUSY: WALK_ENTRY of the base itself. EACCES: also for protected paths. Both descriptors are the caller's. */
int confine_walk(const struct confine *confine, const char *relative, int how, struct walk_end *out) ABX_MUST_USE;

void confine_guards_free(struct confine *confine);

#endif
