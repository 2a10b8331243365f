/* clone{url,branch,bare,credentials}: made under the temporary name that the server chose and looks after, beside the
 * target; the target's name comes last. Or inside it (`inside`), where it is an empty directory. */
#include "helper/git_clone_files.h"
#include "helper/git_net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct clone {
    struct git_call *call;
    struct git_net net;
    char temporary[PATH_MAX];
    bool bare, inside;
    const char *wanted; /* the branch or tag asked for, or NULL */
    char head[1100];    /* the full name that HEAD is to have; "" detached */
    git_oid tip;        /* what HEAD is at */
    bool empty;         /* the remote has no commit yet */
};

static int temporary_path(struct clone *clone, struct err *err)
{
    const char *name = git_param_text(clone->call, "temporary"), *path = clone->call->path;
    const char *dir_end = strrchr(path, '/');
    if (!name || strchr(name, '/') || name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(err, ERR_INVALID_REQUEST, "a temporary name is wanted, without a slash");
    if (clone->inside)
        dir_end = path + strlen(path);
    int len = snprintf(clone->temporary, sizeof(clone->temporary), "%.*s/%s", (int)(dir_end - path), path, name);
    if (len < 0 || (size_t)len >= sizeof(clone->temporary))
        return err_set(err, ERR_INVALID_PATH, "the path is too long");
    return 0;
}

static int make_repository(struct clone *clone, const struct git_url *url, struct err *err)
{
    struct git_call *call = clone->call;
    git_repository_init_options options;
    git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
    options.flags =
        GIT_REPOSITORY_INIT_MKDIR | GIT_REPOSITORY_INIT_NO_REINIT | (clone->bare ? GIT_REPOSITORY_INIT_BARE : 0);
    options.initial_head = "main";
    int rc = git_repository_init_ext(&call->repo, clone->temporary, &options);
    if (rc != 0)
        return git_fail(err, rc, "cannot make the repository");
    /* As git: a bare clone has the remote's branches as its own, and no rule for later fetches. */
    git_remote_create_options remote;
    git_remote_create_options_init(&remote, GIT_REMOTE_CREATE_OPTIONS_VERSION);
    remote.repository = call->repo;
    remote.name = "origin";
    remote.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF | (clone->bare ? GIT_REMOTE_CREATE_SKIP_DEFAULT_FETCHSPEC : 0);
    rc = git_remote_create_with_opts(&clone->net.remote, url->text, &remote);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot note the remote");
}

static int connect_remote(struct clone *clone, struct err *err)
{
    git_remote_connect_options options;
    git_remote_connect_options_init(&options, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
    options.follow_redirects = GIT_REMOTE_REDIRECT_INITIAL;
    git_net_callbacks(&clone->net, &options.callbacks);
    int rc = git_remote_connect_ext(clone->net.remote, GIT_DIRECTION_FETCH, &options);
    return rc == 0 ? 0 : git_net_fail(&clone->net, rc, "cannot clone", err);
}

static const git_remote_head *find_head(const git_remote_head **heads, size_t count, const char *prefix,
                                        const char *name)
{
    char full[1100];
    snprintf(full, sizeof(full), "%s%s", prefix, name);
    for (size_t i = 0; i < count; i++)
        if (strcmp(heads[i]->name, full) == 0)
            return heads[i];
    return NULL;
}

/* Which branch HEAD is to be on: the one asked for, or the remote's own. */
static int choose_head(struct clone *clone, struct err *err)
{
    const git_remote_head **heads, *found = NULL;
    size_t count = 0;
    int rc = git_remote_ls(&heads, &count, clone->net.remote);
    if (rc != 0)
        return git_net_fail(&clone->net, rc, "cannot clone", err);
    if (clone->wanted) {
        found = find_head(heads, count, "refs/heads/", clone->wanted);
        bool is_branch = found != NULL;
        if (!found)
            found = find_head(heads, count, "refs/tags/", clone->wanted);
        if (!found) {
            err_set(err, ERR_REFERENCE_NOT_FOUND, "the remote has no branch or tag %.150s", clone->wanted);
            return err_field(err, "branch");
        }
        git_oid_cpy(&clone->tip, &found->oid);
        if (is_branch)
            snprintf(clone->head, sizeof(clone->head), "%s", found->name);
        return 0;
    }
    found = find_head(heads, count, "HEAD", "");
    git_buf name = GIT_BUF_INIT;
    /* The server may say anything. */
    if (found && git_remote_default_branch(&name, clone->net.remote) == 0 && strncmp(name.ptr, "refs/heads/", 11) == 0)
        snprintf(clone->head, sizeof(clone->head), "%s", name.ptr);
    git_buf_dispose(&name);
    clone->empty = found == NULL;
    if (found)
        git_oid_cpy(&clone->tip, &found->oid);
    else
        snprintf(clone->head, sizeof(clone->head), "refs/heads/main");
    return 0;
}

static int fetch(struct clone *clone, struct err *err)
{
    /* Where the remote is on no branch, its HEAD may be on none either. */
    char *specs[] = {clone->bare ? "+refs/heads/*:refs/heads/*" : "+refs/heads/*:refs/remotes/origin/*",
                     "+refs/tags/*:refs/tags/*", "HEAD"};
    git_strarray refspecs = {specs, clone->head[0] || clone->wanted ? 2 : 3};
    git_fetch_options options;
    git_fetch_options_init(&options, GIT_FETCH_OPTIONS_VERSION);
    options.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_ALL;
    options.update_fetchhead = 0;
    options.follow_redirects = GIT_REMOTE_REDIRECT_INITIAL;
    git_net_callbacks(&clone->net, &options.callbacks);
    int rc = git_remote_fetch(clone->net.remote, &refspecs, &options, "clone");
    return rc == 0 ? 0 : git_net_fail(&clone->net, rc, "cannot clone", err);
}

/* refs/remotes/origin/HEAD, as git makes it. */
static int point_remote_head(git_repository *repo, const char *branch)
{
    char target[1200];
    git_reference *made = NULL;
    snprintf(target, sizeof(target), "refs/remotes/origin/%s", branch);
    int rc = git_reference_symbolic_create(&made, repo, "refs/remotes/origin/HEAD", target, 1, NULL);
    git_reference_free(made);
    return rc;
}

static int point_head(struct clone *clone, git_object *commit)
{
    git_repository *repo = clone->call->repo;
    const char *branch = clone->head[0] ? clone->head + strlen("refs/heads/") : NULL;
    int rc = 0;
    if (branch && !clone->bare && commit) {
        git_reference *made = NULL;
        rc = git_reference_create(&made, repo, clone->head, git_object_id(commit), 1, "clone");
        git_reference_free(made);
        if (rc == 0 && !clone->wanted)
            rc = point_remote_head(repo, branch);
    }
    if (rc == 0 && branch && !clone->bare)
        rc = git_remote_track(repo, branch, "origin", clone->head);
    if (rc == 0)
        rc = branch ? git_repository_set_head(repo, clone->head)
                    : git_repository_set_head_detached(repo, git_object_id(commit));
    return rc;
}

static int check_out(struct clone *clone, git_commit *commit, struct err *err)
{
    struct git_guard guard;
    int rc = git_clone_files(clone->call, commit, err);
    if (rc <= 0)
        return rc;
    git_checkout_options options;
    git_checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    options.checkout_strategy = GIT_CHECKOUT_SAFE | GIT_CHECKOUT_RECREATE_MISSING;
    git_guard_checkout(&guard, clone->call, &options);
    rc = git_checkout_head(clone->call->repo, &options);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot check out what was cloned");
}

static int set_up(struct clone *clone, struct err *err)
{
    git_object *tip = NULL, *commit = NULL;
    int rc = 0;
    if (!clone->empty)
        rc = git_object_lookup(&tip, clone->call->repo, &clone->tip, GIT_OBJECT_ANY);
    if (rc == 0 && tip)
        rc = git_object_peel(&commit, tip, GIT_OBJECT_COMMIT);
    if (rc == 0)
        rc = point_head(clone, commit);
    if (rc != 0)
        git_fail(err, rc, "cannot set HEAD");
    else if (!clone->bare && commit)
        rc = check_out(clone, (git_commit *)commit, err);
    git_object_free(tip);
    git_object_free(commit);
    return rc == 0 ? 0 : -1;
}

/* Files that moved up have other times than the index knows; where that cannot be written, the next look does it. */
static void note_moves(git_repository *repo)
{
    git_diff *diff = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_UPDATE_INDEX;
    options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
    if (git_diff_index_to_workdir(&diff, repo, NULL, &options) != 0)
        git_error_clear();
    git_diff_free(diff);
}

/* The repository is opened anew at its place: the answer tells of it there. */
static int take_name(struct clone *clone, struct err *err)
{
    struct git_call *call = clone->call;
    git_repository_free(call->repo);
    call->repo = NULL;
    if (clone->inside) {
        if (git_clone_move_up(call->confine, clone->temporary, call->path, err) != 0)
            return -1;
    } else if (rename(clone->temporary, call->path) != 0) { /* which replaces an empty directory, and nothing else */
        if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
            return err_set(err, ERR_ALREADY_EXISTS, "something stands where the clone was to be");
        return err_set_errno(err, err_from_errno(errno), errno, "cannot give the clone its name");
    }
    snprintf(call->root, sizeof(call->root), "%s", call->path);
    int rc = git_repository_open_ext(&call->repo, call->path, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
    if (rc == 0 && clone->inside && !clone->bare)
        note_moves(call->repo);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot open the clone");
}

static int run(struct clone *clone, const struct git_url *url, struct err *err)
{
    int rc = make_repository(clone, url, err);
    if (rc == 0)
        rc = connect_remote(clone, err);
    if (rc == 0)
        rc = choose_head(clone, err);
    if (rc == 0)
        rc = fetch(clone, err);
    if (rc == 0)
        rc = set_up(clone, err);
    git_net_deinit(&clone->net);
    if (rc == 0 && git_call_late(clone->call))
        rc = git_fail(err, git_stop(NULL), "cannot clone");
    if (rc == 0)
        rc = take_name(clone, err);
    return rc;
}

int git_clone_operation(struct git_call *call, struct err *err)
{
    struct clone *clone = calloc(1, sizeof(*clone));
    struct git_url url;
    const char *text = git_param_text(call, "url");
    if (!clone)
        return err_set(err, ERR_INTERNAL, "out of memory");
    clone->call = call;
    clone->bare = git_param_bool(call, "bare", false);
    clone->inside = git_param_bool(call, "inside", false);
    clone->wanted = git_param_text(call, "branch");
    int rc = temporary_path(clone, err);
    if (rc == 0 && !text) {
        rc = err_set(err, ERR_INVALID_REQUEST, "the url is wanted");
        err_field(err, "url");
    }
    if (rc == 0)
        rc = git_url_read(call, "url", text, confine_base_dir(call->confine), true, &url, err);
    if (rc == 0)
        rc = git_net_init(&clone->net, call, &url, err);
    if (rc == 0)
        rc = run(clone, &url, err);
    if (rc == 0) {
        json_out_path(&call->result, "url", url.text);
        json_out_text(&call->result, "branch", clone->head[0] ? clone->head + strlen("refs/heads/") : NULL);
        json_out_bool(&call->result, "bare", clone->bare);
        json_out_bool(&call->result, "empty", clone->empty);
    }
    free(clone);
    return rc;
}
