/* Checkouts that keep local changes and tell which of them are in the way; for checkout, merge and stash. */
#include "helper/git_refs.h"

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

/* The index as the tree; what is known about unchanged files stays. */
static int read_into_index(git_repository *repo, git_tree *tree)
{
    git_index *index;
    int rc = git_repository_index(&index, repo);
    if (rc != 0)
        return rc;
    rc = git_index_read_tree(index, tree);
    if (rc == 0)
        rc = git_index_write(index);
    git_index_free(index);
    return rc;
}

int git_overwrite_force(struct git_call *call, git_tree *tree, const git_strarray *paths, struct err *err)
{
    struct git_guard guard;
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    options.checkout_strategy = GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DISABLE_PATHSPEC_MATCH;
    if (git_checkout_paths(&options, paths ? *paths : (git_strarray){NULL, 0}, err) != 0)
        return -1;
    git_guard_checkout(&guard, call, &options);
    int rc = git_checkout_tree(call->repo, (const git_object *)tree, &options);
    git_checkout_paths_free(&options);
    if (rc != 0)
        return git_fail(err, rc, "cannot check out");
    rc = read_into_index(call->repo, tree);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot reset the index");
}
