/* Checkouts that keep local changes and tell which of them are in the way; for checkout, merge and
 * stash; and their opposite, for reset too. */
#include "helper/git_overwrite.h"

#include <string.h>

enum { FILES_BYTES_MAX = 128 * 1024 };

void git_overwrite_add(struct git_overwrite *overwrite, const char *path)
{
    overwrite->count++;
    /* The list may end early; the count does not. */
    overwrite->full = overwrite->full || buf_append(&overwrite->files, path, strlen(path) + 1) != 0;
}

static int on_notify(git_checkout_notify_t why, const char *path, const git_diff_file *baseline,
                     const git_diff_file *target, const git_diff_file *workdir, void *ctx)
{
    struct git_overwrite *overwrite = ctx;
    if (why == GIT_CHECKOUT_NOTIFY_CONFLICT)
        git_overwrite_add(overwrite, path);
    return overwrite->guard_cb(why, path, baseline, target, workdir, &overwrite->guard);
}

void git_overwrite_init(struct git_overwrite *overwrite, struct git_call *call, unsigned strategy,
                        git_checkout_options *options)
{
    *overwrite = (struct git_overwrite){.call = call};
    buf_init(&overwrite->files, FILES_BYTES_MAX);
    options->checkout_strategy = strategy;
    git_guard_checkout(&overwrite->guard, call, options);
    overwrite->guard_cb = options->notify_cb;
    options->notify_flags |= GIT_CHECKOUT_NOTIFY_CONFLICT;
    options->notify_cb = on_notify;
    options->notify_payload = overwrite;
}

void git_overwrite_deinit(struct git_overwrite *overwrite)
{
    buf_deinit(&overwrite->files);
}

int git_overwrite_fail(struct git_overwrite *overwrite, int git_code, const char *what, struct err *err)
{
    if (git_code != GIT_ECONFLICT || overwrite->count == 0)
        return git_fail(err, git_code, what);
    struct buf *extra = &overwrite->call->extra;
    size_t before = extra->len;
    struct json_out list = {.buf = extra, .comma = before > 0};
    json_out_names(&list, "files", &overwrite->files);
    if (list.failed)
        extra->len = before;
    return err_set(err, ERR_WORKTREE_DIRTY,
                   "%s: local changes to %zu file%s would be overwritten; commit, stash or discard them first", what,
                   overwrite->count, overwrite->count == 1 ? "" : "s");
}

int git_overwrite_safely(struct git_call *call, git_tree *tree, const char *what, struct err *err)
{
    struct git_overwrite overwrite;
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    git_overwrite_init(&overwrite, call, GIT_CHECKOUT_SAFE, &options);
    int rc = git_guard_tree(&overwrite.guard, tree, NULL, err);
    if (rc == 0 && (rc = git_checkout_tree(call->repo, (const git_object *)tree, &options)) != 0)
        git_overwrite_fail(&overwrite, rc, what, err);
    git_overwrite_deinit(&overwrite);
    return rc == 0 ? 0 : -1;
}

/* What is known about unchanged files stays. */
int git_overwrite_index(struct git_call *call, git_tree *tree, struct err *err)
{
    git_index *index = NULL;
    int rc = git_repository_index(&index, call->repo);
    if (rc == 0)
        rc = git_index_read_tree(index, tree);
    if (rc == 0)
        rc = git_index_write(index);
    git_index_free(index);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot reset the index");
}

int git_overwrite_force(struct git_call *call, git_tree *tree, const git_strarray *paths, struct err *err)
{
    struct git_guard guard;
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    options.checkout_strategy = GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DISABLE_PATHSPEC_MATCH;
    git_guard_checkout(&guard, call, &options);
    if (git_guard_tree(&guard, tree, paths, err) != 0 ||
        git_checkout_paths(&options, paths ? *paths : (git_strarray){NULL, 0}, err) != 0)
        return -1;
    int rc = git_checkout_tree(call->repo, (const git_object *)tree, &options);
    git_checkout_paths_free(&options);
    return rc == 0 ? git_overwrite_index(call, tree, err) : git_fail(err, rc, "cannot check out");
}
