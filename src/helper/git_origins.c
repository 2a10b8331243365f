/* Follows lines of a file into the past, for blame: as git does, newest commit first, each handing to its parents what
 * it did not write itself. */
#include "helper/git_origins.h"

#include "helper/git_history.h"
#include "helper/git_lines.h"

#include <stdlib.h>
#include <string.h>

/* A version of the file that may have written lines. */
struct suspect {
    git_commit *commit;
    char *path;
    git_oid blob;
    struct git_lines lines;
};

struct search {
    struct git_call *call;
    struct git_origins *origins;
    struct suspect **open;
    size_t open_count, open_cap;
    struct git_line_changes changes;
};

static int no_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory");
}

static void suspect_free(struct suspect *suspect)
{
    if (!suspect)
        return;
    git_commit_free(suspect->commit);
    free(suspect->path);
    free(suspect->lines.items);
    free(suspect);
}

/* *commit is taken, whatever happens. */
static struct suspect *suspect_new(git_commit *commit, const char *path, const git_oid *blob)
{
    struct suspect *suspect = calloc(1, sizeof *suspect);
    char *copy = strdup(path);
    if (!suspect || !copy) {
        free(suspect);
        free(copy);
        git_commit_free(commit);
        return NULL;
    }
    *suspect = (struct suspect){.commit = commit, .path = copy, .blob = *blob};
    return suspect;
}

/* Takes the suspect: among those that are open, into one that is the same, or nowhere if it has no lines. */
static int open_suspect(struct search *search, struct suspect *suspect, struct err *err)
{
    int rc = 0;
    if (suspect->lines.count == 0) {
        suspect_free(suspect);
        return 0;
    }
    for (size_t i = 0; i < search->open_count; i++) {
        struct suspect *other = search->open[i];
        if (!git_oid_equal(git_commit_id(other->commit), git_commit_id(suspect->commit)) ||
            strcmp(other->path, suspect->path) != 0)
            continue;
        rc = git_lines_merge(&other->lines, &suspect->lines);
        suspect_free(suspect);
        return rc == 0 ? 0 : no_memory(err);
    }
    if (git_lines_grow((void **)&search->open, search->open_count, &search->open_cap, sizeof(struct suspect *)) != 0) {
        suspect_free(suspect);
        return no_memory(err);
    }
    search->open[search->open_count++] = suspect;
    return 0;
}

/* The newest; of equal ones the one that was found first. */
static struct suspect *next_suspect(struct search *search)
{
    size_t newest = 0;
    for (size_t i = 1; i < search->open_count; i++)
        if (git_commit_time(search->open[i]->commit) > git_commit_time(search->open[newest]->commit))
            newest = i;
    struct suspect *found = search->open[newest];
    search->open_count--;
    memmove(search->open + newest, search->open + newest + 1, (search->open_count - newest) * sizeof(struct suspect *));
    return found;
}

static int on_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *ctx)
{
    (void)delta;
    struct search *search = ctx;
    if (git_call_late(search->call))
        return git_stop(NULL);
    /* A hunk without new lines names the line before it. */
    size_t at = (size_t)hunk->new_start - (hunk->new_lines > 0 ? 1 : 0);
    return git_lines_change(&search->changes, at, (size_t)hunk->new_lines, (size_t)hunk->old_lines);
}

static int compare(struct search *search, const git_oid *older, const git_oid *newer, struct err *err)
{
    git_blob *old_blob = NULL, *new_blob = NULL;
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
    options.context_lines = 0;
    search->changes.count = 0;
    int rc = git_blob_lookup(&old_blob, search->call->repo, older);
    if (rc == 0)
        rc = git_blob_lookup(&new_blob, search->call->repo, newer);
    if (rc == 0)
        rc = git_diff_blobs(old_blob, NULL, new_blob, NULL, &options, NULL, NULL, on_hunk, NULL, search);
    git_blob_free(old_blob);
    git_blob_free(new_blob);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot compare two versions of the file");
}

/* The file in a parent: by its path. NULL with 0 where it is not there. */
static int find_by_path(git_commit *parent, const char *path, struct suspect **out, struct err *err)
{
    git_tree *tree;
    git_tree_entry *entry = NULL;
    *out = NULL;
    int rc = git_commit_tree(&tree, parent);
    if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    rc = git_tree_entry_bypath(&entry, tree, path);
    git_tree_free(tree);
    if (rc == 0 && git_tree_entry_type(entry) == GIT_OBJECT_BLOB) {
        git_commit *own = NULL;
        if (git_commit_dup(&own, parent) == 0)
            *out = suspect_new(own, path, git_tree_entry_id(entry));
        rc = *out ? 0 : no_memory(err);
    } else if (rc == 0 || rc == GIT_ENOTFOUND) {
        rc = 0;
    } else {
        git_fail(err, rc, "cannot read a tree");
    }
    git_tree_entry_free(entry);
    return rc;
}

/* The file that became this one between a parent and the suspect, by its content; NULL with 0 for none. */
static int find_renamed(struct search *search, const struct suspect *suspect, git_commit *parent, struct suspect **out,
                        struct err *err)
{
    git_tree *tree = NULL, *parent_tree = NULL;
    git_diff *diff = NULL;
    git_diff_find_options find;
    git_diff_find_options_init(&find, GIT_DIFF_FIND_OPTIONS_VERSION);
    find.flags = GIT_DIFF_FIND_RENAMES;
    *out = NULL;
    int rc = git_commit_tree(&tree, suspect->commit);
    if (rc == 0)
        rc = git_commit_tree(&parent_tree, parent);
    if (rc == 0)
        rc = git_diff_tree_to_tree(&diff, search->call->repo, parent_tree, tree, NULL);
    if (rc == 0)
        rc = git_diff_find_similar(diff, &find);
    if (rc != 0)
        git_fail(err, rc, "cannot look for renamed files");
    for (size_t i = 0; rc == 0 && i < git_diff_num_deltas(diff); i++) {
        const git_diff_delta *delta = git_diff_get_delta(diff, i);
        if (delta->status != GIT_DELTA_RENAMED || strcmp(delta->new_file.path, suspect->path) != 0)
            continue;
        rc = find_by_path(parent, delta->old_file.path, out, err);
        break;
    }
    git_diff_free(diff);
    git_tree_free(parent_tree);
    git_tree_free(tree);
    return rc;
}

