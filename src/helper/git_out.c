/* What results of several operations have in common, and how clients name commits and authors. */
#include "helper/git.h"

#include <string.h>

int git_resolve(const struct git_call *call, const char *name, const char *text, git_object **out, struct err *err)
{
    const char *wanted = text ? text : "HEAD";
    if (!text && git_repository_head_unborn(call->repo) == 1)
        return err_set(err, ERR_REFERENCE_NOT_FOUND, "there is no commit yet");
    int rc = git_revparse_single(out, call->repo, wanted);
    if (rc == 0)
        return 0;
    if (rc == GIT_ENOTFOUND || rc == GIT_EINVALIDSPEC || rc == GIT_EUNBORNBRANCH || rc == GIT_EPEEL ||
        rc == GIT_EINVALID)
        err_set(err, ERR_REFERENCE_NOT_FOUND, "no such branch, tag or commit: %s", wanted);
    else if (rc == GIT_EAMBIGUOUS)
        err_set(err, ERR_REFERENCE_NOT_FOUND, "more than one object begins with %s", wanted);
    else
        git_fail(err, rc, "cannot look the reference up");
    return err_field(err, name);
}

int git_resolve_commit(const struct git_call *call, const char *name, const char *text, git_commit **out,
                       struct err *err)
{
    git_object *object, *commit;
    if (git_resolve(call, name, text, &object, err) != 0)
        return -1;
    int rc = git_object_peel(&commit, object, GIT_OBJECT_COMMIT);
    git_object_free(object);
    if (rc != 0) {
        err_set(err, ERR_REFERENCE_NOT_FOUND, "%s is no commit", text ? text : "HEAD");
        return err_field(err, name);
    }
    *out = (git_commit *)commit;
    return 0;
}

void git_out_oid(struct json_out *out, const char *name, const git_oid *oid)
{
    char hex[GIT_OID_HEXSZ + 1];
    json_out_text(out, name, git_oid_tostr(hex, sizeof hex, oid));
}

void git_out_signature(struct json_out *out, const char *name, const git_signature *signature)
{
    if (!signature) {
        json_out_null(out, name);
        return;
    }
    json_out_open(out, name, '{');
    json_out_text(out, "name", signature->name);
    json_out_text(out, "email", signature->email);
    json_out_time(out, "time", signature->when.time);
    json_out_close(out, '}');
}

void git_out_commit(struct json_out *out, git_commit *commit)
{
    git_out_oid(out, "sha", git_commit_id(commit));
    json_out_open(out, "parents", '[');
    for (unsigned i = 0; i < git_commit_parentcount(commit); i++)
        git_out_oid(out, NULL, git_commit_parent_id(commit, i));
    json_out_close(out, ']');
    git_out_signature(out, "author", git_commit_author(commit));
    git_out_signature(out, "committer", git_commit_committer(commit));
    json_out_text(out, "message", git_commit_message(commit));
}

static git_commit *head_commit(git_repository *repo)
{
    git_reference *head = NULL;
    git_object *commit = NULL;
    if (git_repository_head(&head, repo) == 0 && git_reference_peel(&commit, head, GIT_OBJECT_COMMIT) != 0)
        commit = NULL;
    git_reference_free(head);
    return (git_commit *)commit;
}

void git_out_head(struct json_out *out, git_repository *repo)
{
    git_commit *commit = head_commit(repo);
    if (!commit) {
        json_out_null(out, "head");
        return;
    }
    const git_signature *author = git_commit_author(commit);
    json_out_open(out, "head", '{');
    git_out_oid(out, "sha", git_commit_id(commit));
    json_out_text(out, "summary", git_commit_summary(commit));
    git_out_signature(out, "author", author);
    if (author)
        json_out_time(out, "time", author->when.time);
    else
        json_out_null(out, "time");
    json_out_close(out, '}');
    git_commit_free(commit);
}

/* user.name and user.email of the repository; no other configuration is read. */
static int configured_author(const struct git_call *call, git_signature **out)
{
    int rc = git_signature_default(out, call->repo);
    if (rc < 0)
        rc = git_signature_now(out, "abxd", "abxd@localhost");
    return rc;
}

int git_call_author(const struct git_call *call, const char *name, git_signature **out, struct err *err)
{
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(call->params, name);
    if (!cJSON_IsObject(given)) {
        int rc = configured_author(call, out);
        return rc < 0 ? git_fail(err, rc, "cannot tell the author") : 0;
    }
    const char *author = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(given, "name"));
    const char *email = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(given, "email"));
    if (!author || !email || git_signature_now(out, author, email) < 0) {
        err_set(err, ERR_INVALID_REQUEST, "an author has a name and an email that are not blank");
        return err_field(err, name);
    }
    return 0;
}
