/* The commits that lead to one, in the order of `git log`. A walk of our own: libgit2's ends with an error where a
 * shallow clone ends, and knows no paths. */
#include "helper/git_history.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT_OTHERWISE = 50 };

/* A commit that was found and not yet looked at. The newest is next; of equal ones the one that was found first. */
struct pending {
    git_commit *commit;
    uint64_t order;
};

struct walk {
    struct git_call *call;
    struct git_paths paths; /* empty, or with the whole tree among them: all commits count */
    bool all;
    struct pending *heap;
    size_t len, cap;
    uint64_t found;
    git_oid *seen; /* open addressing; an all-zero id is a free place */
    size_t seen_len, seen_cap;
    bool cut; /* the history goes on where the clone does not */
};

int git_log_parent(const struct git_call *call, const git_commit *commit, unsigned n, git_commit **out, struct err *err)
{
    int rc = git_commit_parent(out, commit, n);
    if (rc == 0)
        return 0;
    *out = NULL;
    if (rc == GIT_ENOTFOUND && git_repository_is_shallow(call->repo) == 1)
        return 1;
    return git_fail(err, rc, "cannot read a parent commit");
}

static size_t seen_place(const git_oid *seen, size_t cap, const git_oid *oid)
{
    size_t at;
    memcpy(&at, oid->id, sizeof at); /* ids are hashes already */
    for (at &= cap - 1; !git_oid_is_zero(&seen[at]) && !git_oid_equal(&seen[at], oid);)
        at = (at + 1) & (cap - 1);
    return at;
}

static int seen_grow(struct walk *walk)
{
    size_t cap = walk->seen_cap ? walk->seen_cap * 2 : 256;
    git_oid *seen = calloc(cap, sizeof *seen);
    if (!seen)
        return -1;
    for (size_t i = 0; i < walk->seen_cap; i++)
        if (!git_oid_is_zero(&walk->seen[i]))
            seen[seen_place(seen, cap, &walk->seen[i])] = walk->seen[i];
    free(walk->seen);
    walk->seen = seen;
    walk->seen_cap = cap;
    return 0;
}

static bool comes_before(const struct pending *a, const struct pending *b)
{
    git_time_t a_time = git_commit_time(a->commit), b_time = git_commit_time(b->commit);
    return a_time != b_time ? a_time > b_time : a->order < b->order;
}

/* Takes the commit, or frees it where it was met before. */
static int push(struct walk *walk, git_commit *commit, struct err *err)
{
    if ((walk->seen_len + 1) * 2 > walk->seen_cap && seen_grow(walk) != 0)
        goto no_memory;
    size_t place = seen_place(walk->seen, walk->seen_cap, git_commit_id(commit));
    if (!git_oid_is_zero(&walk->seen[place])) {
        git_commit_free(commit);
        return 0;
    }
    if (walk->len == walk->cap) {
        size_t cap = walk->cap ? walk->cap * 2 : 64;
        struct pending *heap = realloc(walk->heap, cap * sizeof *heap);
        if (!heap)
            goto no_memory;
        walk->heap = heap;
        walk->cap = cap;
    }
    walk->seen[place] = *git_commit_id(commit);
    walk->seen_len++;
    struct pending added = {.commit = commit, .order = walk->found++};
    size_t at = walk->len++;
    for (; at > 0 && comes_before(&added, &walk->heap[(at - 1) / 2]); at = (at - 1) / 2)
        walk->heap[at] = walk->heap[(at - 1) / 2];
    walk->heap[at] = added;
    return 0;
no_memory:
    git_commit_free(commit);
    return err_set(err, ERR_INTERNAL, "out of memory");
}

static git_commit *pop(struct walk *walk)
{
    git_commit *first = walk->heap[0].commit;
    struct pending last = walk->heap[--walk->len];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < walk->len; at = child) {
        if (child + 1 < walk->len && comes_before(&walk->heap[child + 1], &walk->heap[child]))
            child++;
        if (!comes_before(&walk->heap[child], &last))
            break;
        walk->heap[at] = walk->heap[child];
    }
    if (walk->len > 0)
        walk->heap[at] = last;
    return first;
}

/* What a tree has at a path; NULL for nothing. */
static git_tree_entry *entry_at(const git_tree *tree, const char *path)
{
    git_tree_entry *entry = NULL;
    return tree && git_tree_entry_bypath(&entry, tree, path) == 0 ? entry : NULL;
}

