/* Branches: listed, made, deleted, renamed. */
#include "helper/git_history.h"
#include "helper/git_refs.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES_MAX = 1024 };

const char *git_branch_param(const struct git_call *call, const char *name, struct err *err)
{
    const char *text = git_param_text(call, name);
    if (text && text[0])
        return text;
    err_set(err, ERR_INVALID_REQUEST, "%s is required", name);
    err_field(err, name);
    return NULL;
}

static int check_name(const char *field, const char *name, struct err *err)
{
    int valid = 0;
    if (git_branch_name_is_valid(&valid, name) == 0 && valid)
        return 0;
    err_set(err, ERR_INVALID_REQUEST, "not a name for a branch: %s", name);
    return err_field(err, field);
}

static bool exists(git_repository *repo, const char *name)
{
    git_reference *found = NULL;
    bool there = git_branch_lookup(&found, repo, name, GIT_BRANCH_LOCAL) == 0;
    git_reference_free(found);
    return there;
}

/* Another branch stands where the name needs a folder: the first part of the name that is one. "" for none. */
static void find_prefix(git_repository *repo, const char *name, char *out, size_t size)
{
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(out, size, "%.*s", (int)(slash - name), name);
        if (exists(repo, out))
            return;
    }
    out[0] = '\0';
}

static bool is_folder(git_repository *repo, const char *name)
{
    char glob[NAME_BYTES_MAX];
    git_reference_iterator *iterator;
    const char *found;
    snprintf(glob, sizeof glob, "refs/heads/%s/*", name);
    if (git_reference_iterator_glob_new(&iterator, repo, glob) != 0)
        return false;
    bool folder = git_reference_next_name(&found, iterator) == 0;
    git_reference_iterator_free(iterator);
    return folder;
}

/* Whether there is a branch of that name, or one that is a folder of it, or it of another: *err tells. */
static bool is_taken(git_repository *repo, const char *name, struct err *err)
{
    char prefix[NAME_BYTES_MAX];
    find_prefix(repo, name, prefix, sizeof prefix);
    if (exists(repo, name))
        err_set(err, ERR_ALREADY_EXISTS, "there is a branch of that name: %s", name);
    else if (prefix[0])
        err_set(err, ERR_ALREADY_EXISTS, "there is a branch %s, so none can be below it", prefix);
    else if (is_folder(repo, name))
        err_set(err, ERR_ALREADY_EXISTS, "there are branches below %s/, so none can have that name", name);
    else
        return false;
    return true;
}

/* Says why libgit2 would not make a branch of that name. */
static int not_made(git_repository *repo, const char *field, const char *name, int git_code, struct err *err)
{
    git_fail(err, git_code, "cannot make the branch");
    if (git_code == GIT_ELOCKED || git_code == GIT_EUSER)
        return -1;
    is_taken(repo, name, err);
    return err_field(err, field);
}

int git_branch_make(struct git_call *call, const char *field, const char *name, const git_commit *commit,
                    const char *upstream, git_reference **out, struct err *err)
{
    git_reference *branch;
    if (check_name(field, name, err) != 0)
        return -1;
    int rc = git_branch_create(&branch, call->repo, name, commit, 0);
    if (rc != 0)
        return not_made(call->repo, field, name, rc, err);
    rc = upstream ? git_branch_set_upstream(branch, upstream) : 0;
    if (rc != 0) {
        git_fail(err, rc, "cannot set what the branch follows");
        git_branch_delete(branch);
        git_reference_free(branch);
        return -1;
    }
    if (out)
        *out = branch;
    else
        git_reference_free(branch);
    return 0;
}

static const char *without_prefix(const char *ref, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(ref, prefix, len) == 0 ? ref + len : NULL;
}