/* Hands lines to one parent: all of them where it has the same file. */
static int hand_to(struct search *search, struct suspect *suspect, struct suspect *parent, struct err *err)
{
    if (git_oid_equal(&parent->blob, &suspect->blob)) {
        parent->lines = suspect->lines;
        suspect->lines = (struct git_lines){0};
    } else if (compare(search, &parent->blob, &suspect->blob, err) != 0) {
        suspect_free(parent);
        return -1;
    } else if (git_lines_share(&search->changes, &suspect->lines, &parent->lines) != 0) {
        suspect_free(parent);
        return no_memory(err);
    }
    return open_suspect(search, parent, err);
}

/* Fills parents[n] for each parent that has the file, under another name where its own is missing. *out_same is the one
 * that has it unchanged, after which none was looked at; else count. */
static int find_parents(struct search *search, struct suspect *suspect, struct suspect **parents, unsigned count,
                        unsigned *out_same, struct err *err)
{
    *out_same = count;
    for (int renames = 0; renames < 2; renames++) {
        for (unsigned n = 0; n < count; n++) {
            git_commit *parent;
            if (parents[n])
                continue;
            int rc = git_log_parent(search->call, suspect->commit, n, &parent, err);
            if (rc == 1)
                continue; /* a shallow clone: lines from beyond are of its last commit */
            if (rc == 0)
                rc = renames ? find_renamed(search, suspect, parent, &parents[n], err)
                             : find_by_path(parent, suspect->path, &parents[n], err);
            git_commit_free(parent);
            if (rc != 0)
                return -1;
            if (parents[n] && git_oid_equal(&parents[n]->blob, &suspect->blob)) {
                *out_same = n;
                return 0;
            }
        }
    }
    return 0;
}

static int hand_to_parents(struct search *search, struct suspect *suspect, struct err *err)
{
    unsigned count = git_commit_parentcount(suspect->commit), same;
    struct suspect **parents = calloc(count + 1, sizeof(struct suspect *));
    if (!parents)
        return no_memory(err);
    int rc = find_parents(search, suspect, parents, count, &same, err);
    for (unsigned i = 0; i < count; i++) {
        bool asked = parents[i] && rc == 0 && (same == count || same == i) && suspect->lines.count > 0;
        if (asked)
            rc = hand_to(search, suspect, parents[i], err);
        else
            suspect_free(parents[i]);
    }
    free(parents);
    return rc;
}

/* The lines that no parent has are the suspect's own. */
static int convict(struct search *search, struct suspect *suspect, struct err *err)
{
    struct git_origins *origins = search->origins;
    if (suspect->lines.count == 0)
        return 0;
    if (git_lines_grow((void **)&origins->commits, origins->commit_count, &origins->commit_cap, sizeof(git_commit *)) !=
        0)
        return no_memory(err);
    for (size_t i = 0; i < suspect->lines.count; i++) {
        const struct git_line_range *range = &suspect->lines.items[i];
        for (size_t line = 0; line < range->count; line++)
            origins->of_line[range->final + line - (origins->first - 1)] = (uint32_t)origins->commit_count;
    }
    origins->commits[origins->commit_count++] = suspect->commit;
    suspect->commit = NULL;
    return 0;
}

static int follow(struct search *search, struct err *err)
{
    while (search->open_count > 0) {
        struct suspect *suspect = next_suspect(search);
        int rc = git_call_late(search->call) ? git_fail(err, git_stop(NULL), "blame")
                                             : hand_to_parents(search, suspect, err);
        if (rc == 0)
            rc = convict(search, suspect, err);
        suspect_free(suspect);
        if (rc != 0)
            return -1;
    }
    return 0;
}

int git_origins_find(struct git_call *call, git_commit *commit, const char *path, const git_blob *blob, size_t first,
                     size_t count, struct git_origins *out, struct err *err)
{
    struct git_origins origins = {.first = first, .count = count, .of_line = calloc(count + 1, sizeof(uint32_t))};
    struct search search = {.call = call, .origins = &origins};
    git_commit *own = NULL;
    struct suspect *start = git_commit_dup(&own, commit) == 0 ? suspect_new(own, path, git_blob_id(blob)) : NULL;
    struct git_line_range all = {.at = first - 1, .final = first - 1, .count = count};
    int rc = 0;
    if (!origins.of_line || !start || (count > 0 && git_lines_add(&start->lines, all) != 0)) {
        suspect_free(start);
        rc = no_memory(err);
    } else {
        rc = open_suspect(&search, start, err);
    }
    if (rc == 0)
        rc = follow(&search, err);
    for (size_t i = 0; i < search.open_count; i++)
        suspect_free(search.open[i]);
    free(search.open);
    free(search.changes.items);
    if (rc != 0)
        git_origins_free(&origins);
    else
        *out = origins;
    return rc;
}

void git_origins_free(struct git_origins *origins)
{
    for (size_t i = 0; i < origins->commit_count; i++)
        git_commit_free(origins->commits[i]);
    free(origins->commits);
    free(origins->of_line);
    *origins = (struct git_origins){0};
}