/* Whether two trees (NULL: nothing) agree in all paths. */
static bool same_paths(const struct walk *walk, const git_tree *a, const git_tree *b)
{
    if (a && b && git_oid_equal(git_tree_id(a), git_tree_id(b)))
        return true;
    bool same = true;
    for (size_t i = 0; same && i < walk->paths.count; i++) {
        git_tree_entry *in_a = entry_at(a, walk->paths.items[i]), *in_b = entry_at(b, walk->paths.items[i]);
        same = !in_a == !in_b && (!in_a || (git_oid_equal(git_tree_entry_id(in_a), git_tree_entry_id(in_b)) &&
                                            git_tree_entry_filemode_raw(in_a) == git_tree_entry_filemode_raw(in_b)));
        git_tree_entry_free(in_a);
        git_tree_entry_free(in_b);
    }
    return same;
}

/* Whether the commit did something to the paths. As git simplifies: one that has them as one parent has (*out_same,
 * else -1) is no news, and what its other parents did to them neither. */
static int look_at_paths(struct walk *walk, const git_commit *commit, bool *out_counts, int *out_same, struct err *err)
{
    git_tree *tree = NULL, *parent_tree;
    git_commit *parent;
    unsigned parent_count = git_commit_parentcount(commit), present = 0;
    *out_same = -1;
    int rc = git_commit_tree(&tree, commit);
    if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    for (unsigned i = 0; rc == 0 && *out_same < 0 && i < parent_count; i++) {
        int found = git_log_parent(walk->call, commit, i, &parent, err);
        if (found == 1)
            continue;
        rc = found == 0 ? git_commit_tree(&parent_tree, parent) : -1;
        if (found == 0 && rc != 0)
            git_fail(err, rc, "cannot read a tree");
        git_commit_free(parent);
        if (rc != 0)
            break;
        present++;
        if (same_paths(walk, tree, parent_tree))
            *out_same = (int)i;
        git_tree_free(parent_tree);
    }
    *out_counts = *out_same < 0 && (present > 0 || !same_paths(walk, tree, NULL));
    git_tree_free(tree);
    return rc == 0 ? 0 : -1;
}

/* Puts the parents behind a commit, and tells whether it counts. */
static int follow(struct walk *walk, const git_commit *commit, bool *out_counts, struct err *err)
{
    int same = -1;
    *out_counts = true;
    if (!walk->all && look_at_paths(walk, commit, out_counts, &same, err) != 0)
        return -1;
    for (unsigned i = 0; i < git_commit_parentcount(commit); i++) {
        git_commit *parent;
        if (same >= 0 && (int)i != same)
            continue;
        int rc = git_log_parent(walk->call, commit, i, &parent, err);
        if (rc == 1)
            walk->cut = true;
        else if (rc != 0 || push(walk, parent, err) != 0)
            return -1;
    }
    return 0;
}

static void walk_deinit(struct walk *walk)
{
    for (size_t i = 0; i < walk->len; i++)
        git_commit_free(walk->heap[i].commit);
    free(walk->heap);
    free(walk->seen);
    git_paths_free(&walk->paths);
}

/* Writes the commits after the first `skip` that count, `limit` at most; *out_more tells of further ones. */
static int write_commits(struct walk *walk, int64_t skip, int64_t limit, bool *out_more, struct err *err)
{
    struct json_out *out = &walk->call->result;
    while (walk->len > 0 && !*out_more) {
        bool counts = true;
        git_commit *commit = pop(walk);
        int rc = git_call_late(walk->call) ? git_fail(err, git_stop(NULL), "log") : follow(walk, commit, &counts, err);
        if (rc == 0 && counts && skip-- <= 0) {
            *out_more = limit-- <= 0 || out->buf->len > GIT_ANSWER_FULL_BYTES;
            if (!*out_more) {
                json_out_open(out, NULL, '{');
                git_out_commit(out, commit);
                json_out_close(out, '}');
            }
        }
        git_commit_free(commit);
        if (rc != 0)
            return -1;
    }
    return 0;
}

int git_log_operation(struct git_call *call, struct err *err)
{
    struct walk walk = {.call = call};
    const char *ref = git_param_text(call, "ref");
    git_commit *start;
    bool more = false, unborn = !ref && git_repository_head_unborn(call->repo) == 1;
    if (git_param_paths(call, "paths", &walk.paths, err) != 0)
        return -1;
    walk.all = git_paths_spec(&walk.paths).count == 0;
    int rc = 0;
    if (!unborn) {
        rc = git_resolve_commit(call, "ref", ref, &start, err);
        if (rc == 0)
            rc = push(&walk, start, err);
    }
    json_out_open(&call->result, "commits", '[');
    if (rc == 0)
        rc = write_commits(&walk, git_param_int(call, "skip", 0), git_param_int(call, "limit", LIMIT_OTHERWISE), &more,
                           err);
    json_out_close(&call->result, ']');
    json_out_bool(&call->result, "truncated", more || walk.cut);
    walk_deinit(&walk);
    return rc;
}