/* The member `upstream`: "origin/main", also while there is no such branch (yet); null without one. */
static void write_upstream(struct json_out *out, git_repository *repo, const char *ref_name)
{
    git_buf upstream = GIT_BUF_INIT;
    if (git_branch_upstream_name(&upstream, repo, ref_name) != 0) {
        json_out_null(out, "upstream");
        return;
    }
    const char *shown = without_prefix(upstream.ptr, "refs/remotes/");
    if (!shown)
        shown = without_prefix(upstream.ptr, "refs/heads/");
    json_out_text(out, "upstream", shown ? shown : upstream.ptr);
    git_buf_dispose(&upstream);
}

static void write_branch(struct json_out *out, git_repository *repo, git_reference *branch, bool local)
{
    git_reference *direct = NULL;
    json_out_open(out, NULL, '{');
    json_out_text(out, "name", git_reference_shorthand(branch));
    if (git_reference_resolve(&direct, branch) == 0)
        git_out_oid(out, "sha", git_reference_target(direct));
    else
        json_out_null(out, "sha");
    git_reference_free(direct);
    if (local) {
        json_out_bool(out, "current", git_branch_is_head(branch) == 1);
        write_upstream(out, repo, git_reference_name(branch));
    }
    json_out_close(out, '}');
}

static int list_kind(struct git_call *call, const char *member, bool local, bool *truncated, struct err *err)
{
    struct json_out *out = &call->result;
    struct name_list names;
    if (git_ref_names_list(call, local ? "refs/heads/*" : "refs/remotes/*", &names, err) != 0)
        return -1;
    json_out_open(out, member, '[');
    for (size_t i = 0; i < names.count && !*truncated; i++) {
        git_reference *branch;
        *truncated = out->buf->len > GIT_ANSWER_FULL_BYTES || git_call_late(call);
        /* One that cannot be read, or went meanwhile, does not spoil the list. */
        if (*truncated || git_reference_lookup(&branch, call->repo, names.items[i]) != 0)
            continue;
        write_branch(out, call->repo, branch, local);
        git_reference_free(branch);
    }
    json_out_close(out, ']');
    name_list_free(&names);
    return 0;
}

static int list(struct git_call *call, struct err *err)
{
    bool truncated = false;
    if (list_kind(call, "branches", true, &truncated, err) != 0 ||
        list_kind(call, "remote_branches", false, &truncated, err) != 0)
        return -1;
    json_out_bool(&call->result, "truncated", truncated);
    return 0;
}

static void write_result(struct git_call *call, const char *name, const git_oid *oid)
{
    json_out_text(&call->result, "name", name);
    if (oid)
        git_out_oid(&call->result, "sha", oid);
    else
        json_out_null(&call->result, "sha");
}

int git_branch_start(struct git_call *call, const char *field, const char *name, git_commit **out_commit,
                     git_reference **out_branch, struct err *err)
{
    const char *start = git_param_text(call, "start");
    git_commit *commit;
    git_reference *remote = NULL;
    if (git_resolve_commit(call, "start", start, &commit, err) != 0)
        return -1;
    if (start && git_branch_lookup(&remote, call->repo, start, GIT_BRANCH_REMOTE) != 0)
        remote = NULL;
    int rc = git_branch_make(call, field, name, commit, remote ? start : NULL, out_branch, err);
    git_reference_free(remote);
    if (rc == 0)
        *out_commit = commit;
    else
        git_commit_free(commit);
    return rc;
}

static int create(struct git_call *call, struct err *err)
{
    const char *name = git_branch_param(call, "name", err);
    git_commit *commit;
    if (!name || git_branch_start(call, "name", name, &commit, NULL, err) != 0)
        return -1;
    write_result(call, name, git_commit_id(commit));
    git_commit_free(commit);
    return 0;
}

static int find(struct git_call *call, const char *name, git_reference **out, struct err *err)
{
    int rc = git_branch_lookup(out, call->repo, name, GIT_BRANCH_LOCAL);
    if (rc == 0)
        return 0;
    if (rc == GIT_ENOTFOUND || rc == GIT_EINVALIDSPEC)
        err_set(err, ERR_REFERENCE_NOT_FOUND, "no such branch: %s", name);
    else
        git_fail(err, rc, "cannot read the branch");
    return err_field(err, "name");
}

