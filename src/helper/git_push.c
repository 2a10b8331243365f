/* push{remote,refspecs,force,set_upstream,credentials}. libgit2 answers success also where the server refused: only
 * what it reports for each reference counts. */
#include "helper/git_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct update {
    char *ref;    /* on the remote */
    char *status; /* why the server refused it; NULL: it did not */
    git_oid old, new;
};

struct push {
    struct git_net net; /* first: the payload of all callbacks */
    const char *remote;
    bool force;
    char **specs; /* "[+]refs/…:refs/…", own */
    size_t spec_count, spec_cap;
    struct update *updates;
    size_t update_count;
    bool no_memory;
};

static int keep_spec(struct push *push, bool force, const char *src, const char *dst, struct err *err)
{
    if (push->spec_count == push->spec_cap) {
        size_t cap = push->spec_cap ? push->spec_cap * 2 : 8;
        char **more = realloc(push->specs, cap * sizeof(*more));
        if (!more)
            return err_set(err, ERR_INTERNAL, "out of memory");
        push->specs = more;
        push->spec_cap = cap;
    }
    size_t size = strlen(src) + strlen(dst) + 3;
    char *spec = malloc(size);
    if (!spec)
        return err_set(err, ERR_INTERNAL, "out of memory");
    snprintf(spec, size, "%s%s:%s", force || push->force ? "+" : "", src, dst);
    push->specs[push->spec_count++] = spec;
    return 0;
}

/* A pattern, for libgit2 takes none in a push. */
static int keep_pattern(struct push *push, const char *text, bool force, struct err *err)
{
    git_refspec *spec;
    git_strarray refs;
    git_repository *repo = push->net.call->repo;
    if (git_refspec_parse(&spec, text, 0) != 0)
        return err_set(err, ERR_INVALID_REQUEST, "no valid refspec: %.150s", text);
    int rc = git_reference_list(&refs, repo);
    if (rc != 0) {
        git_refspec_free(spec);
        return git_fail(err, rc, "cannot list the references");
    }
    for (size_t i = 0; rc == 0 && i < refs.count; i++) {
        git_buf dst = GIT_BUF_INIT;
        if (git_refspec_src_matches(spec, refs.strings[i]) &&
            (rc = git_refspec_transform(&dst, spec, refs.strings[i])) == 0)
            rc = keep_spec(push, force, refs.strings[i], dst.ptr, err);
        git_buf_dispose(&dst);
    }
    git_strarray_dispose(&refs);
    git_refspec_free(spec);
    return rc;
}

/* The full name of what a client calls main, v1 or HEAD; "HEAD" while no branch is checked out. */
static int full_name(git_repository *repo, const char *text, char *out, size_t size, struct err *err)
{
    git_reference *ref;
    if (git_reference_dwim(&ref, repo, text) != 0)
        return err_set(err, ERR_REFERENCE_NOT_FOUND, "no branch or tag here: %.150s", text);
    snprintf(out, size, "%s", git_reference_name(ref));
    git_reference_free(ref);
    return 0;
}

static int no_branch(struct err *err)
{
    err_set(err, ERR_INVALID_REQUEST, "no branch is checked out: name what to push, and where to");
    return err_field(err, "refspecs");
}

/* A short name on the remote is of the kind of what goes there. */
static void full_target(const char *src, const char *text, char *out, size_t size)
{
    const char *prefix = strncmp(text, "refs/", 5) == 0        ? ""
                         : strncmp(src, "refs/tags/", 10) == 0 ? "refs/tags/"
                                                               : "refs/heads/";
    snprintf(out, size, "%s%s", prefix, text);
}

