/* Moves HEAD, index and working tree back, all or some paths; an operation of `abxd-helper git`. */
#include "helper/git_basic.h"
#include "helper/git_overwrite.h"

#include <string.h>

/* One difference, from the index to the tree. */
static int take_over(git_index *index, const git_diff_delta *delta)
{
    git_index_entry entry = {0};
    int rc = git_index_conflict_remove(index, delta->old_file.path);
    if (rc < 0 && rc != GIT_ENOTFOUND)
        return rc;
    if (delta->status == GIT_DELTA_DELETED) {
        rc = git_index_remove(index, delta->old_file.path, 0);
        return rc == GIT_ENOTFOUND ? 0 : rc;
    }
    if (delta->status == GIT_DELTA_CONFLICTED && delta->new_file.mode == GIT_FILEMODE_UNREADABLE)
        return 0;
    entry.mode = delta->new_file.mode;
    entry.id = delta->new_file.id;
    entry.path = delta->new_file.path;
    return git_index_add(index, &entry);
}

int git_index_from_tree(struct git_call *call, const struct git_paths *paths, git_tree *tree, struct err *err)
{
    git_index *index = NULL;
    git_diff *diff = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    /* Not git_reset_default, which takes paths for patterns. */
    options.flags = GIT_DIFF_REVERSE | GIT_DIFF_DISABLE_PATHSPEC_MATCH | GIT_DIFF_INCLUDE_TYPECHANGE;
    options.pathspec = git_paths_spec(paths);
    int rc = git_repository_index(&index, call->repo);
    if (rc == 0)
        rc = git_diff_tree_to_index(&diff, call->repo, tree, index, &options);
    for (size_t i = 0, count = diff ? git_diff_num_deltas(diff) : 0; rc == 0 && i < count; i++)
        rc = take_over(index, git_diff_get_delta(diff, i));
    if (rc == 0)
        rc = git_index_write(index);
    git_diff_free(diff);
    git_index_free(index);
    return rc < 0 ? git_fail(err, rc, "cannot change the index") : 0;
}

static bool is_unborn(const struct git_call *call)
{
    return !git_param_text(call, "ref") && git_repository_head_unborn(call->repo) == 1;
}

/* The tree of the commit that `ref` names; NULL for HEAD while there is no commit. */
static int resolve_tree(struct git_call *call, git_tree **out, struct err *err)
{
    git_commit *commit;
    *out = NULL;
    if (is_unborn(call))
        return 0;
    if (git_resolve_commit(call, "ref", git_param_text(call, "ref"), &commit, err) != 0)
        return -1;
    int rc = git_commit_tree(out, commit);
    git_commit_free(commit);
    return rc < 0 ? git_fail(err, rc, "cannot read the commit") : 0;
}

static int reset_paths(struct git_call *call, const struct git_paths *paths, struct err *err)
{
    git_index *index = NULL;
    git_tree *tree = NULL;
    if (resolve_tree(call, &tree, err) != 0)
        return -1;
    int rc = git_repository_index(&index, call->repo);
    if (rc < 0)
        git_fail(err, rc, "cannot read the index");
    else if ((rc = git_check_tracked(index, tree, paths, err)) == 0)
        rc = git_index_from_tree(call, paths, tree, err);
    git_index_free(index);
    git_tree_free(tree);
    return rc == 0 ? 0 : -1;
}

/* git_reset's own hard and mixed ways end a rebase or a bisection, too. */
static int reset_to(struct git_call *call, git_reset_t mode, struct err *err)
{
    git_commit *commit;
    git_tree *tree;
    if (git_resolve_commit(call, "ref", git_param_text(call, "ref"), &commit, err) != 0)
        return -1;
    int rc = git_commit_tree(&tree, commit);
    if (rc != 0) {
        git_commit_free(commit);
        return git_fail(err, rc, "cannot read the commit");
    }
    if (mode == GIT_RESET_HARD)
        rc = git_overwrite_force(call, tree, NULL, err);
    else if (mode == GIT_RESET_MIXED)
        rc = git_overwrite_index(call, tree, err);
    if (rc == 0 && mode != GIT_RESET_SOFT)
        rc = git_state_end(call, err);
    if (rc == 0 && (rc = git_reset(call->repo, (git_object *)commit, GIT_RESET_SOFT, NULL)) != 0)
        git_fail(err, rc, "cannot reset");
    git_tree_free(tree);
    git_commit_free(commit);
    return rc == 0 ? 0 : -1;
}

static int refuse_mode(struct err *err, const char *why)
{
    err_set(err, ERR_INVALID_REQUEST, "%s", why);
    return err_field(err, "mode");
}

static int parse_mode(const struct git_call *call, git_reset_t *out, struct err *err)
{
    const char *mode = git_param_text(call, "mode");
    if (!mode || strcmp(mode, "mixed") == 0)
        *out = GIT_RESET_MIXED;
    else if (strcmp(mode, "soft") == 0)
        *out = GIT_RESET_SOFT;
    else if (strcmp(mode, "hard") == 0)
        *out = GIT_RESET_HARD;
    else
        return refuse_mode(err, "mode is mixed, soft or hard");
    return 0;
}

int git_reset_op(struct git_call *call, struct err *err)
{
    git_reset_t mode = GIT_RESET_MIXED;
    struct git_paths paths;
    if (parse_mode(call, &mode, err) != 0 || git_param_paths(call, "paths", &paths, err) != 0)
        return -1;
    int rc;
    if (mode != GIT_RESET_SOFT && git_repository_is_bare(call->repo))
        rc = refuse_mode(err, "a bare repository can be reset softly only");
    else if (paths.count > 0 && mode != GIT_RESET_MIXED)
        rc = refuse_mode(err, "with paths, mode is mixed");
    else if (paths.count > 0 || (mode == GIT_RESET_MIXED && is_unborn(call)))
        rc = paths.count > 0 ? reset_paths(call, &paths, err) : git_index_from_tree(call, &paths, NULL, err);
    else
        rc = reset_to(call, mode, err);
    git_paths_free(&paths);
    if (rc == 0)
        json_out_text(&call->result, "mode",
                      mode == GIT_RESET_SOFT   ? "soft"
                      : mode == GIT_RESET_HARD ? "hard"
                                               : "mixed");
    return rc;
}
