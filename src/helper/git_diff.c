/* Differences as patches: `diff` between the index, the working tree and commits, `show` for what a commit did. */
#include "base/utf8.h"
#include "helper/git_history.h"

enum {
    CONTEXT_LINES = 3,
    PATCH_BYTES_OTHERWISE = 1024 * 1024, /* of all patches together */
    RENAME_LIMIT = 1000,                 /* as git: with more new files than that only unchanged ones are found */
    /* A file past this counts as binary: the lists of lines that comparing takes are many times as large. */
    FILE_BYTES_MAX = 64 * 1024 * 1024,
};

static int on_progress(const git_diff *so_far, const char *old_path, const char *new_path, void *ctx)
{
    (void)so_far, (void)old_path, (void)new_path;
    return git_call_late(ctx) ? git_stop(NULL) : 0;
}

static const char *status_name(git_delta_t status)
{
    switch (status) {
    case GIT_DELTA_ADDED:
    case GIT_DELTA_UNTRACKED:
        return "added";
    case GIT_DELTA_DELETED:
        return "deleted";
    case GIT_DELTA_RENAMED:
        return "renamed";
    case GIT_DELTA_COPIED:
        return "copied";
    case GIT_DELTA_CONFLICTED:
        return "conflicted";
    case GIT_DELTA_UNREADABLE:
        return "unreadable";
    default:
        return "modified";
    }
}

struct patches {
    const struct git_call *call;
    struct json_out *out;
    size_t left; /* bytes that patches may still take */
    bool truncated;
};

/* The member `patch`: null where it has none or no room is left for it. */
static int write_patch(struct patches *patches, git_patch *patch, struct err *err)
{
    if (git_patch_size(patch, 1, 1, 1) > patches->left) {
        patches->truncated = true;
        json_out_null(patches->out, "patch");
        return 0;
    }
    git_buf text = GIT_BUF_INIT;
    int rc = git_patch_to_buf(&text, patch);
    if (rc != 0)
        return git_fail(err, rc, "cannot write a patch");
    if (text.size > patches->left) {
        patches->truncated = true;
        json_out_null(patches->out, "patch");
    } else {
        patches->left -= text.size;
        json_out_bytes(patches->out, "patch", text.ptr, text.size);
        if (!utf8_valid(text.ptr, text.size))
            json_out_bool(patches->out, "lossy", true);
    }
    git_buf_dispose(&text);
    return 0;
}

static int write_file(struct patches *patches, git_diff *diff, size_t index, struct err *err)
{
    struct json_out *out = patches->out;
    git_patch *patch = NULL;
    int rc = git_patch_from_diff(&patch, diff, index);
    if (rc != 0)
        return git_fail(err, rc, "cannot compare a file");
    const git_diff_delta *delta = patch ? git_patch_get_delta(patch) : git_diff_get_delta(diff, index);
    bool moved = delta->status == GIT_DELTA_RENAMED || delta->status == GIT_DELTA_COPIED;
    bool binary = (delta->flags & GIT_DIFF_FLAG_BINARY) != 0;
    size_t additions = 0, deletions = 0;
    if (patch && !binary)
        git_patch_line_stats(NULL, &additions, &deletions, patch);
    json_out_open(out, NULL, '{');
    const char *path = delta->status == GIT_DELTA_DELETED ? delta->old_file.path : delta->new_file.path;
    json_out_path(out, "path", path);
    if (moved)
        json_out_path(out, "old_path", delta->old_file.path);
    json_out_text(out, "status", status_name(delta->status));
    json_out_int(out, "additions", (int64_t)additions);
    json_out_int(out, "deletions", (int64_t)deletions);
    json_out_bool(out, "binary", binary);
    if (!patch || binary || delta->status == GIT_DELTA_CONFLICTED || git_is_guarded(patches->call, path))
        json_out_null(out, "patch");
    else
        rc = write_patch(patches, patch, err);
    json_out_close(out, '}');
    git_patch_free(patch);
    return rc;
}

/* The members `files` and `truncated`. */
static int write_files(struct git_call *call, git_diff *diff, struct err *err)
{
    struct patches patches = {
        .call = call,
        .out = &call->result,
        .left = (size_t)git_param_int(call, "max_bytes", PATCH_BYTES_OTHERWISE),
    };
    git_diff_find_options find;
    git_diff_find_options_init(&find, GIT_DIFF_FIND_OPTIONS_VERSION);
    find.flags = GIT_DIFF_FIND_RENAMES;
    find.rename_limit = RENAME_LIMIT;
    int rc = git_diff_find_similar(diff, &find);
    if (rc != 0)
        return git_fail(err, rc, "cannot look for renamed files");
    size_t count = git_diff_num_deltas(diff);
    json_out_open(&call->result, "files", '[');
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (git_call_late(call)) {
            rc = git_fail(err, git_stop(NULL), "diff");
        } else if (call->result.buf->len > GIT_ANSWER_FULL_BYTES) {
            patches.truncated = true;
            break;
        } else {
            rc = write_file(&patches, diff, i, err);
        }
    }
    json_out_close(&call->result, ']');
    json_out_bool(&call->result, "truncated", patches.truncated);
    return rc;
}

