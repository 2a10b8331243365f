/* pull{remote,branch,strategy=ff-only|merge,credentials}: a fetch, and then the branch that is checked out goes where
 * the remote's is. */
#include "helper/git_net.h"
#include "helper/git_refs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pull {
    struct git_net net;
    char local[1024]; /* the short name of the branch that is checked out; "" while none is */
    char remote[300];
    char branch[1024]; /* refs/heads/… on the remote */
    bool only_branch;  /* the client named it: nothing else is fetched, as with git */
};

static int read_local(struct git_call *call, struct pull *pull, struct err *err)
{
    git_reference *head;
    int rc = git_reference_lookup(&head, call->repo, "HEAD");
    if (rc != 0)
        return git_fail(err, rc, "cannot read HEAD");
    const char *target = git_reference_type(head) == GIT_REFERENCE_SYMBOLIC ? git_reference_symbolic_target(head) : "";
    if (strncmp(target, "refs/heads/", 11) == 0)
        snprintf(pull->local, sizeof(pull->local), "%s", target + 11);
    git_reference_free(head);
    return 0;
}

static void read_config(git_config *config, const char *branch, const char *what, char *out, size_t size)
{
    char key[1100];
    const char *value;
    snprintf(key, sizeof(key), "branch.%s.%s", branch, what);
    if (git_config_get_string(&value, config, key) == 0)
        snprintf(out, size, "%s", value);
}

/* It becomes a refspec, and must be nothing else than a name then. */
static int set_branch(struct pull *pull, const char *name, struct err *err)
{
    int valid = 0;
    const char *prefix = strncmp(name, "refs/", 5) == 0 ? "" : "refs/heads/";
    int len = snprintf(pull->branch, sizeof(pull->branch), "%s%s", prefix, name);
    if (len > 0 && (size_t)len < sizeof(pull->branch) && git_reference_name_is_valid(&valid, pull->branch) == 0 &&
        valid)
        return 0;
    err_set(err, ERR_INVALID_REQUEST, "not a name of a branch: %.150s", name);
    return err_field(err, "branch");
}

/* What is given, else what the branch follows, else origin's branch of the same name. */
static int choose(struct git_call *call, struct pull *pull, struct err *err)
{
    const char *remote = git_param_text(call, "remote"), *branch = git_param_text(call, "branch");
    git_config *config;
    int rc = git_repository_config_snapshot(&config, call->repo);
    if (rc != 0)
        return git_fail(err, rc, "cannot read the configuration");
    char upstream[300] = "", merge[1024] = "";
    read_config(config, pull->local, "remote", upstream, sizeof(upstream));
    read_config(config, pull->local, "merge", merge, sizeof(merge));
    git_config_free(config);
    snprintf(pull->remote, sizeof(pull->remote), "%s", remote ? remote : upstream[0] ? upstream : "origin");
    pull->only_branch = branch != NULL;
    if (branch)
        return set_branch(pull, branch, err);
    if (!pull->local[0]) {
        err_set(err, ERR_INVALID_REQUEST, "no branch is checked out: name the one to pull");
        return err_field(err, "branch");
    }
    return set_branch(pull, merge[0] && strcmp(upstream, pull->remote) == 0 ? merge : pull->local, err);
}

static int fetch(struct pull *pull, git_commit **out, struct err *err)
{
    char *spec = pull->branch;
    git_strarray specs = {&spec, pull->only_branch ? 1 : 0};
    const git_remote_head **heads;
    size_t count;
    if (git_fetch_run(&pull->net, &specs, GIT_FETCH_PRUNE_UNSPECIFIED, err) != 0 ||
        git_fetch_check(&pull->net, &specs, err) != 0)
        return -1;
    int rc = git_remote_ls(&heads, &count, pull->net.remote);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (strcmp(heads[i]->name, pull->branch) == 0) {
            rc = git_commit_lookup(out, pull->net.call->repo, &heads[i]->oid);
            return rc == 0 ? 0 : git_fail(err, rc, "cannot read what was fetched");
        }
    if (rc != 0)
        return git_net_fail(&pull->net, rc, "cannot fetch", err);
    err_set(err, ERR_REFERENCE_NOT_FOUND, "the remote has no %.150s", pull->branch);
    return err_field(err, "branch");
}

static int check_strategy(struct git_call *call, const git_commit *theirs, struct err *err)
{
    git_annotated_commit *commit;
    git_merge_analysis_t analysis;
    git_merge_preference_t preference;
    int rc = git_annotated_commit_lookup(&commit, call->repo, git_commit_id(theirs));
    if (rc == 0) {
        rc = git_merge_analysis(&analysis, &preference, call->repo, (const git_annotated_commit **)&commit, 1);
        git_annotated_commit_free(commit);
    }
    if (rc != 0)
        return git_fail(err, rc, "cannot tell how to pull");
    if (analysis & (GIT_MERGE_ANALYSIS_UP_TO_DATE | GIT_MERGE_ANALYSIS_FASTFORWARD | GIT_MERGE_ANALYSIS_UNBORN))
        return 0;
    return err_set(err, ERR_NON_FAST_FORWARD,
                   "both sides have commits of their own: pull with strategy merge, or merge by hand");
}

static int join(struct pull *pull, git_commit *theirs, struct err *err)
{
    struct git_call *call = pull->net.call;
    const char *strategy = git_param_text(call, "strategy");
    char name[1400];
    if ((!strategy || strcmp(strategy, "merge") != 0) && check_strategy(call, theirs, err) != 0)
        return -1;
    snprintf(name, sizeof(name), "%s/%s", pull->remote,
             pull->branch + (strncmp(pull->branch, "refs/heads/", 11) == 0 ? 11 : 0));
    return git_merge_into_head(call, theirs, name, err);
}

int git_pull_operation(struct git_call *call, struct err *err)
{
    struct pull *pull = calloc(1, sizeof(*pull));
    git_commit *theirs = NULL;
    if (!pull)
        return err_set(err, ERR_INTERNAL, "out of memory");
    int rc = git_merge_settled(call, err);
    if (rc == 0)
        rc = read_local(call, pull, err);
    if (rc == 0)
        rc = choose(call, pull, err);
    if (rc == 0)
        rc = git_net_open(&pull->net, call, pull->remote, false, err);
    if (rc == 0) {
        pull->net.lists = true;
        json_out_open(&call->result, "updated", '[');
        rc = fetch(pull, &theirs, err);
        json_out_close(&call->result, ']');
        git_net_deinit(&pull->net);
    }
    if (rc == 0)
        rc = join(pull, theirs, err);
    git_commit_free(theirs);
    free(pull);
    return rc;
}
