/* checkout: brings HEAD, the index and the working tree to a branch or a commit. */
#include "helper/git_refs.h"

#include <stdio.h>
#include <string.h>

enum { REF_BYTES_MAX = 1024 };

/* Where to go: a branch, or just a commit. */
struct target {
    git_commit *commit;
    git_reference *branch; /* NULL: HEAD becomes detached, or stays as it is */
    bool created, stay;
};

static void target_deinit(struct target *target)
{
    git_commit_free(target->commit);
    git_reference_free(target->branch);
}

/* The branch of that name which exactly one remote has, as "origin/NAME"; none is no error, and found is "". */
static int find_at_remotes(struct git_call *call, const char *name, char found[REF_BYTES_MAX], struct err *err)
{
    git_strarray remotes;
    int rc = git_remote_list(&remotes, call->repo), count = 0;
    if (rc != 0)
        return git_fail(err, rc, "cannot list the remotes");
    found[0] = '\0';
    for (size_t i = 0; i < remotes.count; i++) {
        char shorthand[REF_BYTES_MAX];
        git_reference *ref;
        int len = snprintf(shorthand, sizeof shorthand, "%s/%s", remotes.strings[i], name);
        if (len < 0 || (size_t)len >= sizeof shorthand ||
            git_branch_lookup(&ref, call->repo, shorthand, GIT_BRANCH_REMOTE) != 0)
            continue;
        git_reference_free(ref);
        memcpy(found, shorthand, (size_t)len + 1);
        count++;
    }
    git_strarray_dispose(&remotes);
    if (count <= 1)
        return 0;
    err_set(err, ERR_REFERENCE_NOT_FOUND, "more than one remote has a branch %s: name one, as %s", name, found);
    return err_field(err, "ref");
}

/* A name that is nothing here, but a branch of a remote: a branch that follows it, as git makes one. */
static int make_tracking(struct git_call *call, const char *ref, struct target *out, struct err *err)
{
    struct err not_found = *err;
    char remote[REF_BYTES_MAX];
    if (find_at_remotes(call, ref, remote, err) != 0)
        return -1;
    if (remote[0] == '\0') {
        *err = not_found;
        return -1;
    }
    if (git_resolve_commit(call, "ref", remote, &out->commit, err) != 0)
        return -1;
    int rc = git_branch_make(call, "ref", ref, out->commit, remote, &out->branch, err);
    out->created = rc == 0;
    return rc;
}

static int find_target(struct git_call *call, const char *ref, struct target *out, struct err *err)
{
    if (git_param_bool(call, "create", false)) {
        int rc = git_branch_start(call, "ref", ref, &out->commit, &out->branch, err);
        out->created = rc == 0;
        return rc;
    }
    if (git_branch_lookup(&out->branch, call->repo, ref, GIT_BRANCH_LOCAL) != 0)
        out->branch = NULL;
    const char *commit = out->branch ? git_reference_name(out->branch) : ref;
    if (git_resolve_commit(call, "ref", commit, &out->commit, err) == 0) {
        out->stay = strcmp(ref, "HEAD") == 0 || strcmp(ref, "@") == 0;
        return 0;
    }
    return out->branch || err->code != ERR_REFERENCE_NOT_FOUND ? -1 : make_tracking(call, ref, out, err);
}

/* libgit2 would refuse to set HEAD, when the files are changed already. */
static int check_not_elsewhere(const struct target *target, const char *ref, struct err *err)
{
    if (!target->branch || target->stay || git_branch_is_head(target->branch) == 1 ||
        git_branch_is_checked_out(target->branch) != 1)
        return 0;
    err_set(err, ERR_BUSY, "the branch is checked out in another working tree: %s", ref);
    return err_field(err, "ref");
}

static int change_files(struct git_call *call, const struct target *target, bool force, struct err *err)
{
    git_tree *tree;
    int rc = git_commit_tree(&tree, target->commit);
    if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    if (!force)
        rc = git_overwrite_safely(call, tree, "cannot check out", err);
    else if ((rc = git_overwrite_force(call, tree, NULL, err)) == 0)
        rc = git_state_end(call, err);
    git_tree_free(tree);
    return rc;
}

static int set_head(struct git_call *call, const struct target *target)
{
    if (target->stay)
        return 0;
    return target->branch ? git_repository_set_head(call->repo, git_reference_name(target->branch))
                          : git_repository_set_head_detached(call->repo, git_commit_id(target->commit));
}

static int go(struct git_call *call, const struct target *target, bool force, struct err *err)
{
    if (change_files(call, target, force, err) != 0)
        return -1;
    int rc = set_head(call, target);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot set HEAD");
}

static void write_result(struct git_call *call, const char *branch, const git_commit *commit, bool created)
{
    struct json_out *out = &call->result;
    json_out_text(out, "branch", branch);
    json_out_bool(out, "detached", !branch);
    json_out_bool(out, "created", created);
    if (commit)
        git_out_oid(out, "sha", git_commit_id(commit));
    else
        json_out_null(out, "sha");
}

static void write_target(struct git_call *call, const struct target *target)
{
    git_reference *head = NULL;
    if (git_repository_head(&head, call->repo) == 0 && git_reference_is_branch(head))
        write_result(call, git_reference_shorthand(head), target->commit, target->created);
    else
        write_result(call, NULL, target->commit, target->created);
    git_reference_free(head);
}

int git_checkout_operation(struct git_call *call, struct err *err)
{
    const char *ref = git_branch_param(call, "ref", err);
    bool force = git_param_bool(call, "force", false);
    struct target target = {0};
    if (!ref || (!force && git_merge_settled(call, err) != 0))
        return -1;
    if (git_param_bool(call, "create", false) && !git_param_text(call, "start") &&
        git_repository_head_unborn(call->repo) == 1) {
        if (git_branch_rename_unborn(call, "ref", ref, err) != 0)
            return -1;
        write_result(call, ref, NULL, true);
        return 0;
    }
    int rc = find_target(call, ref, &target, err);
    if (rc == 0)
        rc = check_not_elsewhere(&target, ref, err);
    if (rc == 0 && (rc = go(call, &target, force, err)) != 0 && target.created)
        git_branch_delete(target.branch); /* nothing was gained */
    if (rc == 0)
        write_target(call, &target);
    target_deinit(&target);
    return rc;
}
