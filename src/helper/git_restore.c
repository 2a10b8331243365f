/* Gives files back their content of the index or of a commit; an operation of `abxd-helper git`. */
#include "helper/git_basic.h"
#include "helper/name_list.h"

#include <string.h>

enum { RESTORED_LISTED_MAX = 1000 };

struct restoring {
    struct name_list names;
    bool failed;
};

/* libgit2 tells of a file that it removes and writes anew twice. */
static void on_progress(const char *path, size_t done, size_t total, void *ctx)
{
    (void)done, (void)total;
    struct restoring *restoring = ctx;
    if (path && name_list_add(&restoring->names, path) != 0)
        restoring->failed = true;
}

static void write_restored(struct git_call *call, char *const *paths, size_t count)
{
    struct buf names;
    buf_init(&names, RESTORED_LISTED_MAX * PATH_MAX);
    for (size_t i = 0; i < count && i < RESTORED_LISTED_MAX; i++)
        if (buf_append(&names, paths[i], strlen(paths[i]) + 1) != 0)
            call->result.failed = true;
    json_out_names(&call->result, "restored", &names);
    json_out_int(&call->result, "count", (int64_t)count);
    json_out_bool(&call->result, "truncated", count > RESTORED_LISTED_MAX);
    buf_deinit(&names);
}

/* An entry with conflicts has no one content, as git has it; libgit2 would write all of them into the file, without
 * asking the guard. */
static int check_merged(struct git_call *call, const struct git_paths *paths, struct err *err)
{
    git_index *index = NULL;
    git_diff *diff = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_DISABLE_PATHSPEC_MATCH;
    options.pathspec = git_paths_spec(paths);
    int rc = git_repository_index(&index, call->repo);
    bool conflicts = rc == 0 && git_index_has_conflicts(index);
    if (conflicts)
        rc = git_diff_tree_to_index(&diff, call->repo, NULL, index, &options);
    if (rc != 0)
        git_fail(err, rc, "cannot look at the index");
    for (size_t i = 0; rc == 0 && conflicts && i < git_diff_num_deltas(diff); i++)
        if (git_diff_get_delta(diff, i)->status == GIT_DELTA_CONFLICTED)
            rc = git_conflicts(call, index, err);
    git_diff_free(diff);
    git_index_free(index);
    return rc == 0 ? 0 : -1;
}

/* From the tree, or from the index where that is NULL. */
static int restore_files(struct git_call *call, const struct git_paths *paths, git_tree *tree, struct err *err)
{
    struct git_guard guard;
    struct restoring restoring = {0};
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    options.checkout_strategy = GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DISABLE_PATHSPEC_MATCH;
    if (tree)
        options.checkout_strategy |= GIT_CHECKOUT_DONT_UPDATE_INDEX;
    options.progress_cb = on_progress;
    options.progress_payload = &restoring;
    git_guard_checkout(&guard, call, &options);
    git_strarray spec = git_paths_spec(paths);
    if ((tree ? git_guard_tree(&guard, tree, &spec, err) : check_merged(call, paths, err)) != 0 ||
        git_checkout_paths(&options, spec, err) != 0)
        return -1;
    int rc = tree ? git_checkout_tree(call->repo, (git_object *)tree, &options)
                  : git_checkout_index(call->repo, NULL, &options);
    git_checkout_paths_free(&options);
    name_list_sort(&restoring.names);
    if (rc == 0 && restoring.failed)
        rc = err_set(err, ERR_INTERNAL, "out of memory");
    else if (rc != 0)
        git_fail(err, rc, "cannot restore");
    else
        write_restored(call, restoring.names.items, restoring.names.count);
    name_list_free(&restoring.names);
    return rc == 0 ? 0 : -1;
}

static int restore_index(struct git_call *call, const struct git_paths *paths, git_tree *tree, struct err *err)
{
    if (git_index_from_tree(call, paths, tree, err) != 0)
        return -1;
    write_restored(call, paths->items, paths->count);
    return 0;
}

/* What `source` names; without it nothing for files (the index), and HEAD for the index (nothing while unborn). */
static int resolve_source(struct git_call *call, bool staged, git_tree **out, struct err *err)
{
    const char *source = git_param_text(call, "source");
    git_commit *commit;
    *out = NULL;
    if (!source && (!staged || git_repository_head_unborn(call->repo) == 1))
        return 0;
    if (git_resolve_commit(call, "source", source, &commit, err) != 0)
        return -1;
    int rc = git_commit_tree(out, commit);
    git_commit_free(commit);
    return rc < 0 ? git_fail(err, rc, "cannot read the commit") : 0;
}

static int restore(struct git_call *call, const struct git_paths *paths, struct err *err)
{
    bool staged = git_param_bool(call, "staged", false);
    git_index *index = NULL;
    git_tree *tree = NULL;
    if (paths->count == 0) {
        err_set(err, ERR_INVALID_REQUEST, "name the paths to restore; \".\" is all of them");
        return err_field(err, "paths");
    }
    if (resolve_source(call, staged, &tree, err) != 0)
        return -1;
    int rc = git_repository_index(&index, call->repo);
    if (rc < 0)
        git_fail(err, rc, "cannot read the index");
    else if ((rc = git_check_tracked(index, tree, paths, err)) == 0)
        rc = staged ? restore_index(call, paths, tree, err) : restore_files(call, paths, tree, err);
    git_index_free(index);
    git_tree_free(tree);
    return rc == 0 ? 0 : -1;
}

int git_restore(struct git_call *call, struct err *err)
{
    struct git_paths paths;
    if (git_param_paths(call, "paths", &paths, err) != 0)
        return -1;
    int rc = restore(call, &paths, err);
    git_paths_free(&paths);
    return rc;
}
