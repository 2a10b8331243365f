/* Walks a path component by component below the base, for confine.c: where openat2 is missing, where it met a link with
 * an absolute target, and where protected paths must be seen on the way. */
#include "prim/confine_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    const struct confine *confine;
    int how;
    /* The directories from the base down to where the walk stands. ".." goes back to the descriptor held here and never
     * asks the kernel for a parent: a directory that is moved meanwhile cannot lead out. */
    int fds[WALK_DEPTH_MAX];
    size_t name_at[WALK_DEPTH_MAX]; /* in trail: the name under which each was opened */
    size_t depth;
    char trail[PATH_MAX];
    size_t trail_len;

    char rest[PATH_MAX]; /* from `at` on: what is still to be walked */
    size_t at;
    unsigned links;

    char name[NAME_MAX + 1]; /* the component in hand */
    bool last;               /* nothing but slashes follows */
    bool slash;              /* at least one slash follows: it must be a directory */
};

static int top(const struct walk *walk)
{
    return walk->fds[walk->depth - 1];
}

static int push(struct walk *walk, int fd, const char *name)
{
    size_t len = strlen(name) + 1;
    if (walk->depth == WALK_DEPTH_MAX || len > sizeof(walk->trail) - walk->trail_len) {
        close(fd);
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(walk->trail + walk->trail_len, name, len);
    walk->name_at[walk->depth] = walk->trail_len;
    walk->trail_len += len;
    walk->fds[walk->depth++] = fd;
    return 0;
}

static void pop(struct walk *walk)
{
    int saved_errno = errno;
    walk->depth--;
    close(walk->fds[walk->depth]);
    walk->trail_len = walk->name_at[walk->depth];
    errno = saved_errno;
}

/* 1 with the next component in walk->name, 0 at the end. */
static int take_name(struct walk *walk)
{
    const char *rest = walk->rest + walk->at;
    rest += strspn(rest, "/");
    size_t len = strcspn(rest, "/");
    if (len == 0)
        return 0;
    if (len > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(walk->name, rest, len);
    walk->name[len] = '\0';
    walk->at = (size_t)(rest + len - walk->rest);
    walk->slash = rest[len] == '/';
    walk->last = rest[len + strspn(rest + len, "/")] == '\0';
    return 1;
}

/* Puts the target of the link that fd holds in place of the component in hand. */
static int splice_link(struct walk *walk, int fd)
{
    if (++walk->links > WALK_LINKS_MAX) {
        errno = ELOOP;
        return -1;
    }
    /* An empty name reads the very link that was opened. The links of procfs give their text here as any other, so they
     * lead where their text says and never "magically" to what they stand for. */
    char target[PATH_MAX], relative[PATH_MAX];
    ssize_t len = readlinkat(fd, "", target, sizeof(target));
    if (len < 0)
        return -1;
    if (len == 0 || (size_t)len == sizeof(target)) {
        errno = len == 0 ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    const char *spliced = target;
    if (target[0] == '/') {
        if (confine_relative(walk->confine, target, (size_t)len, relative) != 0)
            return -1;
        while (walk->depth > 1)
            pop(walk);
        spliced = relative;
        len = (ssize_t)strlen(relative);
    }
    size_t rest_len = strlen(walk->rest + walk->at) + 1;
    if ((size_t)len + rest_len > sizeof(walk->rest)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memmove(walk->rest + len, walk->rest + walk->at, rest_len);
    memcpy(walk->rest, spliced, (size_t)len);
    walk->at = 0;
    return 0;
}

/* "." and ".." need the right to search the directory they stand in, as for the kernel. */
static int step_dots(struct walk *walk)
{
    int fd = openat(top(walk), ".", O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -1;
    close(fd);
    if (walk->name[1] == '\0')
        return 0;
    if (walk->depth == 1) {
        errno = EXDEV;
        return -1;
    }
    pop(walk);
    return 0;
}

/* Opens the component in hand without following it. */
static int open_name(struct walk *walk)
{
    int fd = openat(top(walk), walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (walk->confine->guard_count && confine_is_guarded(walk->confine, top(walk), walk->name, NULL)) {
        errno = EACCES;
        return -1;
    }
    errno = ENOENT;
    return -1;
}

static int end_at_entry(struct walk *walk, struct walk_end *out)
{
    out->fd = -1;
    out->dir_fd = walk->fds[--walk->depth];
    snprintf(out->name, sizeof(out->name), "%s", walk->name);
    out->missing[0] = '\0';
    return 1;
}

/* The component in hand is a directory that is missing: all that follow must be plain names, to be made below the top.
 */
static int end_at_missing(struct walk *walk, struct walk_end *out)
{
    char missing[PATH_MAX];
    size_t depth = walk->depth, len = 0;
    while (!walk->last) {
        size_t name_len = strlen(walk->name);
        if (strcmp(walk->name, "..") == 0) {
            errno = ENOENT;
            return -1;
        }
        if (strcmp(walk->name, ".") != 0) {
            if (++depth > WALK_DEPTH_MAX || walk->trail_len + len + name_len + 2 > sizeof(missing)) {
                errno = ENAMETOOLONG;
                return -1;
            }
            if (len > 0)
                missing[len++] = '/';
            memcpy(missing + len, walk->name, name_len);
            len += name_len;
        }
        if (take_name(walk) < 0)
            return -1;
    }
    if (strcmp(walk->name, ".") == 0 || strcmp(walk->name, "..") == 0) {
        errno = ENOENT;
        return -1;
    }
    end_at_entry(walk, out);
    memcpy(out->missing, missing, len);
    out->missing[len] = '\0';
    return 1;
}

/* One component: 1 when *out is the end, 0 to go on. */
static int step(struct walk *walk, struct walk_end *out)
{
    if (strcmp(walk->name, ".") == 0 || strcmp(walk->name, "..") == 0)
        return step_dots(walk);

    int fd = open_name(walk);
    if (fd < 0 && errno == ENOENT && walk->last && (walk->how & WALK_ENTRY))
        return end_at_entry(walk, out);
    if (fd < 0)
        return errno == ENOENT && (walk->how & WALK_MISSING_PARENTS) ? end_at_missing(walk, out) : -1;
    struct stat found;
    if (fstat(fd, &found) != 0)
        goto fail;
    if (walk->confine->guard_count && confine_is_guarded(walk->confine, top(walk), walk->name, &found)) {
        errno = EACCES;
        goto fail;
    }
    if (S_ISLNK(found.st_mode)) {
        if (!(walk->last && (walk->how & WALK_NOFOLLOW) && (!walk->slash || (walk->how & WALK_ENTRY)))) {
            if (splice_link(walk, fd) != 0)
                goto fail;
            close(fd);
            return 0;
        }
    } else if (!S_ISDIR(found.st_mode) && (!walk->last || walk->slash)) {
        errno = ENOTDIR;
        goto fail;
    }
    if (walk->last && (walk->how & WALK_ENTRY)) {
        close(fd);
        return end_at_entry(walk, out);
    }
    if (S_ISDIR(found.st_mode))
        return push(walk, fd, walk->name);
    end_at_entry(walk, out);
    out->fd = fd;
    return 1;
fail:;
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return -1;
}

/* The path ended in a directory that the walk already stands in: after "." or "..", or an ordinary one. */
static int end_at_top(struct walk *walk, struct walk_end *out)
{
    if (!(walk->how & WALK_ENTRY)) {
        out->fd = walk->fds[--walk->depth];
        out->dir_fd = -1;
        out->name[0] = '\0';
        return 0;
    }
    if (walk->depth == 1) {
        errno = EBUSY;
        return -1;
    }
    memcpy(walk->name, walk->trail + walk->name_at[walk->depth - 1],
           strlen(walk->trail + walk->name_at[walk->depth - 1]) + 1);
    pop(walk);
    end_at_entry(walk, out);
    return 0;
}

int confine_walk(const struct confine *confine, const char *relative, int how, struct walk_end *out)
{
    struct walk walk; /* some 12 KiB: filled in by hand, not cleared */
    walk.confine = confine;
    walk.how = how;
    walk.depth = walk.trail_len = walk.at = 0;
    walk.links = 0;
    snprintf(walk.rest, sizeof(walk.rest), "%s", relative);

    int base = fcntl(confine->base_fd, F_DUPFD_CLOEXEC, 0);
    if (base < 0 || push(&walk, base, "") != 0)
        return -1;
    int result;
    do {
        result = take_name(&walk);
        if (result == 0) {
            result = end_at_top(&walk, out) == 0 ? 1 : -1;
            break;
        }
        if (result > 0)
            result = step(&walk, out);
    } while (result == 0);

    while (walk.depth > 0)
        pop(&walk);
    return result < 0 ? -1 : 0;
}
