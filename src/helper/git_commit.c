/* Makes a commit of what is staged; an operation of `abxd-helper git`. */
#include "helper/git_basic.h"

#include <stdlib.h>
#include <string.h>

enum { PARENTS_MAX = 64 };

/* What a commit is made of. */
struct draft {
    git_commit *parents[PARENTS_MAX]; /* the first is HEAD's, where there is one */
    size_t parent_count;
    git_tree *tree;
    git_buf message;
    git_signature *author, *committer;
};

static void draft_deinit(struct draft *draft)
{
    for (size_t i = 0; i < draft->parent_count; i++)
        git_commit_free(draft->parents[i]);
    git_tree_free(draft->tree);
    git_buf_dispose(&draft->message);
    git_signature_free(draft->author);
    git_signature_free(draft->committer);
}

struct merge_heads {
    struct git_call *call;
    struct draft *draft;
};

static int on_merge_head(const git_oid *oid, void *ctx)
{
    struct merge_heads *heads = ctx;
    struct draft *draft = heads->draft;
    if (draft->parent_count == PARENTS_MAX)
        return GIT_ERROR;
    int rc = git_commit_lookup(&draft->parents[draft->parent_count], heads->call->repo, oid);
    draft->parent_count += rc == 0;
    return rc;
}

static int find_parents(struct git_call *call, struct draft *draft, struct err *err)
{
    struct merge_heads heads = {call, draft};
    if (git_repository_head_unborn(call->repo) != 1) {
        if (git_resolve_commit(call, "", NULL, &draft->parents[0], err) != 0)
            return -1;
        draft->parent_count = 1;
    }
    int rc = git_repository_mergehead_foreach(call->repo, on_merge_head, &heads);
    return rc < 0 && rc != GIT_ENOTFOUND ? git_fail(err, rc, "cannot read MERGE_HEAD") : 0;
}

/* The tree of the index; with `all`, of what tracked files are now. */
static int make_tree(struct git_call *call, struct draft *draft, struct err *err)
{
    git_index *index = NULL;
    git_oid oid;
    int rc = git_repository_index(&index, call->repo);
    if (rc == 0 && git_param_bool(call, "all", false)) {
        rc = git_index_update_all(index, NULL, git_on_stage, call);
        if (rc == 0)
            rc = git_index_write(index);
    }
    if (rc < 0) {
        git_fail(err, rc, "cannot stage");
    } else if (git_index_has_conflicts(index)) {
        rc = git_conflicts(call, index, err);
    } else {
        rc = git_index_write_tree(&oid, index);
        if (rc == 0)
            rc = git_tree_lookup(&draft->tree, call->repo, &oid);
        if (rc < 0)
            git_fail(err, rc, "cannot write the tree");
    }
    git_index_free(index);
    return rc < 0 ? -1 : 0;
}

/* What a merge left is the message and then, as a remark, its conflicts; a line of the message itself may begin with
 * "#". All other remarks are those of a rebase. */
static int clean_prepared(struct git_call *call, git_buf *out, char *prepared)
{
    static const char *const remarks[] = {"\n#Conflicts:", "\n# Conflicts:"};
    bool merge = git_repository_state(call->repo) == GIT_REPOSITORY_STATE_MERGE;
    for (size_t i = 0; merge && i < sizeof remarks / sizeof remarks[0]; i++) {
        char *remark = strstr(prepared, remarks[i]);
        if (remark)
            *remark = '\0';
    }
    return git_message_prettify(out, prepared, !merge, '#');
}

/* `message`, else what the merge left for it; with amend it may be none, and the old one stays. */
static int find_message(struct git_call *call, struct draft *draft, bool amend, struct err *err)
{
    const char *given = git_param_text(call, "message");
    git_buf prepared = {0};
    if (!given && amend)
        return 0;
    int rc = 0;
    if (given)
        rc = git_message_prettify(&draft->message, given, 0, '#');
    else if (git_repository_message(&prepared, call->repo) == 0)
        rc = clean_prepared(call, &draft->message, prepared.ptr);
    git_buf_dispose(&prepared);
    if (rc < 0)
        return git_fail(err, rc, "cannot take the message");
    if (draft->message.size == 0) {
        err_set(err, ERR_INVALID_REQUEST, "a commit has a message");
        return err_field(err, "message");
    }
    return 0;
}

static int find_people(struct git_call *call, struct draft *draft, struct err *err)
{
    if (git_call_author(call, "author", &draft->author, err) != 0)
        return -1;
    /* Who commits is the repository's own user; one that has none takes the author's name. */
    if (git_signature_default(&draft->committer, call->repo) < 0 &&
        git_signature_dup(&draft->committer, draft->author) < 0)
        return git_fail(err, -1, "cannot tell the committer");
    return 0;
}

/* Whether the tree is what it was, so that there is nothing to commit. */
static bool is_empty(const struct draft *draft)
{
    if (draft->parent_count == 0)
        return git_tree_entrycount(draft->tree) == 0;
    return draft->parent_count == 1 && git_oid_equal(git_tree_id(draft->tree), git_commit_tree_id(draft->parents[0]));
}

static int amend(struct git_call *call, const struct draft *draft, git_oid *out, struct err *err)
{
    if (draft->parent_count == 0)
        return err_set(err, ERR_REFERENCE_NOT_FOUND, "there is no commit yet to amend");
    if (draft->parent_count > 1)
        return err_set(err, ERR_INVALID_REQUEST, "a merge is in progress: commit it, then amend");
    bool other_author = cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(call->params, "author"));
    int rc = git_commit_amend(out, draft->parents[0], "HEAD", other_author ? draft->author : NULL, draft->committer,
                              draft->message.size > 0 ? "UTF-8" : NULL,
                              draft->message.size > 0 ? draft->message.ptr : NULL, draft->tree);
    return rc < 0 ? git_fail(err, rc, "cannot amend the commit") : 0;
}

static int create(struct git_call *call, const struct draft *draft, git_oid *out, struct err *err)
{
    if (is_empty(draft) && !git_param_bool(call, "allow_empty", false))
        return err_set(err, ERR_INVALID_REQUEST,
                       "nothing to commit: stage changes first (add, or all), or say allow_empty");
    int rc = git_commit_create(out, call->repo, "HEAD", draft->author, draft->committer, NULL, draft->message.ptr,
                               draft->tree, draft->parent_count, (const git_commit **)draft->parents);
    return rc < 0 ? git_fail(err, rc, "cannot commit") : 0;
}

static int finish(struct git_call *call, const git_oid *oid, struct err *err)
{
    git_commit *commit;
    if (git_state_end(call, err) != 0)
        return -1;
    int rc = git_commit_lookup(&commit, call->repo, oid);
    if (rc < 0)
        return git_fail(err, rc, "the commit is made, but cannot be read");
    git_out_commit(&call->result, commit);
    git_commit_free(commit);
    return 0;
}

int git_commit_op(struct git_call *call, struct err *err)
{
    struct draft draft = {0};
    git_oid oid;
    bool amends = git_param_bool(call, "amend", false);
    int rc = -1;
    if (find_message(call, &draft, amends, err) == 0 && find_people(call, &draft, err) == 0 &&
        find_parents(call, &draft, err) == 0 && make_tree(call, &draft, err) == 0)
        rc = amends ? amend(call, &draft, &oid, err) : create(call, &draft, &oid, err);
    if (rc == 0)
        rc = finish(call, &oid, err);
    draft_deinit(&draft);
    return rc;
}