/* paths is borrowed by the options. */
static git_diff_options diff_options(struct git_call *call, const struct git_paths *paths)
{
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    /* Without INCLUDE_TYPECHANGE a file that became a link is one deleted and one added, as git words its patch; with
     * it libgit2 makes a patch that nobody can apply. */
    options.flags = GIT_DIFF_INDENT_HEURISTIC | GIT_DIFF_DISABLE_PATHSPEC_MATCH;
    options.context_lines = (uint32_t)git_param_int(call, "context", CONTEXT_LINES);
    options.pathspec = git_paths_spec(paths);
    options.max_size = FILE_BYTES_MAX;
    options.progress_cb = on_progress;
    options.payload = call;
    return options;
}

static int resolve_tree(struct git_call *call, const char *name, const char *text, git_tree **out, struct err *err)
{
    git_object *object, *tree;
    if (git_resolve(call, name, text, &object, err) != 0)
        return -1;
    int rc = git_object_peel(&tree, object, GIT_OBJECT_TREE);
    git_object_free(object);
    if (rc != 0) {
        err_set(err, ERR_REFERENCE_NOT_FOUND, "%s is neither a commit nor a tree", text ? text : "HEAD");
        return err_field(err, name);
    }
    *out = (git_tree *)tree;
    return 0;
}

/* What the working tree has against the index. What it found to be unchanged is kept in the index, so that the next
 * look need not read those files; where that cannot be written, it is done without. A submodule's own state is not
 * asked for, here and below: its repository may be anywhere. */
static int diff_worktree(git_diff **out, git_repository *repo, git_diff_options *options)
{
    options->ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
    options->flags |= GIT_DIFF_UPDATE_INDEX;
    int rc = git_diff_index_to_workdir(out, repo, NULL, options);
    if (rc == 0 || rc == GIT_EUSER)
        return rc;
    options->flags &= ~(uint32_t)GIT_DIFF_UPDATE_INDEX;
    return git_diff_index_to_workdir(out, repo, NULL, options);
}

static int make_diff(git_diff **out, struct git_call *call, git_diff_options *options, struct err *err)
{
    const char *from = git_param_text(call, "from"), *to = git_param_text(call, "to");
    bool staged = git_param_bool(call, "staged", false);
    git_tree *from_tree = NULL, *to_tree = NULL;
    if (to && (!from || staged)) {
        err_set(err, ERR_INVALID_REQUEST,
                from ? "the index is compared with one commit: staged excludes to"
                     : "to needs from: two commits are compared");
        return err_field(err, "to");
    }
    if (!to && git_repository_is_bare(call->repo) == 1) {
        err_set(err, ERR_INVALID_REQUEST, "a bare repository has commits only: from and to are needed");
        return err_field(err, "from");
    }
    /* While HEAD is unborn, everything in the index is new. */
    bool unborn = staged && !from && git_repository_head_unborn(call->repo) == 1;
    if ((from || (staged && !unborn)) && resolve_tree(call, "from", from, &from_tree, err) != 0)
        return -1;
    int rc = 0;
    if (to && resolve_tree(call, "to", to, &to_tree, err) != 0) {
        git_tree_free(from_tree);
        return -1;
    }
    if (to) {
        rc = git_diff_tree_to_tree(out, call->repo, from_tree, to_tree, options);
    } else if (staged) {
        rc = git_diff_tree_to_index(out, call->repo, from_tree, NULL, options);
    } else if (from) {
        options->ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
        rc = git_diff_tree_to_workdir_with_index(out, call->repo, from_tree, options);
    } else {
        rc = diff_worktree(out, call->repo, options);
    }
    git_tree_free(from_tree);
    git_tree_free(to_tree);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot compare");
}

int git_diff_operation(struct git_call *call, struct err *err)
{
    struct git_paths paths;
    git_diff *diff = NULL;
    if (git_param_paths(call, "paths", &paths, err) != 0)
        return -1;
    git_diff_options options = diff_options(call, &paths);
    int rc = make_diff(&diff, call, &options, err);
    if (rc == 0)
        rc = write_files(call, diff, err);
    git_diff_free(diff);
    git_paths_free(&paths);
    return rc;
}

/* Against the first parent; all of it is new in a first commit, and where a shallow clone ends. */
static int diff_commit(git_diff **out, struct git_call *call, git_commit *commit, git_diff_options *options,
                       struct err *err)
{
    git_commit *parent = NULL;
    git_tree *tree = NULL, *parent_tree = NULL;
    if (git_commit_parentcount(commit) > 0 && git_log_parent(call, commit, 0, &parent, err) < 0)
        return -1;
    int rc = git_commit_tree(&tree, commit);
    if (rc == 0 && parent)
        rc = git_commit_tree(&parent_tree, parent);
    if (rc == 0)
        rc = git_diff_tree_to_tree(out, call->repo, parent_tree, tree, options);
    git_tree_free(parent_tree);
    git_tree_free(tree);
    git_commit_free(parent);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot compare the commit with its parent");
}

int git_show_operation(struct git_call *call, struct err *err)
{
    struct git_paths paths;
    git_commit *commit = NULL;
    git_diff *diff = NULL;
    if (git_param_paths(call, "paths", &paths, err) != 0)
        return -1;
    git_diff_options options = diff_options(call, &paths);
    int rc = git_resolve_commit(call, "ref", git_param_text(call, "ref"), &commit, err);
    if (rc == 0)
        rc = diff_commit(&diff, call, commit, &options, err);
    if (rc == 0) {
        json_out_open(&call->result, "commit", '{');
        git_out_commit(&call->result, commit);
        json_out_close(&call->result, '}');
        rc = write_files(call, diff, err);
    }
    git_diff_free(diff);
    git_commit_free(commit);
    git_paths_free(&paths);
    return rc;
}
