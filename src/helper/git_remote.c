/* The list of operations on remotes, and `remote` itself: the names that a repository has for others. */
#include "helper/git_net.h"

#include <stdio.h>
#include <string.h>

int git_remote_track(git_repository *repo, const char *branch, const char *remote, const char *merge_ref)
{
    git_config *config;
    char key[1100];
    int rc = git_repository_config(&config, repo);
    if (rc != 0)
        return rc;
    snprintf(key, sizeof(key), "branch.%s.remote", branch);
    rc = git_config_set_string(config, key, remote);
    snprintf(key, sizeof(key), "branch.%s.merge", branch);
    if (rc == 0)
        rc = git_config_set_string(config, key, merge_ref);
    git_config_free(config);
    return rc;
}

/* As stored: what insteadOf makes of it is no business of a list. */
static void out_remote(struct json_out *out, git_config *config, const char *name)
{
    char key[1100];
    const char *url = NULL, *push_url = NULL;
    snprintf(key, sizeof(key), "remote.%s.url", name);
    if (git_config_get_string(&url, config, key) != 0)
        url = NULL;
    snprintf(key, sizeof(key), "remote.%s.pushurl", name);
    if (git_config_get_string(&push_url, config, key) != 0)
        push_url = NULL;
    json_out_text(out, "name", name);
    git_url_out(out, "url", url);
    if (push_url)
        git_url_out(out, "push_url", push_url);
}

static int list(struct git_call *call, struct err *err)
{
    git_strarray names;
    git_config *config = NULL;
    int rc = git_repository_config_snapshot(&config, call->repo);
    if (rc == 0)
        rc = git_remote_list(&names, call->repo);
    if (rc != 0) {
        git_config_free(config);
        return git_fail(err, rc, "cannot list the remotes");
    }
    json_out_open(&call->result, "remotes", '[');
    for (size_t i = 0; i < names.count; i++) {
        json_out_open(&call->result, NULL, '{');
        out_remote(&call->result, config, names.strings[i]);
        json_out_close(&call->result, '}');
    }
    json_out_close(&call->result, ']');
    git_strarray_dispose(&names);
    git_config_free(config);
    return 0;
}

static int not_there(struct err *err, const char *name)
{
    err_set(err, ERR_REFERENCE_NOT_FOUND, "no such remote: %.150s", name);
    return err_field(err, "name");
}

static int check_name(const char *name, struct err *err)
{
    int valid = 0;
    if (name && strlen(name) <= 250 && git_remote_name_is_valid(&valid, name) == 0 && valid)
        return 0;
    err_set(err, ERR_INVALID_REQUEST, name ? "no valid name of a remote" : "the name of the remote is wanted");
    return err_field(err, "name");
}

static int read_url(const struct git_call *call, struct git_url *url, struct err *err)
{
    const char *text = git_param_text(call, "url");
    if (text)
        return git_url_read(call, "url", text, confine_base_dir(call->confine), false, url, err);
    err_set(err, ERR_INVALID_REQUEST, "the url of the remote is wanted");
    return err_field(err, "url");
}

static int add(struct git_call *call, const char *name, struct err *err)
{
    struct git_url url;
    git_remote *remote;
    if (read_url(call, &url, err) != 0)
        return -1;
    int rc = git_remote_create(&remote, call->repo, name, url.text);
    if (rc == GIT_EEXISTS) {
        err_set(err, ERR_ALREADY_EXISTS, "there is a remote of that name already: %.150s", name);
        return err_field(err, "name");
    }
    if (rc != 0)
        return git_fail(err, rc, "cannot add the remote");
    git_remote_free(remote);
    json_out_text(&call->result, "name", name);
    json_out_path(&call->result, "url", url.text);
    return 0;
}

static int look_for(struct git_call *call, const char *name, struct err *err)
{
    git_remote *remote;
    int rc = git_remote_lookup(&remote, call->repo, name);
    if (rc == GIT_ENOTFOUND)
        return not_there(err, name);
    if (rc != 0)
        return git_fail(err, rc, "cannot look up the remote");
    git_remote_free(remote);
    return 0;
}

static int delete (struct git_call *call, const char *name, struct err *err)
{
    int rc = git_remote_delete(call->repo, name);
    if (rc == GIT_ENOTFOUND)
        return not_there(err, name);
    if (rc != 0)
        return git_fail(err, rc, "cannot remove the remote");
    json_out_text(&call->result, "name", name);
    return 0;
}

static int set_url(struct git_call *call, const char *name, struct err *err)
{
    struct git_url url;
    if (read_url(call, &url, err) != 0)
        return -1;
    int rc = git_remote_set_url(call->repo, name, url.text);
    if (rc != 0)
        return git_fail(err, rc, "cannot set the url of the remote");
    json_out_text(&call->result, "name", name);
    json_out_path(&call->result, "url", url.text);
    return 0;
}

static int remote(struct git_call *call, struct err *err)
{
    const char *action = git_param_text(call, "action"), *name = git_param_text(call, "name");
    if (!action || strcmp(action, "list") == 0)
        return list(call, err);
    if (check_name(name, err) != 0)
        return -1;
    if (strcmp(action, "add") == 0)
        return add(call, name, err);
    if (look_for(call, name, err) != 0)
        return -1;
    if (strcmp(action, "remove") == 0)
        return delete (call, name, err);
    if (strcmp(action, "set_url") == 0)
        return set_url(call, name, err);
    err_set(err, ERR_INVALID_REQUEST, "one of list, add, remove, set_url");
    return err_field(err, "action");
}

const struct git_operation git_remote_operations[] = {
    {"remote", remote, 0},
    {"clone", git_clone_operation, GIT_OPENS_ITSELF | GIT_NETWORK},
    {"fetch", git_fetch_operation, GIT_NETWORK},
    {"pull", git_pull_operation, GIT_NETWORK | GIT_NEEDS_WORKTREE},
    {"push", git_push_operation, GIT_NETWORK},
    {NULL, NULL, 0},
};
