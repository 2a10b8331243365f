/* merge: fast-forward, a commit with two parents, or conflicts that wait in the working tree; and giving one up. */
#include "helper/git_refs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int git_merge_settled(struct git_call *call, struct err *err)
{
    git_index *index;
    int rc = git_repository_index(&index, call->repo);
    if (rc != 0)
        return git_fail(err, rc, "cannot read the index");
    rc = git_index_has_conflicts(index) ? git_conflicts(call, index, err) : 0;
    git_index_free(index);
    if (rc == 0 && git_repository_state(call->repo) == GIT_REPOSITORY_STATE_MERGE)
        return err_set(err, ERR_BUSY, "a merge is not finished: commit it, or give it up (merge with abort)");
    return rc;
}

/* The two sides. */
struct sides {
    git_commit *ours, *theirs;
    const char *ref; /* what the client called theirs */
};

static void write_result(struct git_call *call, const char *kind, const git_oid *oid)
{
    json_out_text(&call->result, "kind", kind);
    git_out_oid(&call->result, "sha", oid);
}

/* What a branch, tag or commit is called in the message of a merge commit, as git words it. */
static const char *kind_of(git_repository *repo, const char *ref)
{
    git_reference *found = NULL;
    const char *kind = "commit";
    if (git_reference_dwim(&found, repo, ref) == 0)
        kind = git_reference_is_branch(found)   ? "branch"
               : git_reference_is_remote(found) ? "remote-tracking branch"
               : git_reference_is_tag(found)    ? "tag"
                                                : "commit";
    git_reference_free(found);
    return kind;
}

static void default_message(git_repository *repo, const char *ref, char *out, size_t size)
{
    git_reference *head = NULL;
    char into[512] = "";
    if (git_repository_head(&head, repo) == 0) {
        const char *name = git_reference_is_branch(head) ? git_reference_shorthand(head) : "HEAD";
        if (strcmp(name, "main") != 0 && strcmp(name, "master") != 0)
            snprintf(into, sizeof into, " into %s", name);
    }
    git_reference_free(head);
    snprintf(out, size, "Merge %s '%s'%s", kind_of(repo, ref), ref, into);
}

/* HEAD's branch, or HEAD itself, to a commit that descends from it. */
static int move_head(struct git_call *call, const git_commit *to, const char *ref)
{
    git_reference *head = NULL, *moved = NULL;
    char message[512];
    snprintf(message, sizeof message, "merge %s: Fast-forward", ref);
    const git_oid *oid = git_commit_id(to);
    int rc = git_repository_head_unborn(call->repo);
    if (rc == 1) {
        rc = git_reference_lookup(&head, call->repo, "HEAD");
        if (rc == 0)
            rc = git_reference_create(&moved, call->repo, git_reference_symbolic_target(head), oid, 0, message);
    } else if (rc == 0) {
        rc = git_repository_head(&head, call->repo);
        if (rc == 0)
            rc = git_reference_set_target(&moved, head, oid, message);
    }
    git_reference_free(head);
    git_reference_free(moved);
    return rc;
}

static int checkout_safely(struct git_call *call, const git_object *to, struct err *err)
{
    struct git_overwrite overwrite;
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    git_overwrite_init(&overwrite, call, GIT_CHECKOUT_SAFE, &options);
    int rc = git_checkout_tree(call->repo, to, &options);
    if (rc != 0)
        git_overwrite_fail(&overwrite, rc, "cannot merge", err);
    git_overwrite_deinit(&overwrite);
    return rc == 0 ? 0 : -1;
}

static int fast_forward(struct git_call *call, const struct sides *sides, struct err *err)
{
    if (checkout_safely(call, (const git_object *)sides->theirs, err) != 0)
        return -1;
    int rc = move_head(call, sides->theirs, sides->ref);
    if (rc != 0)
        return git_fail(err, rc, "cannot move the branch");
    write_result(call, "fast_forward", git_commit_id(sides->theirs));
    return 0;
}

/* All files of a diff are in the way. */
static int refuse_files(struct git_call *call, git_diff *diff, struct err *err)
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

