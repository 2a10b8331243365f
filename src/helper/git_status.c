/* What a repository and its files are like, in one answer; an operation of `abxd-helper git`. */
#include "helper/git_basic.h"
#include "helper/git_status_list.h"

#include <stdio.h>
#include <string.h>

enum { FILES_DEFAULT = 5000 };

static const char *state_name(int state)
{
    switch (state) {
    case GIT_REPOSITORY_STATE_NONE:
        return "clean";
    case GIT_REPOSITORY_STATE_MERGE:
        return "merge";
    case GIT_REPOSITORY_STATE_REVERT:
    case GIT_REPOSITORY_STATE_REVERT_SEQUENCE:
        return "revert";
    case GIT_REPOSITORY_STATE_CHERRYPICK:
    case GIT_REPOSITORY_STATE_CHERRYPICK_SEQUENCE:
        return "cherrypick";
    case GIT_REPOSITORY_STATE_BISECT:
        return "bisect";
    case GIT_REPOSITORY_STATE_REBASE:
    case GIT_REPOSITORY_STATE_REBASE_INTERACTIVE:
    case GIT_REPOSITORY_STATE_REBASE_MERGE:
        return "rebase";
    default:
        return "apply_mailbox";
    }
}

static const char *index_name(unsigned status)
{
    if (status & GIT_STATUS_INDEX_RENAMED)
        return "renamed";
    if (status & GIT_STATUS_INDEX_NEW)
        return "new";
    if (status & GIT_STATUS_INDEX_DELETED)
        return "deleted";
    if (status & GIT_STATUS_INDEX_TYPECHANGE)
        return "typechange";
    return status & GIT_STATUS_INDEX_MODIFIED ? "modified" : NULL;
}

static const char *worktree_name(unsigned status)
{
    if (status & GIT_STATUS_IGNORED)
        return "ignored";
    if (status & GIT_STATUS_WT_NEW)
        return "untracked";
    if (status & GIT_STATUS_WT_DELETED)
        return "deleted";
    if (status & GIT_STATUS_WT_TYPECHANGE)
        return "typechange";
    if (status & GIT_STATUS_WT_UNREADABLE)
        return "unreadable";
    return status & GIT_STATUS_WT_MODIFIED ? "modified" : NULL;
}

/* --- the branch */

static void out_upstream(struct json_out *out, git_repository *repo, git_reference *branch, const char *branch_ref)
{
    git_buf name = {0};
    git_reference *upstream = NULL;
    size_t ahead, behind;
    bool known = git_branch_upstream_name(&name, repo, branch_ref) == 0;
    const char *shown = known ? name.ptr : NULL;
    if (known && strncmp(shown, "refs/remotes/", 13) == 0)
        shown += 13;
    else if (known && strncmp(shown, "refs/heads/", 11) == 0)
        shown += 11;
    json_out_text(out, "upstream", shown);
    /* One that was configured and is not there (yet) has no distance. */
    const git_oid *ours = branch ? git_reference_target(branch) : NULL, *theirs = NULL;
    if (known && git_reference_lookup(&upstream, repo, name.ptr) == 0)
        theirs = git_reference_target(upstream);
    if (ours && theirs && git_graph_ahead_behind(&ahead, &behind, repo, ours, theirs) == 0) {
        json_out_int(out, "ahead", (int64_t)ahead);
        json_out_int(out, "behind", (int64_t)behind);
    } else {
        json_out_null(out, "ahead");
        json_out_null(out, "behind");
    }
    git_reference_free(upstream);
    git_buf_dispose(&name);
}

