/* stash: puts local changes aside, and brings them back. */
#include "helper/git_history.h"
#include "helper/git_refs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* git_stash_save resets the working tree with options of its own, through links that stand where tracked files or
 * folders were: such a tree is refused before. dir is the folder that was seen to be none, of the path before. */
static int check_path(struct git_call *call, const char *path, uint32_t mode, char dir[PATH_MAX], struct err *err)
{
    char full[PATH_MAX];
    struct stat found;
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash ? (size_t)(slash - path) : 0;
    bool same_dir = dir_len == strlen(dir) && memcmp(dir, path, dir_len) == 0;
    int root_len = snprintf(full, sizeof full, "%s", git_repository_workdir(call->repo));
    if (root_len < 0 || (size_t)root_len + strlen(path) + 1 > sizeof full)
        return err_set(err, ERR_INVALID_PATH, "a path of the tree is too long");
    strcpy(full + root_len, path);
    if (git_is_guarded(call, path))
        return git_refuse_guarded(path, err);
    for (char *at = full + root_len + (same_dir ? dir_len : 0); *at;) {
        at += *at == '/';
        at += strcspn(at, "/");
        char kept = *at;
        if (kept == '\0' && mode == GIT_FILEMODE_LINK)
            break;
        *at = '\0';
        int rc = lstat(full, &found);
        *at = kept;
        if (rc != 0)
            break;
        if (S_ISLNK(found.st_mode))
            return err_set(err, ERR_WORKTREE_DIRTY, "a symbolic link stands in the way of %s", path);
    }
    memcpy(dir, path, dir_len);
    dir[dir_len] = '\0';
    return 0;
}

static int check_links(struct git_call *call, struct err *err)
{
    git_index *index = NULL;
    git_diff *staged = NULL;
    git_commit *head;
    git_tree *tree = NULL;
    char dir[PATH_MAX] = "";
    if (git_resolve_commit(call, "ref", NULL, &head, err) != 0)
        return -1;
    int rc = git_repository_index(&index, call->repo);
    if (rc == 0)
        rc = git_commit_tree(&tree, head);
    if (rc == 0)
        rc = git_diff_tree_to_index(&staged, call->repo, tree, index, NULL);
    if (rc != 0)
        git_fail(err, rc, "cannot compare with the index");
    for (size_t i = 0; rc == 0 && i < git_index_entrycount(index); i++) {
        const git_index_entry *entry = git_index_get_byindex(index, i);
        rc = check_path(call, entry->path, entry->mode, dir, err);
    }
    /* What HEAD has and the index has not, or has as something else, is written too. */
    for (size_t i = 0; rc == 0 && i < git_diff_num_deltas(staged); i++) {
        const git_diff_delta *delta = git_diff_get_delta(staged, i);
        if (delta->status != GIT_DELTA_ADDED)
            rc = check_path(call, delta->old_file.path, delta->old_file.mode, dir, err);
    }
    git_diff_free(staged);
    git_tree_free(tree);
    git_index_free(index);
    git_commit_free(head);
    return rc == 0 ? 0 : -1;
}

/* Untracked files go into the stash and away. */
static int check_untracked(struct git_call *call, struct err *err)
{
    const struct confine_guard *unused;
    git_diff *diff = NULL;
    git_diff_options options;
    if (confine_guards(call->confine, &unused) == 0)
        return 0;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS;
    options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
    int rc = git_diff_index_to_workdir(&diff, call->repo, NULL, &options);
    if (rc != 0)
        git_fail(err, rc, "cannot list untracked files");
    for (size_t i = 0; rc == 0 && i < git_diff_num_deltas(diff); i++) {
        const char *path = git_diff_get_delta(diff, i)->new_file.path;
        rc = git_is_guarded(call, path) ? git_refuse_guarded(path, err) : 0;
    }
    git_diff_free(diff);
    return rc == 0 ? 0 : -1;
}

static int push(struct git_call *call, struct err *err)
{
    git_signature *author;
    git_oid oid;
    unsigned flags = git_param_bool(call, "untracked", false) ? GIT_STASH_INCLUDE_UNTRACKED : GIT_STASH_DEFAULT;
    if (git_merge_settled(call, err) != 0 || check_links(call, err) != 0 ||
        ((flags & GIT_STASH_INCLUDE_UNTRACKED) && check_untracked(call, err) != 0) ||
        git_call_author(call, "author", &author, err) != 0)
        return -1;
    int rc = git_stash_save(&oid, call->repo, author, git_param_text(call, "message"), flags);
    git_signature_free(author);
    if (rc != 0 && rc != GIT_ENOTFOUND)
        return git_fail(err, rc, "cannot stash");
    json_out_bool(&call->result, "stashed", rc == 0);
    if (rc == 0)
        git_out_oid(&call->result, "sha", &oid);
    else
        json_out_null(&call->result, "sha");
    return 0;
}

struct entry {
    size_t wanted;
    bool found;
    git_oid oid;
};

static int on_entry(size_t index, const char *message, const git_oid *oid, void *ctx)
{
    struct entry *entry = ctx;
    (void)message;
    if (index != entry->wanted)
        return 0;
    entry->found = true;
    entry->oid = *oid;
    return 1;
}