static int delete_branch(struct git_call *call, struct err *err)
{
    const char *name = git_branch_param(call, "name", err);
    git_reference *branch;
    if (!name || find(call, name, &branch, err) != 0)
        return -1;
    if (git_branch_is_checked_out(branch) == 1) {
        git_reference_free(branch);
        err_set(err, ERR_BUSY, "the branch is checked out: %s", name);
        return err_field(err, "name");
    }
    const git_oid *target = git_reference_target(branch);
    git_oid was = {{0}};
    if (target)
        was = *target;
    int rc = git_branch_delete(branch);
    git_reference_free(branch);
    if (rc != 0)
        return git_fail(err, rc, "cannot delete the branch");
    write_result(call, name, target ? &was : NULL);
    return 0;
}

int git_branch_rename_unborn(struct git_call *call, const char *field, const char *name, struct err *err)
{
    char full[NAME_BYTES_MAX];
    if (check_name(field, name, err) != 0)
        return -1;
    if (is_taken(call->repo, name, err))
        return err_field(err, field);
    int len = snprintf(full, sizeof full, "refs/heads/%s", name);
    int rc = (size_t)len < sizeof full ? git_repository_set_head(call->repo, full) : GIT_EINVALIDSPEC;
    return rc == 0 ? 0 : git_fail(err, rc, "cannot set HEAD");
}

static int rename_unborn(struct git_call *call, const char *name, const char *new_name, struct err *err)
{
    git_reference *head = NULL;
    int rc = git_reference_lookup(&head, call->repo, "HEAD");
    const char *target = rc == 0 ? git_reference_symbolic_target(head) : NULL;
    const char *current = target ? without_prefix(target, "refs/heads/") : NULL;
    bool meant = current && (!name || strcmp(name, current) == 0);
    git_reference_free(head);
    if (!meant) {
        err_set(err, ERR_REFERENCE_NOT_FOUND, "no such branch: %s", name ? name : "HEAD");
        return err_field(err, "name");
    }
    if (git_branch_rename_unborn(call, "new_name", new_name, err) != 0)
        return -1;
    write_result(call, new_name, NULL);
    return 0;
}

static int rename_branch(struct git_call *call, struct err *err)
{
    const char *name = git_param_text(call, "name"), *new_name = git_branch_param(call, "new_name", err);
    git_reference *branch, *renamed;
    if (!new_name || check_name("new_name", new_name, err) != 0)
        return -1;
    bool unborn = git_repository_head_unborn(call->repo) == 1;
    if (unborn && (!name || !exists(call->repo, name)))
        return rename_unborn(call, name, new_name, err);
    if (!name && git_repository_head_detached(call->repo) == 1) {
        err_set(err, ERR_INVALID_REQUEST, "HEAD is on no branch: name is required");
        return err_field(err, "name");
    }
    int rc = name ? find(call, name, &branch, err) : git_repository_head(&branch, call->repo);
    if (rc != 0)
        return name ? -1 : git_fail(err, rc, "cannot read the branch");
    rc = git_branch_move(&renamed, branch, new_name, 0);
    git_reference_free(branch);
    if (rc != 0)
        return not_made(call->repo, "new_name", new_name, rc, err);
    write_result(call, new_name, git_reference_target(renamed));
    git_reference_free(renamed);
    return 0;
}

int git_branch_operation(struct git_call *call, struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(struct git_call *call, struct err *err);
    } actions[] = {{"list", list}, {"create", create}, {"delete", delete_branch}, {"rename", rename_branch}};
    const char *action = git_param_text(call, "action");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(action ? action : "list", actions[i].name) == 0)
            return actions[i].run(call, err);
    err_set(err, ERR_INVALID_REQUEST, "no such action: %s", action);
    return err_field(err, "action");
}