/* As git: what is staged would become part of the merge unseen. */
static int check_nothing_staged(struct git_call *call, git_tree *head, struct err *err)
{
    git_diff *staged;
    int rc = git_diff_tree_to_index(&staged, call->repo, head, NULL, NULL);
    if (rc != 0)
        return git_fail(err, rc, "cannot compare with the index");
    rc = git_diff_num_deltas(staged) > 0 ? refuse_files(call, staged, err) : 0;
    git_diff_free(staged);
    return rc;
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

/* libgit2 refuses to merge into files with local changes, but does not say which. */
static int check_clean_below(struct git_call *call, git_tree *head, git_index *merged, struct err *err)
{
    git_diff *changes = NULL, *dirty = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    int rc = git_diff_tree_to_index(&changes, call->repo, head, merged, NULL);
    if (rc == 0 && !changed_paths(changes, &options.pathspec))
        rc = err_set(err, ERR_INTERNAL, "out of memory");
    else if (rc != 0)
        git_fail(err, rc, "cannot compare with the merge");
    options.flags = GIT_DIFF_DISABLE_PATHSPEC_MATCH | GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS;
    options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
    if (rc == 0 && options.pathspec.count > 0) {
        rc = git_diff_index_to_workdir(&dirty, call->repo, NULL, &options);
        if (rc != 0)
            git_fail(err, rc, "cannot compare with the working tree");
        else if (git_diff_num_deltas(dirty) > 0)
            rc = refuse_files(call, dirty, err);
    }
    free(options.pathspec.strings);
    git_diff_free(dirty);
    git_diff_free(changes);
    return rc == 0 ? 0 : -1;
}

/* The files with conflicts are written without asking the guard of checkouts. */
static int check_guards_below(struct git_call *call, git_index *merged, struct err *err)
{
    for (size_t i = 0, count = git_index_entrycount(merged); i < count; i++) {
        const git_index_entry *entry = git_index_get_byindex(merged, i);
        if (git_index_entry_is_conflict(entry) && git_is_guarded(call, entry->path))
            return git_refuse_guarded(entry->path, err);
    }
    return 0;
}

/* What the conflict markers call theirs is what the client called it. */
static int annotate(struct git_call *call, const struct sides *sides, git_annotated_commit **out)
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
    const char *message = git_param_text(call, "message");
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

/* Leaves the conflicts in the index and in the files, for people to mend. */
static int leave_merging(struct git_call *call, const struct sides *sides, git_tree *head, git_index *merged,
                         struct err *err)
{
    git_annotated_commit *theirs;
    if (check_guards_below(call, merged, err) != 0 || check_clean_below(call, head, merged, err) != 0)
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

static int commit_merge(struct git_call *call, const struct sides *sides, const git_tree *tree, struct err *err)
{
    git_signature *author;
    git_oid oid;
    char composed[1024];
    const char *message = git_param_text(call, "message");
    const git_commit *parents[] = {sides->ours, sides->theirs};
    if (!message || !message[0]) {
        default_message(call->repo, sides->ref, composed, sizeof composed);
        message = composed;
    }
    if (git_call_author(call, "author", &author, err) != 0)
        return -1;
    git_buf clean = GIT_BUF_INIT;
    int rc = git_message_prettify(&clean, message, 0, '#');
    if (rc == 0)
        rc = git_commit_create(&oid, call->repo, "HEAD", author, author, NULL, clean.ptr, tree, 2, parents);
    git_buf_dispose(&clean);
    git_signature_free(author);
    if (rc != 0)
        return git_fail(err, rc, "cannot make the merge commit");
    write_result(call, "merge", &oid);
    return 0;
}

static int merge_index(struct git_call *call, const struct sides *sides, git_tree *head, git_index *merged,
                       struct err *err)
{
    git_tree *tree;
    git_oid oid;
    if (check_nothing_staged(call, head, err) != 0)
        return -1;
    if (git_index_has_conflicts(merged))
        return leave_merging(call, sides, head, merged, err);
    int rc = git_index_write_tree_to(&oid, merged, call->repo);
    if (rc == 0)
        rc = git_tree_lookup(&tree, call->repo, &oid);
    if (rc != 0)
        return git_fail(err, rc, "cannot write the merged tree");
    rc = checkout_safely(call, (const git_object *)tree, err);
    if (rc == 0)
        rc = commit_merge(call, sides, tree, err);
    git_tree_free(tree);
    return rc;
}

static int merge_commits(struct git_call *call, const struct sides *sides, struct err *err)
{
    git_merge_options options;
    git_merge_options_init(&options, GIT_MERGE_OPTIONS_VERSION);
    git_index *merged;
    git_tree *head;
    git_oid base;
    int rc = git_merge_base(&base, call->repo, git_commit_id(sides->ours), git_commit_id(sides->theirs));
    if (rc == GIT_ENOTFOUND && git_repository_is_shallow(call->repo) != 1) {
        err_set(err, ERR_INVALID_REQUEST, "%s has no commit in common with HEAD", sides->ref);
        return err_field(err, "ref");
    }
    if (rc != 0)
        return git_fail(err, rc, "cannot find the commit that both have in common");
    rc = git_merge_commits(&merged, call->repo, sides->ours, sides->theirs, &options);
    if (rc != 0)
        return git_fail(err, rc, "cannot merge");
    rc = git_commit_tree(&head, sides->ours);
    if (rc == 0) {
        rc = merge_index(call, sides, head, merged, err);
        git_tree_free(head);
    } else {
        git_fail(err, rc, "cannot read a tree");
    }
    git_index_free(merged);
    return rc;
}

static int merge(struct git_call *call, struct sides *sides, struct err *err)
{
    git_annotated_commit *theirs;
    git_merge_analysis_t analysis;
    git_merge_preference_t preference;
    int rc = git_annotated_commit_lookup(&theirs, call->repo, git_commit_id(sides->theirs));
    if (rc != 0)
        return git_fail(err, rc, "cannot merge");
    rc = git_merge_analysis(&analysis, &preference, call->repo, (const git_annotated_commit **)&theirs, 1);
    git_annotated_commit_free(theirs);
    if (rc != 0)
        return git_fail(err, rc, "cannot tell how to merge");
    if (analysis & GIT_MERGE_ANALYSIS_UP_TO_DATE) {
        git_oid head;
        rc = git_reference_name_to_id(&head, call->repo, "HEAD");
        if (rc != 0)
            return git_fail(err, rc, "cannot read HEAD");
        write_result(call, "up_to_date", &head);
        return 0;
    }
    if ((analysis & GIT_MERGE_ANALYSIS_UNBORN) ||
        ((analysis & GIT_MERGE_ANALYSIS_FASTFORWARD) && !(preference & GIT_MERGE_PREFERENCE_NO_FASTFORWARD)))
        return fast_forward(call, sides, err);
    if (preference & GIT_MERGE_PREFERENCE_FASTFORWARD_ONLY)
        return err_set(err, ERR_NON_FAST_FORWARD, "merge.ff of this repository allows fast-forward only");
    if (git_resolve_commit(call, "ref", NULL, &sides->ours, err) != 0)
        return -1;
    rc = merge_commits(call, sides, err);
    git_commit_free(sides->ours);
    return rc;
}

int git_merge_into_head(struct git_call *call, git_commit *theirs, const char *name, struct err *err)
{
    struct sides sides = {.theirs = theirs, .ref = name};
    return git_merge_settled(call, err) != 0 ? -1 : merge(call, &sides, err);
}

/* As `git reset --merge`: what the merge changed is as HEAD has it; other local changes stay. */
static int abort_merge(struct git_call *call, struct err *err)
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
    if (rc == 0 && (rc = git_repository_state_cleanup(call->repo)) != 0)
        git_fail(err, rc, "cannot end the merge");
    if (rc == 0)
        write_result(call, "aborted", git_commit_id(head));
    free(paths.strings);
    git_diff_free(changes);
    git_tree_free(tree);
    git_commit_free(head);
    return rc == 0 ? 0 : -1;
}

int git_merge_operation(struct git_call *call, struct err *err)
{
    if (git_param_bool(call, "abort", false))
        return abort_merge(call, err);
    struct sides sides = {.ref = git_branch_param(call, "ref", err)};
    if (!sides.ref || git_merge_settled(call, err) != 0 ||
        git_resolve_commit(call, "ref", sides.ref, &sides.theirs, err) != 0)
        return -1;
    int rc = merge(call, &sides, err);
    git_commit_free(sides.theirs);
    return rc;
}