/* The entry that `index` names, 0 (the newest) without. */
static int find_entry(struct git_call *call, struct entry *out, struct err *err)
{
    int64_t index = git_param_int(call, "index", 0);
    *out = (struct entry){.wanted = index < 0 ? 0 : (size_t)index};
    int rc = git_stash_foreach(call->repo, on_entry, out);
    if (rc < 0)
        return git_fail(err, rc, "cannot read the stash");
    if (out->found)
        return 0;
    err_set(err, ERR_REFERENCE_NOT_FOUND, "there is no entry %zu in the stash", out->wanted);
    return err_field(err, "index");
}

/* What the entry removes. */
static int check_removals(struct git_call *call, const struct git_guard *guard, const git_oid *oid, struct err *err)
{
    git_commit *stash = NULL, *base = NULL;
    git_tree *to = NULL, *from = NULL;
    git_diff *diff = NULL;
    int rc = git_commit_lookup(&stash, call->repo, oid);
    if (rc == 0)
        rc = git_commit_parent(&base, stash, 0);
    if (rc == 0)
        rc = git_commit_tree(&to, stash);
    if (rc == 0)
        rc = git_commit_tree(&from, base);
    if (rc == 0)
        rc = git_diff_tree_to_tree(&diff, call->repo, from, to, NULL);
    if (rc == 0)
        rc = git_guard_removals(guard, diff, err);
    else
        git_fail(err, rc, "cannot read the entry");
    git_diff_free(diff);
    git_tree_free(from);
    git_tree_free(to);
    git_commit_free(base);
    git_commit_free(stash);
    return rc == 0 ? 0 : -1;
}

/* Conflicts between the entry and HEAD are left in the working tree, as a merge leaves them; the entry stays then. */
static int apply(struct git_call *call, struct entry *entry, struct err *err)
{
    if (git_merge_settled(call, err) != 0 || find_entry(call, entry, err) != 0)
        return -1;
    struct git_overwrite overwrite;
    git_stash_apply_options options;
    git_stash_apply_options_init(&options, GIT_STASH_APPLY_OPTIONS_VERSION);
    git_overwrite_init(&overwrite, call, GIT_CHECKOUT_SAFE, &options.checkout_options);
    int rc = check_removals(call, &overwrite.guard, &entry->oid, err);
    if (rc == 0 && (rc = git_stash_apply(call->repo, entry->wanted, &options)) != 0)
        git_overwrite_fail(&overwrite, rc, "cannot apply the stash", err);
    git_overwrite_deinit(&overwrite);
    if (rc != 0)
        return -1;
    git_index *index;
    rc = git_repository_index(&index, call->repo);
    if (rc != 0)
        return git_fail(err, rc, "cannot read the index");
    rc = git_index_has_conflicts(index) ? git_conflicts(call, index, err) : 0;
    git_index_free(index);
    return rc;
}

static void write_entry(struct git_call *call, const struct entry *entry)
{
    json_out_int(&call->result, "index", (int64_t)entry->wanted);
    git_out_oid(&call->result, "sha", &entry->oid);
}

static int drop_entry(struct git_call *call, const struct entry *entry, struct err *err)
{
    int rc = git_stash_drop(call->repo, entry->wanted);
    if (rc != 0)
        return git_fail(err, rc, "cannot drop the entry");
    write_entry(call, entry);
    return 0;
}

static int pop(struct git_call *call, struct err *err)
{
    struct entry entry;
    return apply(call, &entry, err) == 0 ? drop_entry(call, &entry, err) : -1;
}

static int apply_only(struct git_call *call, struct err *err)
{
    struct entry entry;
    if (apply(call, &entry, err) != 0)
        return -1;
    write_entry(call, &entry);
    return 0;
}

static int drop(struct git_call *call, struct err *err)
{
    struct entry entry;
    return find_entry(call, &entry, err) == 0 ? drop_entry(call, &entry, err) : -1;
}

static int on_listed(size_t index, const char *message, const git_oid *oid, void *ctx)
{
    struct git_call *call = ctx;
    git_commit *commit = NULL;
    json_out_open(&call->result, NULL, '{');
    json_out_int(&call->result, "index", (int64_t)index);
    git_out_oid(&call->result, "sha", oid);
    json_out_text(&call->result, "message", message);
    if (git_commit_lookup(&commit, call->repo, oid) == 0)
        json_out_time(&call->result, "time", git_commit_time(commit));
    else
        json_out_null(&call->result, "time");
    json_out_close(&call->result, '}');
    git_commit_free(commit);
    return call->result.buf->len > GIT_ANSWER_FULL_BYTES;
}

static int list(struct git_call *call, struct err *err)
{
    json_out_open(&call->result, "stashes", '[');
    int rc = git_stash_foreach(call->repo, on_listed, call);
    json_out_close(&call->result, ']');
    json_out_bool(&call->result, "truncated", rc == 1);
    return rc < 0 && rc != GIT_ENOTFOUND ? git_fail(err, rc, "cannot list the stash") : 0;
}

int git_stash_operation(struct git_call *call, struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(struct git_call *call, struct err *err);
    } actions[] = {{"push", push}, {"pop", pop}, {"apply", apply_only}, {"drop", drop}, {"list", list}};
    const char *action = git_param_text(call, "action");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(action ? action : "push", actions[i].name) == 0)
            return actions[i].run(call, err);
    err_set(err, ERR_INVALID_REQUEST, "no such action: %s", action);
    return err_field(err, "action");
}
