/* Makes repositories, and lists the operations that a repository of one's own needs most; see git.h. */
#include "helper/git_basic.h"

#include "helper/git_inspect.h"
#include "prim/make_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is to be made where nothing is yet. */
static int check_guards(const struct git_call *call, const char *dir, bool bare, struct err *err)
{
    static const char *const names[] = {".git", "HEAD", "config", "description", "objects", "refs", "info", "hooks"};
    int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool guarded = false;
    for (size_t i = 0, count = bare ? sizeof names / sizeof names[0] : 1; i < count && !guarded; i++)
        guarded = confine_is_guarded(call->confine, dir_fd, names[i], NULL);
    if (dir_fd >= 0)
        close(dir_fd);
    return guarded ? git_refuse_guarded(dir, err) : 0;
}

/* What is there already is looked at before libgit2 writes into it. */
static int check_before_init(const struct git_call *call, const char *dir, bool bare, bool *out_exists, struct err *err)
{
    char path[PATH_MAX];
    struct stat found;
    if (bare)
        snprintf(path, sizeof path, "%s", dir);
    else if (git_inspect_join(path, dir, ".git", err) != 0)
        return -1;
    *out_exists = false;
    if (lstat(path, &found) != 0)
        return 0;
    if (!S_ISDIR(found.st_mode))
        return err_set(err, ERR_ALREADY_EXISTS, "%s is no directory", path);
    if (git_inspect(call->confine, path, err) != 0)
        return -1;
    char head[PATH_MAX];
    *out_exists = git_inspect_join(head, path, "HEAD", err) == 0 && lstat(head, &found) == 0;
    return 0;
}

static int git_init(struct git_call *call, struct err *err)
{
    const char *branch = git_param_text(call, "initial_branch");
    bool bare = git_param_bool(call, "bare", false), exists, made;
    char dir[PATH_MAX], branch_ref[PATH_MAX];
    branch = branch ? branch : "main";
    int valid = 0;
    if (git_branch_name_is_valid(&valid, branch) < 0 || !valid) {
        err_set(err, ERR_INVALID_REQUEST, "not a name for a branch: %s", branch);
        return err_field(err, "initial_branch");
    }
    snprintf(branch_ref, sizeof branch_ref, "refs/heads/%s", branch);
    if (make_dir(call->confine, call->path, strlen(call->path), true, -1, dir, &made, err) != 0 ||
        check_guards(call, dir, bare, err) != 0 || check_before_init(call, dir, bare, &exists, err) != 0)
        return -1;
    git_repository_init_options options;
    git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
    options.flags = bare ? GIT_REPOSITORY_INIT_BARE : 0;
    options.initial_head = exists ? NULL : branch_ref;
    git_repository *repo = NULL;
    int rc = git_repository_init_ext(&repo, dir, &options);
    git_repository_free(repo);
    if (rc < 0)
        return git_fail(err, rc, "cannot make the repository");
    call->path = dir;
    if (git_call_open(call, err) != 0)
        return -1;
    json_out_bool(&call->result, "reinitialised", exists);
    json_out_bool(&call->result, "bare", git_repository_is_bare(call->repo) == 1);
    return 0;
}

const struct git_operation git_basic_operations[] = {
    {"status", git_status, 0},
    {"init", git_init, GIT_OPENS_ITSELF},
    {"add", git_add, GIT_NEEDS_WORKTREE},
    {"reset", git_reset_op, 0},
    {"restore", git_restore, GIT_NEEDS_WORKTREE},
    {"commit", git_commit_op, GIT_NEEDS_WORKTREE},
    {NULL, NULL, 0},
};
