/* Keeps checkouts from writing through links, and to the operator's protected paths. libgit2 opens a tracked file by
 * its path, also where a link stands in its place or in the place of a folder above it; callers are all operations that
 * write into the working tree. */
#include "helper/git.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool git_is_guarded(const struct git_call *call, const char *path)
{
    const struct confine_guard *unused;
    const char *root = git_repository_workdir(call->repo);
    char name[NAME_MAX + 1];
    if (!root || confine_guards(call->confine, &unused) == 0)
        return false;
    bool guarded = false;
    int dir_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (dir_fd >= 0 && *path && !guarded) {
        struct stat found;
        size_t len = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        bool exists = fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
        guarded = confine_is_guarded(call->confine, dir_fd, name, exists ? &found : NULL);
        int next = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(dir_fd);
        dir_fd = next;
        path += len + strspn(path + len, "/");
    }
    if (dir_fd >= 0)
        close(dir_fd);
    return guarded;
}

int git_refuse_guarded(const char *path, struct err *err)
{
    return err_set(err, ERR_PERMISSION_DENIED, "belongs to the server's configuration: %s", path);
}

/* Whether a folder, which may hold a protected path, would give way to what is no folder. */
static bool replaces_folder(const struct git_call *call, const char *path)
{
    const struct confine_guard *unused;
    char full[PATH_MAX];
    struct stat found;
    int len = snprintf(full, sizeof full, "%s%s", git_repository_workdir(call->repo), path);
    return confine_guards(call->confine, &unused) > 0 && len < (int)sizeof full && lstat(full, &found) == 0 &&
           S_ISDIR(found.st_mode);
}

static int check_guards(const struct git_call *call, const char *path, const git_diff_file *target)
{
    bool is_file = target && target->mode != GIT_FILEMODE_UNREADABLE && target->mode != GIT_FILEMODE_TREE &&
                   target->mode != GIT_FILEMODE_COMMIT;
    struct err err;
    if (!git_is_guarded(call, path) && !(is_file && replaces_folder(call, path)))
        return 0;
    git_refuse_guarded(path, &err);
    return git_stop(&err);
}

/* What stands in the way of a forced checkout goes, as with git itself; the link only, never what it points to. */
static int remove_link(struct git_guard *guard, const char *link)
{
    if (unlink(link) == 0 || errno == ENOENT)
        return 0;
    struct err err;
    snprintf(guard->refused, sizeof guard->refused, "%s", link);
    err_set_errno(&err, err_from_errno(errno), errno, "a symbolic link stands in the way and cannot be removed");
    return git_stop(&err);
}

static int meet_link(struct git_guard *guard, const char *link, const char *path)
{
    if (guard->force)
        return remove_link(guard, link);
    struct err err;
    snprintf(guard->refused, sizeof guard->refused, "%s", link);
    err_set(&err, ERR_WORKTREE_DIRTY, "a symbolic link stands in the way of %s", path);
    return git_stop(&err);
}

/* Looks at each name of the path: at the folders, and at the file itself unless a link is to be there. */
static int look_at(struct git_guard *guard, const char *path, bool and_itself)
{
    char full[PATH_MAX];
    int root_len = snprintf(full, sizeof full, "%s/", git_repository_workdir(guard->call->repo));
    int len = snprintf(full, sizeof full, "%s/%s", git_repository_workdir(guard->call->repo), path);
    if (len < 0 || (size_t)len >= sizeof full) {
        struct err err;
        err_set(&err, ERR_INVALID_PATH, "a path of the tree is too long");
        return git_stop(&err);
    }
    for (char *at = full + root_len; *at;) {
        at += strcspn(at, "/");
        char kept = *at;
        if (kept == '\0' && !and_itself)
            return 0;
        struct stat found;
        *at = '\0';
        int rc = lstat(full, &found);
        if (rc == 0 && S_ISLNK(found.st_mode) && (rc = meet_link(guard, full, path)) != 0)
            return rc;
        if (rc != 0 || S_ISLNK(found.st_mode))
            return 0; /* nothing is there (any more) */
        *at = kept;
        at += kept != '\0';
    }
    return 0;
}

static int on_notify(git_checkout_notify_t why, const char *path, const git_diff_file *baseline,
                     const git_diff_file *target, const git_diff_file *workdir, void *ctx)
{
    (void)baseline, (void)workdir;
    struct git_guard *guard = ctx;
    int rc;
    if (git_call_late(guard->call))
        return git_stop(NULL);
    if (!(why & (GIT_CHECKOUT_NOTIFY_UPDATED | GIT_CHECKOUT_NOTIFY_DIRTY)))
        return 0;
    /* A dirty file is left alone, unless force makes an update of it. */
    if (why == GIT_CHECKOUT_NOTIFY_DIRTY && !guard->force)
        return 0;
    if ((rc = check_guards(guard->call, path, target)) != 0)
        return rc;
    bool writes = target && target->mode != GIT_FILEMODE_UNREADABLE && target->mode != GIT_FILEMODE_LINK;
    return look_at(guard, path, writes);
}

void git_guard_checkout(struct git_guard *guard, const struct git_call *call, git_checkout_options *options)
{
    *guard = (struct git_guard){.call = call, .force = (options->checkout_strategy & GIT_CHECKOUT_FORCE) != 0};
    options->notify_flags |= GIT_CHECKOUT_NOTIFY_UPDATED | GIT_CHECKOUT_NOTIFY_DIRTY;
    options->notify_cb = on_notify;
    options->notify_payload = guard;
}
