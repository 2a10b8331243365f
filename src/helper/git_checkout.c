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
    out->created = true;
    return git_branch_make(call, "ref", ref, out->commit, remote, &out->branch, err);
}

/* `create`: a new branch at HEAD, or at `start`, which it follows where that is one of a remote. */
static int make_branch(struct git_call *call, const char *ref, struct target *out, struct err *err)
{
    const char *start = git_param_text(call, "start");
    git_reference *remote = NULL;
    if (git_resolve_commit(call, "start", start, &out->commit, err) != 0)
        return -1;
    if (start && git_branch_lookup(&remote, call->repo, start, GIT_BRANCH_REMOTE) != 0)
        remote = NULL;
    out->created = true;
    int rc = git_branch_make(call, "ref", ref, out->commit, remote ? start : NULL, &out->branch, err);
    git_reference_free(remote);
    return rc;
}

static int find_target(struct git_call *call, const char *ref, struct target *out, struct err *err)
{
    if (git_param_bool(call, "create", false))
        return make_branch(call, ref, out, err);
    if (git_branch_lookup(&out->branch, call->repo, ref, GIT_BRANCH_LOCAL) != 0)
        out->branch = NULL;
    const char *commit = out->branch ? git_reference_name(out->branch) : ref;
    if (git_resolve_commit(call, "ref", commit, &out->commit, err) == 0) {
        out->stay = strcmp(ref, "HEAD") == 0 || strcmp(ref, "@") == 0;
        return 0;
    }
    return out->branch || err->code != ERR_REFERENCE_NOT_FOUND ? -1 : make_tracking(call, ref, out, err);
}

static int checkout_safely(struct git_call *call, const struct target *target, struct err *err)
{
    struct git_overwrite overwrite;
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    git_overwrite_init(&overwrite, call, GIT_CHECKOUT_SAFE, &options);
    int rc = git_checkout_tree(call->repo, (const git_object *)target->commit, &options);
    if (rc != 0)
        git_overwrite_fail(&overwrite, rc, "cannot check out", err);
    git_overwrite_deinit(&overwrite);
    return rc == 0 ? 0 : -1;
}

static int checkout_by_force(struct git_call *call, const struct target *target, struct err *err)
{
    git_tree *tree;
    int rc = git_commit_tree(&tree, target->commit);
    if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    rc = git_overwrite_force(call, tree, NULL, err);
    git_tree_free(tree);
    if (rc == 0 && (rc = git_repository_state_cleanup(call->repo)) != 0)
        return git_fail(err, rc, "cannot end the merge");
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
    if ((force ? checkout_by_force : checkout_safely)(call, target, err) != 0)
        return -1;
    int rc = set_head(call, target);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot set HEAD");
}

/* Where HEAD is unborn, a new branch is but a name. */
static int rename_unborn(struct git_call *call, const char *ref, struct err *err)
{
    char full[REF_BYTES_MAX];
    int valid = 0, len = snprintf(full, sizeof full, "refs/heads/%s", ref);
    if (git_branch_name_is_valid(&valid, ref) != 0 || !valid || (size_t)len >= sizeof full) {
        err_set(err, ERR_INVALID_REQUEST, "not a name for a branch: %s", ref);
        return err_field(err, "ref");
    }
    int rc = git_repository_set_head(call->repo, full);
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
        if (rename_unborn(call, ref, err) != 0)
            return -1;
        write_result(call, ref, NULL, true);
        return 0;
    }
    int rc = find_target(call, ref, &target, err);
    if (rc == 0 && (rc = go(call, &target, force, err)) != 0 && target.created)
        git_branch_delete(target.branch); /* nothing was gained */
    if (rc == 0)
        write_target(call, &target);
    target_deinit(&target);
    return rc;
}
