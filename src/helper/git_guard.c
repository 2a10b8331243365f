/* Keeps checkouts from writing through links, and to the operator's protected paths. libgit2 opens a tracked file by
 * its path, also where a link stands in its place or in the place of a folder above it; callers are all operations that
 * write into the working tree. */
#include "helper/git.h"

#include <dirent.h>
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

enum { FOLDERS_DEEP_MAX = 128 };

/* Whether something in the folder is protected, or it is too deep to tell. Takes dir_fd. */
static bool holds_guarded(const struct confine *confine, int dir_fd, int depth)
{
    DIR *dir = dir_fd >= 0 && depth < FOLDERS_DEEP_MAX ? fdopendir(dir_fd) : NULL;
    if (!dir) {
        if (dir_fd >= 0)
            close(dir_fd);
        return true;
    }
    bool guarded = false;
    for (const struct dirent *entry; !guarded && (entry = readdir(dir)) != NULL;) {
        struct stat found;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        guarded = confine_is_guarded(confine, dirfd(dir), entry->d_name, &found);
        if (!guarded && S_ISDIR(found.st_mode)) {
            int below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            guarded = holds_guarded(confine, below, depth + 1);
        }
    }
    closedir(dir);
    return guarded;
}

/* Whether a folder that holds a protected path would give way to what is no folder. */
static bool replaces_guarded_folder(const struct git_call *call, const char *path)
{
    const struct confine_guard *unused;
    char full[PATH_MAX];
    int len = snprintf(full, sizeof full, "%s%s", git_repository_workdir(call->repo), path);
    if (confine_guards(call->confine, &unused) == 0 || len >= (int)sizeof full)
        return false;
    int dir_fd = open(full, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return false;
    return holds_guarded(call->confine, dir_fd, 0);
}

static int check_guards(const struct git_call *call, const char *path, const git_diff_file *target)
{
    bool is_file = target && target->mode != GIT_FILEMODE_UNREADABLE && target->mode != GIT_FILEMODE_TREE &&
                   target->mode != GIT_FILEMODE_COMMIT;
    struct err err;
    if (!git_is_guarded(call, path) && !(is_file && replaces_guarded_folder(call, path)))
        return 0;
    git_refuse_guarded(path, &err);
    return git_stop(&err);
}

/* What stands in the way of a forced checkout goes, as with git itself; the link only, never what it points to. */
static int meet_link(const struct git_guard *guard, const char *link, const char *path)
{
    struct err err;
    if (!guard->force)
        err_set(&err, ERR_WORKTREE_DIRTY, "a symbolic link stands in the way of %s", path);
    else if (unlink(link) == 0 || errno == ENOENT)
        return 0;
    else
        err_set_errno(&err, err_from_errno(errno), errno, "a symbolic link stands in the way and cannot be removed");
    return git_stop(&err);
}

/* Looks at each name of the path: at the folders, and at the file itself unless a link is to be there. */
static int look_at(const struct git_guard *guard, const char *path, bool and_itself)
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
    const struct git_guard *guard = ctx;
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
    git_index *index = NULL;
    *guard = (struct git_guard){.call = call, .force = (options->checkout_strategy & GIT_CHECKOUT_FORCE) != 0};
    options->notify_flags |= GIT_CHECKOUT_NOTIFY_UPDATED | GIT_CHECKOUT_NOTIFY_DIRTY;
    options->notify_cb = on_notify;
    options->notify_payload = guard;
    /* Else libgit2 compares with HEAD, and removes what HEAD has and nobody tracks any more. */
    if (guard->force && git_repository_index(&index, call->repo) == 0)
        options->baseline_index = index;
    git_index_free(index); /* the repository has it too, as long as it is open */
}

int git_guard_removals(const struct git_guard *guard, git_diff *diff, struct err *err)
{
    for (size_t i = 0, count = git_diff_num_deltas(diff); i < count; i++) {
        const git_diff_delta *delta = git_diff_get_delta(diff, i);
        if (delta->status != GIT_DELTA_DELETED)
            continue;
        int rc = check_guards(guard->call, delta->old_file.path, NULL);
        if (rc == 0)
            rc = look_at(guard, delta->old_file.path, false);
        if (rc != 0)
            return git_fail(err, rc, "cannot remove a file");
    }
    return 0;
}

/* NULL while HEAD is unborn. */
static int head_tree(git_repository *repo, git_tree **out)
{
    git_reference *head = NULL;
    git_object *tree = NULL;
    int rc = git_repository_head(&head, repo);
    if (rc == 0)
        rc = git_reference_peel(&tree, head, GIT_OBJECT_TREE);
    else if (rc == GIT_EUNBORNBRANCH)
        rc = 0;
    git_reference_free(head);
    *out = (git_tree *)tree;
    return rc;
}

int git_guard_tree(const struct git_guard *guard, git_tree *to, const git_strarray *paths, struct err *err)
{
    git_repository *repo = guard->call->repo;
    git_diff *diff = NULL;
    git_tree *head = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_DISABLE_PATHSPEC_MATCH | (guard->force ? GIT_DIFF_REVERSE : 0);
    if (paths)
        options.pathspec = *paths;
    int rc = guard->force ? 0 : head_tree(repo, &head);
    if (rc == 0)
        rc = guard->force ? git_diff_tree_to_index(&diff, repo, to, NULL, &options)
                          : git_diff_tree_to_tree(&diff, repo, head, to, &options);
    if (rc == 0)
        rc = git_guard_removals(guard, diff, err);
    else
        git_fail(err, rc, "cannot tell what would be removed");
    git_diff_free(diff);
    git_tree_free(head);
    return rc == 0 ? 0 : -1;
}
