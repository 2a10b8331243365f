/* Finds a repository from a path upward, never above the base, and opens it and nothing else; for git_main, and for
 * remotes that are paths. */
#include "helper/git.h"
#include "helper/git_inspect.h"
#include "helper/git_override.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GITFILE_MAX_BYTES = 4096 + 16 };

static bool has_entry(const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat found;
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    return len < (int)sizeof path && lstat(path, &found) == 0;
}

/* As git tells a git directory from another. */
static bool is_git_dir(const char *dir)
{
    return has_entry(dir, "HEAD") &&
           (has_entry(dir, "commondir") || (has_entry(dir, "objects") && has_entry(dir, "refs")));
}

/* The git directory that a `.git` file names. 1: it is no such file. */
static int read_gitfile(const struct confine *confine, const char *dir, const char *file, char out[PATH_MAX],
                        struct err *err)
{
    struct buf text;
    buf_init(&text, GITFILE_MAX_BYTES);
    int rc = git_inspect_read(confine, file, &text, err);
    if (rc == 0 && strncmp(text.data, "gitdir:", 7) != 0)
        rc = 1;
    if (rc == 0) {
        char *target = text.data + 7;
        target += strspn(target, " \t");
        target[strcspn(target, "\r\n")] = '\0';
        rc = git_inspect_join(out, dir, target, err);
    }
    buf_deinit(&text);
    return rc;
}

/* The git directory that belongs to this folder. 1: there is none here. */
static int git_dir_of(const struct confine *confine, const char *dir, char out[PATH_MAX], struct err *err)
{
    char path[PATH_MAX];
    struct stat found;
    if (git_inspect_join(path, dir, ".git", err) != 0)
        return -1;
    if (stat(path, &found) == 0 && S_ISREG(found.st_mode)) {
        int rc = read_gitfile(confine, dir, path, out, err);
        if (rc <= 0)
            return rc;
    } else if (is_git_dir(path)) {
        memcpy(out, path, sizeof path);
        return 0;
    }
    if (!is_git_dir(dir))
        return 1;
    snprintf(out, PATH_MAX, "%s", dir);
    return 0;
}

int git_repository_check(const struct confine *confine, const char *path, struct err *err)
{
    char git_dir[PATH_MAX];
    int rc = git_dir_of(confine, path, git_dir, err);
    if (rc == 1)
        return err_set(err, ERR_REPOSITORY_NOT_FOUND, "there is no repository at %s", path);
    return rc == 0 ? git_inspect(confine, git_dir, err) : -1;
}

/* The real path of a folder where the search begins: the path itself, or the one that holds the file. */
static int search_start(const struct git_call *call, char out[PATH_MAX], struct err *err)
{
    struct stat found;
    int fd = confine_open(call->confine, call->path, strlen(call->path), O_PATH, err);
    if (fd < 0)
        return err->code == ERR_FILE_NOT_FOUND
                   ? err_set(err, ERR_REPOSITORY_NOT_FOUND, "there is nothing at %s", call->path)
                   : -1;
    int rc = confine_path_of(fd, out, PATH_MAX, err);
    if (rc == 0 && fstat(fd, &found) == 0 && !S_ISDIR(found.st_mode))
        *strrchr(out, '/') = '\0';
    close(fd);
    return rc;
}

/* Climbs to the first folder with a repository, to the base at most. `dir` becomes that folder. */
static int find(const struct git_call *call, char dir[PATH_MAX], char git_dir[PATH_MAX], struct err *err)
{
    size_t base_len = strlen(confine_base_dir(call->confine));
    for (;;) {
        int rc = git_dir_of(call->confine, dir[0] ? dir : "/", git_dir, err);
        if (rc <= 0)
            return rc;
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= base_len || !slash)
            return err_set(err, ERR_REPOSITORY_NOT_FOUND, "there is no repository at %s, nor above it", call->path);
        *slash = '\0';
    }
}

/* A path that libgit2 chose, inside the base; out without a slash at the end. */
static int check_chosen(const struct git_call *call, const char *path, char out[PATH_MAX], struct err *err)
{
    int fd = confine_open(call->confine, path, strlen(path), O_PATH | O_DIRECTORY, err);
    if (fd < 0)
        return err->code == ERR_PATH_OUTSIDE_BASE
                   ? err_set(err, ERR_PATH_OUTSIDE_BASE, "the repository leads out of the base: %s", path)
                   : -1;
    int rc = confine_path_of(fd, out, PATH_MAX, err);
    close(fd);
    return rc;
}

int git_call_open(struct git_call *call, struct err *err)
{
    char dir[PATH_MAX], git_dir[PATH_MAX];
    if (search_start(call, dir, err) != 0 || find(call, dir, git_dir, err) != 0)
        return -1;
    if (git_inspect(call->confine, git_dir, err) != 0)
        return -1;
    int rc = git_repository_open_ext(&call->repo, dir[0] ? dir : "/", GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
    if (rc < 0)
        return git_fail(err, rc, "cannot open the repository");
    if (check_chosen(call, git_repository_path(call->repo), call->root, err) != 0 ||
        check_chosen(call, git_repository_commondir(call->repo), call->root, err) != 0)
        return -1;
    const char *root = git_repository_workdir(call->repo);
    if (check_chosen(call, root ? root : git_repository_path(call->repo), call->root, err) != 0)
        return -1;
    return git_override_config(call, err);
}
