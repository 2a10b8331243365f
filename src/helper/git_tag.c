/* Tags: listed, made (annotated where there is a message), deleted. */
#include "helper/git_history.h"
#include "helper/git_refs.h"

#include <string.h>

static void write_tag(struct json_out *out, git_repository *repo, const char *name, const git_oid *oid)
{
    git_object *object = NULL, *target = NULL;
    git_tag *tag = NULL;
    if (git_object_lookup(&object, repo, oid, GIT_OBJECT_ANY) == 0 && git_object_type(object) == GIT_OBJECT_TAG)
        tag = (git_tag *)object;
    if (tag && git_tag_peel(&target, tag) != 0)
        target = NULL;
    json_out_open(out, NULL, '{');
    json_out_text(out, "name", name);
    git_out_oid(out, "sha", target ? git_object_id(target) : oid);
    json_out_bool(out, "annotated", tag != NULL);
    if (tag) {
        json_out_text(out, "message", git_tag_message(tag));
        git_out_signature(out, "tagger", git_tag_tagger(tag));
    }
    json_out_close(out, '}');
    git_object_free(target);
    git_object_free(object);
}

static int list(struct git_call *call, struct err *err)
{
    struct json_out *out = &call->result;
    struct name_list names;
    bool truncated = false;
    if (git_ref_names_list(call, "refs/tags/*", &names, err) != 0)
        return -1;
    json_out_open(out, "tags", '[');
    for (size_t i = 0; i < names.count && !truncated; i++) {
        git_oid oid;
        truncated = out->buf->len > GIT_ANSWER_FULL_BYTES || git_call_late(call);
        if (!truncated && git_reference_name_to_id(&oid, call->repo, names.items[i]) == 0)
            write_tag(out, call->repo, names.items[i] + strlen("refs/tags/"), &oid);
    }
    json_out_close(out, ']');
    json_out_bool(out, "truncated", truncated);
    name_list_free(&names);
    return 0;
}

static int make(struct git_call *call, const char *name, const git_object *target, const char *message, git_oid *out,
                struct err *err)
{
    git_signature *tagger = NULL;
    git_buf clean = GIT_BUF_INIT;
    if (message && git_call_author(call, "author", &tagger, err) != 0)
        return -1;
    int rc = message ? git_message_prettify(&clean, message, 0, '#') : 0;
    if (rc == 0)
        rc = message ? git_tag_create(out, call->repo, name, target, tagger, clean.ptr, 0)
                     : git_tag_create_lightweight(out, call->repo, name, target, 0);
    git_buf_dispose(&clean);
    git_signature_free(tagger);
    if (rc == 0)
        return 0;
    if (rc == GIT_EEXISTS)
        err_set(err, ERR_ALREADY_EXISTS, "there is a tag of that name: %s", name);
    else
        git_fail(err, rc, "cannot make the tag");
    return err_field(err, "name");
}

static int create(struct git_call *call, struct err *err)
{
    const char *name = git_branch_param(call, "name", err), *message = git_param_text(call, "message");
    git_object *target;
    git_oid oid;
    int valid = 0;
    if (!name)
        return -1;
    if (git_tag_name_is_valid(&valid, name) != 0 || !valid) {
        err_set(err, ERR_INVALID_REQUEST, "not a name for a tag: %s", name);
        return err_field(err, "name");
    }
    if (git_resolve(call, "ref", git_param_text(call, "ref"), &target, err) != 0)
        return -1;
    int rc = make(call, name, target, message, &oid, err);
    if (rc == 0) {
        json_out_text(&call->result, "name", name);
        git_out_oid(&call->result, "sha", git_object_id(target));
        json_out_bool(&call->result, "annotated", message != NULL);
    }
    git_object_free(target);
    return rc;
}

static int delete_tag(struct git_call *call, struct err *err)
{
    const char *name = git_branch_param(call, "name", err);
    if (!name)
        return -1;
    int rc = git_tag_delete(call->repo, name);
    if (rc == 0) {
        json_out_text(&call->result, "name", name);
        return 0;
    }
    if (rc == GIT_ENOTFOUND || rc == GIT_EINVALIDSPEC)
        err_set(err, ERR_REFERENCE_NOT_FOUND, "no such tag: %s", name);
    else
        git_fail(err, rc, "cannot delete the tag");
    return err_field(err, "name");
}

int git_tag_operation(struct git_call *call, struct err *err)
{
    const char *action = git_param_text(call, "action");
    if (!action || strcmp(action, "list") == 0)
        return list(call, err);
    if (strcmp(action, "create") == 0)
        return create(call, err);
    if (strcmp(action, "delete") == 0)
        return delete_tag(call, err);
    err_set(err, ERR_INVALID_REQUEST, "no such action: %s", action);
    return err_field(err, "action");
}
