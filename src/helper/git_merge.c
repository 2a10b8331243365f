/* merge: fast-forward, or a commit with two parents; where there are conflicts, see git_merge_conflicts.c. */
#include "helper/git_merge.h"

#include <stdio.h>
#include <string.h>

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

const char *git_merge_message(const struct git_call *call)
{
    const char *message = git_param_text(call, "message");
    return message && message[strspn(message, " \t\r\n\f\v")] ? message : NULL;
}

void git_merge_write(struct git_call *call, const char *kind, const git_oid *oid)
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

static int fast_forward(struct git_call *call, const struct git_merge_sides *sides, struct err *err)
{
    git_tree *tree;
    int rc = git_commit_tree(&tree, sides->theirs);
    if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    rc = git_overwrite_safely(call, tree, "cannot merge", err);
    git_tree_free(tree);
    if (rc != 0)
        return -1;
    rc = move_head(call, sides->theirs, sides->ref);
    if (rc != 0)
        return git_fail(err, rc, "cannot move the branch");
    git_merge_write(call, "fast_forward", git_commit_id(sides->theirs));
    return 0;
}

/* As git: what is staged would become part of the merge unseen. */
static int check_nothing_staged(struct git_call *call, git_tree *head, struct err *err)
{
    git_diff *staged;
    int rc = git_diff_tree_to_index(&staged, call->repo, head, NULL, NULL);
    if (rc != 0)
        return git_fail(err, rc, "cannot compare with the index");
    rc = git_diff_num_deltas(staged) > 0 ? git_merge_refuse(call, staged, err) : 0;
    git_diff_free(staged);
    return rc;
}

static int commit_merge(struct git_call *call, const struct git_merge_sides *sides, const git_tree *tree,
                        struct err *err)
{
    git_signature *author;
    git_oid oid;
    char composed[1024];
    const char *message = git_merge_message(call);
    const git_commit *parents[] = {sides->ours, sides->theirs};
    if (!message) {
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
    git_merge_write(call, "merge", &oid);
    return 0;
}

static int merge_index(struct git_call *call, const struct git_merge_sides *sides, git_tree *head, git_index *merged,
                       struct err *err)
{
    git_tree *tree;
    git_oid oid;
    if (check_nothing_staged(call, head, err) != 0)
        return -1;
    if (git_index_has_conflicts(merged))
        return git_merge_leave(call, sides, head, merged, err);
    int rc = git_index_write_tree_to(&oid, merged, call->repo);
    if (rc == 0)
        rc = git_tree_lookup(&tree, call->repo, &oid);
    if (rc != 0)
        return git_fail(err, rc, "cannot write the merged tree");
    rc = git_overwrite_safely(call, tree, "cannot merge", err);
    if (rc == 0)
        rc = commit_merge(call, sides, tree, err);
    git_tree_free(tree);
    return rc;
}

static int merge_commits(struct git_call *call, const struct git_merge_sides *sides, struct err *err)
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

static int merge(struct git_call *call, struct git_merge_sides *sides, struct err *err)
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
        git_merge_write(call, "up_to_date", &head);
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
    struct git_merge_sides sides = {.theirs = theirs, .ref = name};
    return git_merge_settled(call, err) != 0 ? -1 : merge(call, &sides, err);
}

int git_merge_operation(struct git_call *call, struct err *err)
{
    if (git_param_bool(call, "abort", false))
        return git_merge_abort(call, err);
    struct git_merge_sides sides = {.ref = git_branch_param(call, "ref", err)};
    if (!sides.ref || git_merge_settled(call, err) != 0 ||
        git_resolve_commit(call, "ref", sides.ref, &sides.theirs, err) != 0)
        return -1;
    int rc = merge(call, &sides, err);
    git_commit_free(sides.theirs);
    return rc;
}