/* "main", "main:other", "+main", ":gone", "refs/heads/…:refs/heads/…", patterns. */
static int add_spec(struct push *push, const char *text, struct err *err)
{
    char src[1024] = "", dst[1100], given[1024];
    bool force = text[0] == '+';
    const char *spec = text + force;
    if (strlen(spec) >= sizeof(given) || spec[0] == '\0' || strcmp(spec, ":") == 0)
        return err_set(err, ERR_INVALID_REQUEST, "no valid refspec: %.150s", text);
    if (strchr(spec, '*'))
        return keep_pattern(push, spec, force, err);
    snprintf(given, sizeof(given), "%s", spec);
    char *colon = strchr(given, ':');
    if (colon)
        *colon = '\0';
    if (given[0] && full_name(push->net.call->repo, given, src, sizeof(src), err) != 0)
        return -1;
    if (!colon && strncmp(src, "refs/", 5) != 0)
        return no_branch(err);
    full_target(src, colon && colon[1] ? colon + 1 : src, dst, sizeof(dst));
    int valid = 0;
    if ((colon && colon[1] == '\0') || git_reference_name_is_valid(&valid, dst) != 0 || !valid)
        return err_set(err, ERR_INVALID_REQUEST, "no valid refspec: %.150s", text);
    return keep_spec(push, force, src, dst, err);
}

/* Without refspecs: the branch that is checked out, to the one of the same name. */
static int add_current(struct push *push, struct err *err)
{
    git_reference *head = NULL;
    int rc = git_repository_head(&head, push->net.call->repo);
    if (rc == GIT_EUNBORNBRANCH)
        return err_set(err, ERR_REFERENCE_NOT_FOUND, "there is no commit to push yet");
    if (rc != 0)
        return git_fail(err, rc, "cannot look at HEAD");
    rc = git_reference_is_branch(head) ? keep_spec(push, false, git_reference_name(head), git_reference_name(head), err)
                                       : no_branch(err);
    git_reference_free(head);
    return rc;
}

static int add_specs(struct push *push, struct err *err)
{
    git_strarray given;
    if (git_net_strings(push->net.call, "refspecs", &given, err) != 0)
        return -1;
    int rc = given.count == 0 ? add_current(push, err) : 0;
    for (size_t i = 0; rc == 0 && i < given.count; i++)
        if ((rc = add_spec(push, given.strings[i], err)) != 0)
            err_field(err, "refspecs");
    free(given.strings);
    if (rc == 0 && push->spec_count == 0) {
        err_set(err, ERR_REFERENCE_NOT_FOUND, "the refspecs name nothing");
        rc = err_field(err, "refspecs");
    }
    return rc;
}

static int on_negotiated(const git_push_update **updates, size_t count, void *ctx)
{
    struct push *push = ctx;
    push->updates = calloc(count ? count : 1, sizeof(*push->updates));
    if (!push->updates)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct update *update = &push->updates[push->update_count++];
        update->ref = strdup(updates[i]->dst_refname);
        git_oid_cpy(&update->old, &updates[i]->src);
        git_oid_cpy(&update->new, &updates[i]->dst);
        if (!update->ref)
            return -1;
    }
    return git_call_late(push->net.call) ? git_stop(NULL) : 0;
}

static int on_reported(const char *ref, const char *status, void *ctx)
{
    struct push *push = ctx;
    for (size_t i = 0; status && i < push->update_count; i++)
        if (strcmp(push->updates[i].ref, ref) == 0 && !push->updates[i].status)
            push->no_memory |= (push->updates[i].status = strdup(status)) == NULL;
    return 0;
}

static void write_updated(const struct push *push, struct json_out *out)
{
    json_out_open(out, "updated", '[');
    for (size_t i = 0; i < push->update_count; i++) {
        const struct update *update = &push->updates[i];
        if (!update->status && !git_oid_equal(&update->old, &update->new))
            git_net_out_update(out, update->ref, &update->old, &update->new);
    }
    json_out_close(out, ']');
}

