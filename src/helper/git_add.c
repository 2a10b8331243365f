/* Stages files: what they contain becomes part of the next commit; an operation of `abxd-helper git`. */
#include "helper/git_basic.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { STAGED_LISTED_MAX = 1000 };

struct staging {
    struct git_call *call;
    const struct git_paths *paths;
    struct buf names; /* that are listed, each ended by a NUL */
    size_t count;
};

int git_on_stage(const char *path, const char *spec, void *ctx)
{
    (void)spec;
    const struct git_call *call = ctx;
    char full[PATH_MAX];
    struct stat found;
    struct err err;
    if (git_call_late(call))
        return git_stop(NULL);
    if (git_is_guarded(call, path)) {
        git_refuse_guarded(path, &err);
        return git_stop(&err);
    }
    int len = snprintf(full, sizeof full, "%s/%s", call->root, path);
    if (len >= (int)sizeof full || lstat(full, &found) != 0 || !S_ISDIR(found.st_mode))
        return 0;
    /* A folder is only met here because there is a repository in it, which libgit2 opens to see its HEAD. */
    if (len > 0 && full[len - 1] == '/')
        full[len - 1] = '\0';
    return git_repository_check(call->confine, full, &err) == 0 ? 0 : git_stop(&err);
}

/* Whether one of the paths is this or a folder above it; none at all is everything. */
static bool is_meant(const struct git_paths *paths, const char *path)
{
    for (size_t i = 0; i < paths->count; i++) {
        size_t len = strlen(paths->items[i]);
        if (len == 0 || (strncmp(path, paths->items[i], len) == 0 && (path[len] == '/' || path[len] == '\0')))
            return true;
    }
    return paths->count == 0;
}

/* Whether a pattern of this text means itself: no marks, and nothing that ends or splits patterns. */
static bool is_plain(const char *path)
{
    for (; *path; path++)
        if (!isalnum((unsigned char)*path) && !strchr("/._-+@%, ", *path) && (unsigned char)*path < 0x80)
            return false;
    return true;
}

/* git_index_add_all takes paths for patterns, whatever its flags say. Where one might not mean itself, all files are
 * looked at, and is_meant decides. */
static git_strarray add_spec(const struct git_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        size_t len = strlen(path);
        if (!is_plain(path) || path[0] == ' ' || (len > 0 && path[len - 1] == ' '))
            return (git_strarray){NULL, 0};
    }
    return git_paths_spec(paths);
}

static int on_stage(const char *path, const char *spec, void *ctx)
{
    struct staging *staging = ctx;
    if (!is_meant(staging->paths, path))
        return 1;
    int rc = git_on_stage(path, spec, staging->call);
    if (rc == 0 && staging->count++ < STAGED_LISTED_MAX && buf_append(&staging->names, path, strlen(path) + 1) != 0)
        staging->call->result.failed = true;
    return rc;
}

static bool is_tracked(git_index *index, const char *path)
{
    char folder[PATH_MAX];
    size_t at;
    if (path[0] == '\0' || git_index_find(&at, index, path) == 0)
        return true;
    int len = snprintf(folder, sizeof folder, "%s/", path);
    return len < (int)sizeof folder && git_index_find_prefix(&at, index, folder) == 0;
}

int git_check_tracked(git_index *index, git_tree *tree, const struct git_paths *paths, struct err *err)
{
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        git_tree_entry *entry = NULL;
        bool known = is_tracked(index, path) || (tree && git_tree_entry_bypath(&entry, tree, path) == 0);
        git_tree_entry_free(entry);
        if (known)
            continue;
        err_set(err, ERR_FILE_NOT_FOUND, "git knows no file of this name: %s", path);
        return err_field(err, "paths");
    }
    return 0;
}

/* libgit2 passes by a folder with a repository in it in silence. */
static bool is_repository(const char *path)
{
    char git_dir[PATH_MAX];
    struct stat found;
    int len = snprintf(git_dir, sizeof git_dir, "%s/.git", path);
    return len < (int)sizeof git_dir && lstat(git_dir, &found) == 0;
}

/* A path that a client names must be there to be staged, or tracked, so that its removal is. */
static int check_paths(const struct git_call *call, git_index *index, const struct git_paths *paths, struct err *err)
{
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        char full[PATH_MAX];
        struct stat found;
        int ignored = 0;
        if (is_tracked(index, path))
            continue;
        int len = snprintf(full, sizeof full, "%s/%s", call->root, path);
        if (len >= (int)sizeof full || lstat(full, &found) != 0)
            err_set(err, ERR_FILE_NOT_FOUND, "no such file: %s", path);
        else if (git_ignore_path_is_ignored(&ignored, call->repo, path) == 0 && ignored)
            err_set(err, ERR_INVALID_REQUEST, "the repository ignores %s (.gitignore)", path);
        else if (S_ISDIR(found.st_mode) && is_repository(full))
            err_set(err, ERR_INVALID_REQUEST, "%s is a repository of its own", path);
        else
            continue;
        return err_field(err, "paths");
    }
    return 0;
}

static int stage(struct git_call *call, git_index *index, const struct git_paths *paths, struct err *err)
{
    struct staging staging = {.call = call, .paths = paths};
    git_strarray spec = add_spec(paths);
    buf_init(&staging.names, STAGED_LISTED_MAX * PATH_MAX);
    int rc = git_index_add_all(index, &spec, GIT_INDEX_ADD_DISABLE_PATHSPEC_MATCH, on_stage, &staging);
    json_out_names(&call->result, "staged", &staging.names);
    buf_deinit(&staging.names);
    if (rc == 0)
        rc = git_index_write(index);
    if (rc < 0)
        return git_fail(err, rc, "cannot stage");
    json_out_int(&call->result, "count", (int64_t)staging.count);
    json_out_bool(&call->result, "truncated", staging.count > STAGED_LISTED_MAX);
    return 0;
}

int git_add(struct git_call *call, struct err *err)
{
    struct git_paths paths;
    git_index *index = NULL;
    bool all = git_param_bool(call, "all", false);
    if (git_param_paths(call, "paths", &paths, err) != 0)
        return -1;
    int rc;
    if ((paths.count > 0) == all) {
        err_set(err, ERR_INVALID_REQUEST, "name either paths or all");
        rc = err_field(err, "paths");
    } else if ((rc = git_repository_index(&index, call->repo)) < 0) {
        git_fail(err, rc, "cannot read the index");
    } else if ((rc = check_paths(call, index, &paths, err)) == 0) {
        rc = stage(call, index, &paths, err);
    }
    git_index_free(index);
    git_paths_free(&paths);
    return rc == 0 ? 0 : -1;
}
