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

/* Looks at one refspec; anything but 0 ends the walk. */
typedef int (*refspec_fn)(const git_refspec *spec, void *ctx, struct err *err);

/* Those that are given, else those of the configuration. */
static int for_refspecs(struct git_net *net, const git_strarray *given, refspec_fn look, void *ctx, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < given->count; i++) {
        git_refspec *spec;
        if (git_refspec_parse(&spec, given->strings[i], 1) != 0)
            return err_set(err, ERR_INVALID_REQUEST, "no valid refspec: %.150s", given->strings[i]);
        rc = look(spec, ctx, err);
        git_refspec_free(spec);
    }
    for (size_t i = 0; rc == 0 && given->count == 0 && i < git_remote_refspec_count(net->remote); i++) {
        const git_refspec *spec = git_remote_get_refspec(net->remote, i);
        if (git_refspec_direction(spec) == GIT_DIRECTION_FETCH)
            rc = look(spec, ctx, err);
    }
    return rc;
}

/* ctx: the branch that is checked out; NULL: none is. */
static int check_refspec(const git_refspec *spec, void *ctx, struct err *err)
{
    const char *head = ctx, *dst = git_refspec_dst(spec);
    if (!head || !dst || !*dst)
        return 0;
    char name[NAME_SIZE];
    full_dst(dst, name);
    if (strcmp(name, head) != 0 && !git_refspec_dst_matches(spec, head))
        return 0;
    return err_set(err, ERR_INVALID_REQUEST, "the refspec would change the branch that is checked out: %.150s",
                   git_refspec_string(spec));
}

/* The branch that is checked out stays as the working tree shows it, as git has it too. */
static int check_refspecs(struct git_net *net, const git_strarray *refspecs, struct err *err)
{
    git_reference *head = NULL;
    git_repository *repo = net->call->repo;
    const char *name = NULL;
    if (!git_repository_is_bare(repo) && git_reference_lookup(&head, repo, "HEAD") == 0 &&
        git_reference_type(head) == GIT_REFERENCE_SYMBOLIC)
        name = git_reference_symbolic_target(head);
    int rc = for_refspecs(net, refspecs, check_refspec, (void *)name, err);
    git_reference_free(head);
    return rc == 0 ? 0 : err_field(err, refspecs->count > 0 ? "refspecs" : "remote");
}

int git_fetch_run(struct git_net *net, const git_strarray *refspecs, git_fetch_prune_t prune, struct err *err)
{
    if (check_refspecs(net, refspecs, err) != 0)
        return -1;
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
    const git_remote_head **heads; /* what the remote has */
    size_t count;
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
static const git_remote_head *head_named(const struct refused *refused, const char *src)
{
    static const char *const prefixes[] = {"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t len = strlen(prefixes[i]);
        for (size_t k = 0; k < refused->count; k++) {
            const char *name = refused->heads[k]->name;
            if (strncmp(name, prefixes[i], len) == 0 && strcmp(name + len, src) == 0)
                return refused->heads[k];
        }
    }
    return NULL;
}

static int look_at_refspec(const git_refspec *spec, void *ctx, struct err *err)
{
    (void)err;
    struct refused *refused = ctx;
    const char *src = git_refspec_src(spec), *dst = git_refspec_dst(spec);
    if (git_refspec_force(spec) || !src || !dst || !*dst)
        return 0;
    if (!strchr(src, '*')) {
        char name[NAME_SIZE];
        const git_remote_head *head = head_named(refused, src);
        full_dst(dst, name);
        if (head)
            look_at(refused, head, name);
        return 0;
    }
    for (size_t i = 0; i < refused->count; i++) {
        const git_remote_head *head = refused->heads[i];
        git_buf name = GIT_BUF_INIT;
        if (git_refspec_src_matches(spec, head->name) && git_refspec_transform(&name, spec, head->name) == 0)
            look_at(refused, head, name.ptr);
        git_buf_dispose(&name);
    }
    return 0;
}

int git_fetch_check(struct git_net *net, const git_strarray *refspecs, struct err *err)
{
    struct refused refused = {.net = net, .out = {.buf = &net->call->extra, .comma = net->call->extra.len > 0}};
    int rc = git_remote_ls(&refused.heads, &refused.count, net->remote);
    if (rc != 0)
        return git_net_fail(net, rc, "cannot list what the remote has", err);
    if (for_refspecs(net, refspecs, look_at_refspec, &refused, err) != 0)
        return -1;
    if (!refused.first[0])
        return 0;
    json_out_close(&refused.out, ']');
    if (refused.out.failed)
        buf_reset(&net->call->extra);
    return err_set(err, ERR_NON_FAST_FORWARD, "the refspec may not move %.150s, which is elsewhere: it wants a +",
                   refused.first);
}

int git_fetch_operation(struct git_call *call, struct err *err)
{
    struct git_net net;
    git_strarray refspecs;
    const char *name = git_param_text(call, "remote");
    if (git_net_strings(call, "refspecs", &refspecs, err) != 0)
        return -1;
    int rc = git_net_open(&net, call, name ? name : "origin", false, err);
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
