/* Merges with conflicts: left in the index and the working tree for people to mend, or given up. */
#include "helper/git_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int git_merge_refuse(struct git_call *call, git_diff *diff, struct err *err)
{
    struct git_overwrite overwrite;
    git_checkout_options unused;
    git_checkout_options_init(&unused, GIT_CHECKOUT_OPTIONS_VERSION);
    git_overwrite_init(&overwrite, call, GIT_CHECKOUT_NONE, &unused);
    for (size_t i = 0; i < git_diff_num_deltas(diff); i++) {
        const git_diff_delta *delta = git_diff_get_delta(diff, i);
        git_overwrite_add(&overwrite, delta->new_file.path ? delta->new_file.path : delta->old_file.path);
    }
    git_overwrite_fail(&overwrite, GIT_ECONFLICT, "cannot merge", err);
    git_overwrite_deinit(&overwrite);
    return -1;
}

/* The paths that an index changes against a tree, with memory of the diff. NULL: out of memory. */
static char **changed_paths(git_diff *diff, git_strarray *out)
{
    size_t count = git_diff_num_deltas(diff);
    char **paths = calloc(count + 1, sizeof *paths);
    for (size_t i = 0; paths && i < count; i++) {
        const git_diff_delta *delta = git_diff_get_delta(diff, i);
        paths[i] = (char *)(delta->new_file.path ? delta->new_file.path : delta->old_file.path);
    }
    *out = (git_strarray){paths, count};
    return paths;
}

/* libgit2 refuses to merge into files with local changes, but does not say which; and what it removes or leaves with
 * conflicts, it does not ask the guard of checkouts about. */
static int check_files_below(struct git_call *call, git_tree *head, git_index *merged, struct err *err)
{
    git_diff *changes = NULL, *dirty = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    int rc = git_diff_tree_to_index(&changes, call->repo, head, merged, NULL);
    if (rc != 0)
        git_fail(err, rc, "cannot compare with the merge");
    else if (!changed_paths(changes, &options.pathspec))
        rc = err_set(err, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; rc == 0 && i < options.pathspec.count; i++)
        if (git_is_guarded(call, options.pathspec.strings[i]))
            rc = git_refuse_guarded(options.pathspec.strings[i], err);
    options.flags = GIT_DIFF_DISABLE_PATHSPEC_MATCH | GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS;
    options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
    if (rc == 0 && options.pathspec.count > 0) {
        rc = git_diff_index_to_workdir(&dirty, call->repo, NULL, &options);
        if (rc != 0)
            git_fail(err, rc, "cannot compare with the working tree");
        else if (git_diff_num_deltas(dirty) > 0)
            rc = git_merge_refuse(call, dirty, err);
    }
    free(options.pathspec.strings);
    git_diff_free(dirty);
    git_diff_free(changes);
    return rc == 0 ? 0 : -1;
}

/* What the conflict markers call theirs is what the client called it. */
static int annotate(struct git_call *call, const struct git_merge_sides *sides, git_annotated_commit **out)
{
    git_reference *ref = NULL;
    int rc = git_reference_dwim(&ref, call->repo, sides->ref);
    if (rc == 0)
        rc = git_annotated_commit_from_ref(out, call->repo, ref);
    git_reference_free(ref);
    return rc == 0 ? 0 : git_annotated_commit_lookup(out, call->repo, git_commit_id(sides->theirs));
}

/* The message that the client gave is the one of the commit that will end the merge. git_merge has just made the file,
 * so it is no link. */
static int keep_message(struct git_call *call, struct err *err)
{
    char path[PATH_MAX];
    const char *message = git_merge_message(call);
    if (!message)
        return 0;
    int len = snprintf(path, sizeof path, "%sMERGE_MSG", git_repository_path(call->repo));
    int fd = len < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    size_t size = strlen(message);
    bool kept = fd >= 0 && write(fd, message, size) == (ssize_t)size && write(fd, "\n", 1) == 1;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    return kept ? 0 : err_set_errno(err, err_from_errno(reason), reason, "cannot keep the message of the merge");
}

int git_merge_leave(struct git_call *call, const struct git_merge_sides *sides, git_tree *head, git_index *merged,
                    struct err *err)
{
    git_annotated_commit *theirs;
    if (check_files_below(call, head, merged, err) != 0)
        return -1;
    int rc = annotate(call, sides, &theirs);
    if (rc != 0)
        return git_fail(err, rc, "cannot merge");
    struct git_overwrite overwrite;
    git_merge_options merge;
    git_merge_options_init(&merge, GIT_MERGE_OPTIONS_VERSION);
    git_checkout_options checkout;
    git_checkout_options_init(&checkout, GIT_CHECKOUT_OPTIONS_VERSION);
    git_overwrite_init(&overwrite, call, GIT_CHECKOUT_SAFE | GIT_CHECKOUT_ALLOW_CONFLICTS, &checkout);
    rc = git_merge(call->repo, (const git_annotated_commit **)&theirs, 1, &merge, &checkout);
    if (rc != 0)
        git_overwrite_fail(&overwrite, rc, "cannot merge", err);
    git_overwrite_deinit(&overwrite);
    git_annotated_commit_free(theirs);
    if (rc != 0 || keep_message(call, err) != 0)
        return -1;
    git_index *index;
    rc = git_repository_index(&index, call->repo);
    if (rc != 0)
        return git_fail(err, rc, "cannot read the index");
    git_conflicts(call, index, err);
    git_index_free(index);
    return -1;
}

int git_merge_abort(struct git_call *call, struct err *err)
{
    git_commit *head;
    git_tree *tree = NULL;
    git_diff *changes = NULL;
    git_strarray paths = {0};
    if (git_repository_state(call->repo) != GIT_REPOSITORY_STATE_MERGE) {
        err_set(err, ERR_INVALID_REQUEST, "there is no merge to give up");
        return err_field(err, "abort");
    }
    if (git_resolve_commit(call, "ref", NULL, &head, err) != 0)
        return -1;
    int rc = git_commit_tree(&tree, head);
    if (rc == 0)
        rc = git_diff_tree_to_index(&changes, call->repo, tree, NULL, NULL);
    if (rc != 0)
        git_fail(err, rc, "cannot compare with the index");
    else if (!changed_paths(changes, &paths))
        rc = err_set(err, ERR_INTERNAL, "out of memory");
    if (rc == 0 && paths.count > 0)
        rc = git_overwrite_force(call, tree, &paths, err);
    if (rc == 0)
        rc = git_state_end(call, err);
    if (rc == 0)
        git_merge_write(call, "aborted", git_commit_id(head));
    free(paths.strings);
    git_diff_free(changes);
    git_tree_free(tree);
    git_commit_free(head);
    return rc == 0 ? 0 : -1;
}