/* "updated" and "refused" go into the problem, and the first reason into its detail. */
static int tell_refused(struct push *push, struct err *err)
{
    struct git_call *call = push->net.call;
    const struct update *first = NULL;
    struct json_out out = {.buf = &call->extra};
    write_updated(push, &out);
    json_out_open(&out, "refused", '[');
    for (size_t i = 0; i < push->update_count; i++) {
        if (!push->updates[i].status)
            continue;
        first = first ? first : &push->updates[i];
        json_out_open(&out, NULL, '{');
        json_out_text(&out, "ref", push->updates[i].ref);
        json_out_text(&out, "reason", push->updates[i].status);
        json_out_close(&out, '}');
    }
    json_out_close(&out, ']');
    if (push->net.said[0])
        json_out_text(&out, "remote_message", push->net.said);
    if (out.failed)
        buf_reset(&call->extra);
    return err_set(err, ERR_NON_FAST_FORWARD, "the server refused %.100s: %.120s", first ? first->ref : "the push",
                   first ? first->status : "no reason is known");
}

static bool was_refused(const struct push *push)
{
    for (size_t i = 0; i < push->update_count; i++)
        if (push->updates[i].status)
            return true;
    return push->no_memory;
}

static int set_upstreams(struct push *push, struct err *err)
{
    static const char heads[] = "refs/heads/";
    for (size_t i = 0; i < push->spec_count; i++) {
        char *src = push->specs[i] + (push->specs[i][0] == '+'), *colon = strchr(src, ':');
        if (strncmp(src, heads, strlen(heads)) != 0 || strncmp(colon + 1, heads, strlen(heads)) != 0)
            continue;
        *colon = '\0';
        int rc = git_remote_track(push->net.call->repo, src + strlen(heads), push->remote, colon + 1);
        *colon = ':';
        if (rc != 0)
            return git_fail(err, rc, "it was pushed, but the upstream cannot be set");
    }
    return 0;
}

static int fail(struct push *push, int git_code, struct err *err)
{
    if (git_code == GIT_EBAREREPO) {
        err_set(
            err, ERR_INVALID_REQUEST,
            "%.100s has a working tree, and pushes to a path go into bare repositories only: pull from there instead",
            git_remote_url(push->net.remote));
        return err_field(err, "remote");
    }
    git_net_fail(&push->net, git_code, "cannot push", err);
    if (err->code == ERR_NON_FAST_FORWARD)
        err_set(err, ERR_NON_FAST_FORWARD,
                "the remote has commits that the branch has not: pull them first, or give force");
    return -1;
}

static int run(struct push *push, struct err *err)
{
    git_push_options options;
    git_push_options_init(&options, GIT_PUSH_OPTIONS_VERSION);
    git_strarray specs = {push->specs, push->spec_count};
    git_net_callbacks(&push->net, &options.callbacks);
    options.callbacks.push_negotiation = on_negotiated;
    options.callbacks.push_update_reference = on_reported;
    options.follow_redirects = GIT_REMOTE_REDIRECT_INITIAL;
    options.pb_parallelism = 0;
    int rc = git_remote_push(push->net.remote, &specs, &options);
    if (was_refused(push))
        return tell_refused(push, err);
    if (rc != 0)
        return fail(push, rc, err);
    write_updated(push, &push->net.call->result);
    if (push->net.said[0])
        json_out_text(&push->net.call->result, "remote_message", push->net.said);
    return git_param_bool(push->net.call, "set_upstream", false) ? set_upstreams(push, err) : 0;
}

static void push_free(struct push *push)
{
    for (size_t i = 0; i < push->spec_count; i++)
        free(push->specs[i]);
    for (size_t i = 0; i < push->update_count; i++) {
        free(push->updates[i].ref);
        free(push->updates[i].status);
    }
    free(push->specs);
    free(push->updates);
    free(push);
}

int git_push_operation(struct git_call *call, struct err *err)
{
    struct push *push = calloc(1, sizeof(*push));
    const char *name = git_param_text(call, "remote");
    if (!push)
        return err_set(err, ERR_INTERNAL, "out of memory");
    push->remote = name ? name : "origin";
    push->force = git_param_bool(call, "force", false);
    int rc = git_net_open(&push->net, call, push->remote, true, err);
    if (rc == 0) {
        rc = add_specs(push, err);
        if (rc == 0)
            rc = run(push, err);
        git_net_deinit(&push->net);
    }
    push_free(push);
    return rc;
}