static void out_branch(struct json_out *out, git_repository *repo)
{
    git_reference *head = NULL, *branch = NULL;
    bool detached = git_repository_head_detached(repo) == 1;
    const char *branch_ref = NULL;
    if (!detached && git_reference_lookup(&head, repo, "HEAD") == 0)
        branch_ref = git_reference_symbolic_target(head);
    if (branch_ref && git_reference_lookup(&branch, repo, branch_ref) != 0)
        branch = NULL; /* unborn */
    const char *shown = branch_ref;
    if (shown && strncmp(shown, "refs/heads/", 11) == 0)
        shown += 11;
    json_out_text(out, "branch", shown);
    json_out_bool(out, "detached", detached);
    json_out_bool(out, "unborn", git_repository_head_unborn(repo) == 1);
    git_out_head(out, repo);
    out_upstream(out, repo, branch, branch_ref ? branch_ref : "HEAD");
    json_out_text(out, "state", state_name(git_repository_state(repo)));
    git_reference_free(branch);
    git_reference_free(head);
}

/* --- files */

/* Whether libgit2 may look into the submodules: it opens each of them, wherever their `.git` leads. */
static bool submodules_stay_inside(const struct git_call *call)
{
    git_index *index = NULL;
    bool inside = true;
    if (git_repository_index(&index, call->repo) != 0)
        return false;
    for (size_t i = 0, count = git_index_entrycount(index); i < count && inside; i++) {
        const git_index_entry *entry = git_index_get_byindex(index, i);
        struct err err;
        char path[PATH_MAX];
        if (entry->mode != GIT_FILEMODE_COMMIT)
            continue;
        int len = snprintf(path, sizeof path, "%s/%s", call->root, entry->path);
        inside = len < (int)sizeof path && (git_repository_check(call->confine, path, &err) == 0 ||
                                            err.code == ERR_REPOSITORY_NOT_FOUND || err.code == ERR_FILE_NOT_FOUND);
    }
    git_index_free(index);
    return inside;
}

static unsigned status_flags(const struct git_call *call)
{
    unsigned flags = GIT_STATUS_OPT_RENAMES_HEAD_TO_INDEX | GIT_STATUS_OPT_INCLUDE_UNREADABLE;
    if (git_param_bool(call, "untracked", true))
        flags |= GIT_STATUS_OPT_INCLUDE_UNTRACKED;
    if (git_param_bool(call, "ignored", false))
        flags |= GIT_STATUS_OPT_INCLUDE_IGNORED;
    if (!submodules_stay_inside(call))
        flags |= GIT_STATUS_OPT_EXCLUDE_SUBMODULES;
    return flags;
}

static void out_file(struct json_out *out, const git_status_entry *entry)
{
    const git_diff_delta *staged = entry->head_to_index, *unstaged = entry->index_to_workdir;
    bool renamed = (entry->status & GIT_STATUS_INDEX_RENAMED) != 0;
    json_out_open(out, NULL, '{');
    json_out_path(out, "path", unstaged ? unstaged->old_file.path : staged->new_file.path);
    if (renamed)
        json_out_path(out, "old_path", staged->old_file.path);
    json_out_text(out, "index", index_name(entry->status));
    json_out_text(out, "worktree", worktree_name(entry->status));
    json_out_bool(out, "conflicted", (entry->status & GIT_STATUS_CONFLICTED) != 0);
    json_out_close(out, '}');
}

static int out_files(struct git_call *call, struct err *err)
{
    struct json_out *out = &call->result;
    struct git_status_files files = {0};
    /* A bare repository has no files to differ. */
    if (!git_repository_is_bare(call->repo) && git_status_files_read(call, status_flags(call), &files, err) != 0) {
        git_status_files_deinit(&files);
        return -1;
    }
    size_t limit = (size_t)git_param_int(call, "limit", FILES_DEFAULT), changes = 0;
    for (size_t i = 0; i < files.count; i++)
        changes += files.entries[i].status != GIT_STATUS_IGNORED;
    json_out_bool(out, "clean", changes == 0);
    json_out_open(out, "files", '[');
    for (size_t i = 0; i < files.count && i < limit; i++)
        out_file(out, &files.entries[i]);
    json_out_close(out, ']');
    json_out_bool(out, "truncated", files.count > limit);
    git_status_files_deinit(&files);
    return 0;
}

int git_status(struct git_call *call, struct err *err)
{
    json_out_path(&call->result, "root", call->root);
    out_branch(&call->result, call->repo);
    return out_files(call, err);
}
