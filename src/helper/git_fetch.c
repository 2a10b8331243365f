/* fetch{remote="origin",refspecs,prune,credentials}, and the fetching of pull and clone. */
#include "helper/git_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 1100 };

/* The reference here that libgit2 makes of the right side of a refspec. */
static void full_dst(const char *dst, char out[NAME_SIZE])
{
    const char *prefix = strncmp(dst, "refs/", 5) == 0      ? ""
                         : strncmp(dst, "remotes/", 8) == 0 ? "refs/"
                                                            : "refs/heads/";
    snprintf(out, NAME_SIZE, "%s%s", prefix, dst);
}

int git_fetch_run(struct git_net *net, const git_strarray *refspecs, git_fetch_prune_t prune, struct err *err)
{
    git_fetch_options options;
    git_fetch_options_init(&options, GIT_FETCH_OPTIONS_VERSION);
    options.prune = prune;
    options.follow_redirects = GIT_REMOTE_REDIRECT_INITIAL; /* the configuration does not say otherwise */
    git_net_callbacks(net, &options.callbacks);
    int rc = git_remote_fetch(net->remote, refspecs->count > 0 ? refspecs : NULL, &options, NULL);
    return rc == 0 ? 0 : git_net_fail(net, rc, "cannot fetch", err);
}

struct refused {
    struct git_net *net;
    struct json_out out;
    char first[NAME_SIZE];
};

static void look_at(struct refused *refused, const git_remote_head *head, const char *dst)
{
    git_oid now;
    if (git_reference_name_to_id(&now, refused->net->call->repo, dst) != 0 || git_oid_equal(&now, &head->oid))
        return;
    if (!refused->first[0]) {
        snprintf(refused->first, sizeof(refused->first), "%s", dst);
        json_out_open(&refused->out, "refused", '[');
    }
    json_out_open(&refused->out, NULL, '{');
    json_out_text(&refused->out, "ref", dst);
    json_out_text(&refused->out, "reason",
                  strncmp(dst, "refs/tags/", 10) == 0 ? "the tag exists already" : "non-fast-forward");
    json_out_close(&refused->out, '}');
}

/* What the left side of a refspec without a pattern names, in the order in which libgit2 looks. */
static const git_remote_head *head_named(const git_remote_head **heads, size_t count, const char *src)
{
    static const char *const prefixes[] = {"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t len = strlen(prefixes[i]);
        for (size_t k = 0; k < count; k++)
            if (strncmp(heads[k]->name, prefixes[i], len) == 0 && strcmp(heads[k]->name + len, src) == 0)
                return heads[k];
    }
    return NULL;
}

static void look_at_spec(struct refused *refused, const git_refspec *spec, const git_remote_head **heads, size_t count)
{
    const char *src = git_refspec_src(spec), *dst = git_refspec_dst(spec);
    if (git_refspec_force(spec) || !src || !dst || !*dst)
        return;
    if (!strchr(src, '*')) {
        char name[NAME_SIZE];
        const git_remote_head *head = head_named(heads, count, src);
        full_dst(dst, name);
        if (head)
            look_at(refused, head, name);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        git_buf name = GIT_BUF_INIT;
        if (git_refspec_src_matches(spec, heads[i]->name) && git_refspec_transform(&name, spec, heads[i]->name) == 0)
            look_at(refused, heads[i], name.ptr);
        git_buf_dispose(&name);
    }
}

int git_fetch_check(struct git_net *net, const git_strarray *refspecs, struct err *err)
{
    struct refused refused = {.net = net, .out = {.buf = &net->call->extra, .comma = net->call->extra.len > 0}};
    const git_remote_head **heads;
    size_t count;
    int rc = git_remote_ls(&heads, &count, net->remote);
    if (rc != 0)
        return git_net_fail(net, rc, "cannot list what the remote has", err);
    for (size_t i = 0; i < refspecs->count; i++) {
        git_refspec *spec;
        if (git_refspec_parse(&spec, refspecs->strings[i], 1) != 0)
            continue; /* fetching would have failed */
        look_at_spec(&refused, spec, heads, count);
        git_refspec_free(spec);
    }
    for (size_t i = 0; refspecs->count == 0 && i < git_remote_refspec_count(net->remote); i++) {
        const git_refspec *spec = git_remote_get_refspec(net->remote, i);
        if (git_refspec_direction(spec) == GIT_DIRECTION_FETCH)
            look_at_spec(&refused, spec, heads, count);
    }
    if (!refused.first[0])
        return 0;
    json_out_close(&refused.out, ']');
    if (refused.out.failed)
        buf_reset(&net->call->extra);
    return err_set(err, ERR_NON_FAST_FORWARD, "the refspec may not move %.150s, which is elsewhere: it wants a +",
                   refused.first);
}

/* The branch that is checked out stays as the working tree shows it, as git has it too. */
static int check_refspec(struct git_call *call, const char *text, const char *head, struct err *err)
{
    git_refspec *spec;
    if (git_refspec_parse(&spec, text, 1) != 0)
        return err_set(err, ERR_INVALID_REQUEST, "no valid refspec: %.150s", text);
    const char *dst = git_refspec_dst(spec);
    char name[NAME_SIZE] = "";
    if (dst && *dst)
        full_dst(dst, name);
    bool hits = head && name[0] && (strcmp(name, head) == 0 || git_refspec_dst_matches(spec, head));
    git_refspec_free(spec);
    if (hits && !git_repository_is_bare(call->repo))
        return err_set(err, ERR_INVALID_REQUEST, "the refspec would change the branch that is checked out: %.150s",
                       text);
    return 0;
}

static int check_refspecs(struct git_call *call, const git_strarray *refspecs, struct err *err)
{
    git_reference *head = NULL;
    const char *name = NULL;
    if (git_reference_lookup(&head, call->repo, "HEAD") == 0 && git_reference_type(head) == GIT_REFERENCE_SYMBOLIC)
        name = git_reference_symbolic_target(head);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < refspecs->count; i++)
        rc = check_refspec(call, refspecs->strings[i], name, err);
    git_reference_free(head);
    return rc == 0 ? 0 : err_field(err, "refspecs");
}

int git_fetch_operation(struct git_call *call, struct err *err)
{
    struct git_net net;
    git_strarray refspecs;
    const char *name = git_param_text(call, "remote");
    if (git_net_strings(call, "refspecs", &refspecs, err) != 0)
        return -1;
    int rc = check_refspecs(call, &refspecs, err);
    if (rc == 0)
        rc = git_net_open(&net, call, name ? name : "origin", false, err);
    if (rc == 0) {
        size_t begin = call->result.buf->len;
        net.lists = true;
        json_out_open(&call->result, "updated", '[');
        rc = git_fetch_run(&net, &refspecs,
                           git_param_bool(call, "prune", false) ? GIT_FETCH_PRUNE : GIT_FETCH_PRUNE_UNSPECIFIED, err);
        json_out_close(&call->result, ']');
        /* A refusal tells what changed nevertheless. */
        if (rc == 0 && (rc = git_fetch_check(&net, &refspecs, err)) != 0 && call->extra.len > 0 &&
            buf_printf(&call->extra, ",%.*s", (int)(call->result.buf->len - begin), call->result.buf->data + begin) !=
                0)
            buf_reset(&call->extra);
        git_net_deinit(&net);
    }
    free(refspecs.strings);
    return rc;
}
