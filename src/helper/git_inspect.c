/* Looks for what leads out of the base in a git directory: links, commondir, alternates. Called before libgit2 opens
 * it, which follows all of them. */
#include "helper/git_inspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENTRIES_MAX = 1000 * 1000, /* links may make circles */
    LEVELS_MAX = 64,
    ALTERNATES_DEPTH_MAX = 5, /* as libgit2 */
    POINTER_MAX_BYTES = 64 * 1024,
};

struct look {
    const struct confine *confine;
    size_t entries;
    struct err *err;
    bool guarded; /* there are protected paths */
};

/* What of a directory of this level is looked into: everything below refs and logs, the rest as far as libgit2 reads
 * it by name. */
enum level { LEVEL_GIT_DIR, LEVEL_OBJECTS, LEVEL_ALL };

int git_inspect_join(char out[PATH_MAX], const char *dir, const char *name, struct err *err)
{
    int len = name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name) : snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return len < PATH_MAX ? 0 : err_set(err, ERR_INVALID_PATH, "a path of the repository is too long");
}

int git_inspect_read(const struct confine *confine, const char *path, struct buf *out, struct err *err)
{
    int fd = confine_open_file(confine, path, strlen(path), O_RDONLY, err);
    if (fd < 0)
        return err->code == ERR_FILE_NOT_FOUND || err->code == ERR_NOT_A_DIRECTORY ? 1 : -1;
    ssize_t got = 1;
    while (got > 0 && out->len + 1 < out->max) {
        size_t room = out->max - out->len - 1;
        room = room < 4096 ? room : 4096;
        if (buf_reserve(out, room + 1) != 0)
            break;
        got = read(fd, out->data + out->len, room);
        out->len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (got < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot read %s", path);
    if (got > 0 || buf_append(out, "", 1) != 0)
        return err_set(err, ERR_INVALID_REQUEST, "%s is too large for what it is", path);
    return 0;
}

/* 0: it is inside, and out is its real path; 1: nothing is there, and what would be is inside; else -1. */
static int real_path(const struct look *look, const char *path, char out[PATH_MAX])
{
    int fd = confine_open(look->confine, path, strlen(path), O_PATH, look->err);
    if (fd < 0) {
        if (look->err->code == ERR_FILE_NOT_FOUND || look->err->code == ERR_NOT_A_DIRECTORY)
            return 1;
        if (look->err->code == ERR_PATH_OUTSIDE_BASE)
            err_set(look->err, ERR_PATH_OUTSIDE_BASE, "the repository leads out of the base: %s", path);
        return -1;
    }
    int rc = confine_path_of(fd, out, PATH_MAX, look->err);
    close(fd);
    return rc;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Whether a folder is looked into, and as what. */
static bool goes_down(enum level level, const char *name, enum level *out_level)
{
    static const char *const whole[] = {"refs", "logs", "info", "worktrees", "rebase-merge", "rebase-apply", NULL};
    static const char *const objects[] = {"pack", "info", NULL};
    *out_level = LEVEL_ALL;
    if (level == LEVEL_ALL)
        return true;
    if (level == LEVEL_OBJECTS)
        return is_one_of(name, objects);
    if (strcmp(name, "objects") == 0) {
        *out_level = LEVEL_OBJECTS;
        return true;
    }
    return is_one_of(name, whole);
}

static int look_through(struct look *look, const char *dir, enum level level, int depth);

static int look_at(struct look *look, const char *dir, const struct dirent *entry, enum level level, int depth)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat found;
    enum level below;
    if (++look->entries > ENTRIES_MAX)
        return err_set(look->err, ERR_INVALID_REQUEST, "the repository has too many entries, or links in a circle");
    if (entry->d_type == DT_REG)
        return 0;
    if (git_inspect_join(path, dir, entry->d_name, look->err) != 0)
        return -1;
    if (lstat(path, &found) != 0)
        return 0; /* gone meanwhile */
    if (S_ISLNK(found.st_mode)) {
        int rc = real_path(look, path, real);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        memcpy(path, real, sizeof path);
        if (lstat(path, &found) != 0)
            return 0;
    }
    if (!S_ISDIR(found.st_mode) || !goes_down(level, entry->d_name, &below))
        return 0;
    return look_through(look, path, below, depth + 1);
}

/* Operations write what they like in here. */
static int check_guard(struct look *look, int dir_fd, const struct dirent *entry)
{
    struct stat found;
    if (!look->guarded || fstatat(dir_fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 ||
        !confine_is_guarded(look->confine, dir_fd, entry->d_name, &found))
        return 0;
    return err_set(look->err, ERR_PERMISSION_DENIED, "the repository holds the server's configuration: %s",
                   entry->d_name);
}

static int look_through(struct look *look, const char *dir, enum level level, int depth)
{
    if (depth > LEVELS_MAX)
        return err_set(look->err, ERR_INVALID_REQUEST, "the repository is too deep, or has links in a circle");
    DIR *stream = opendir(dir);
    if (!stream)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : err_set_errno(look->err, err_from_errno(errno), errno, "cannot read %s", dir);
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        rc = check_guard(look, dirfd(stream), entry);
        if (rc == 0)
            rc = look_at(look, dir, entry, level, depth);
    }
    closedir(stream);
    return rc;
}

static int look_at_objects(struct look *look, const char *objects_dir, int depth);

/* A line of alternates names a folder of objects, also relative to the one that it stands in. */
static int follow_alternate(struct look *look, const char *objects_dir, const char *line, int depth)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (depth >= ALTERNATES_DEPTH_MAX)
        return err_set(look->err, ERR_INVALID_REQUEST, "the repository has too long a chain of alternates");
    if (git_inspect_join(path, objects_dir, line, look->err) != 0)
        return -1;
    int rc = real_path(look, path, real);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (look_through(look, real, LEVEL_OBJECTS, 0) != 0)
        return -1;
    return look_at_objects(look, real, depth + 1);
}

static int look_at_objects(struct look *look, const char *objects_dir, int depth)
{
    char path[PATH_MAX];
    struct buf text;
    buf_init(&text, POINTER_MAX_BYTES);
    int rc = git_inspect_join(path, objects_dir, "info/alternates", look->err);
    if (rc == 0)
        rc = git_inspect_read(look->confine, path, &text, look->err);
    if (rc == 0) {
        char *rest = text.data;
        for (char *line; rc == 0 && (line = strsep(&rest, "\n")) != NULL;) {
            line[strcspn(line, "\r")] = '\0';
            rc = follow_alternate(look, objects_dir, line, depth);
        }
    }
    buf_deinit(&text);
    return rc < 0 ? -1 : 0;
}

static int look_at_git_dir(struct look *look, const char *git_dir)
{
    char objects[PATH_MAX];
    if (look_through(look, git_dir, LEVEL_GIT_DIR, 0) != 0)
        return -1;
    if (git_inspect_config(look->confine, git_dir, look->err) != 0)
        return -1;
    if (git_inspect_join(objects, git_dir, "objects", look->err) != 0)
        return -1;
    return look_at_objects(look, objects, 0);
}

/* What the file `commondir` of a worktree's git directory names; "" where there is none. */
static int read_common_dir(struct look *look, const char *git_dir, char out[PATH_MAX])
{
    char path[PATH_MAX], common[PATH_MAX];
    struct buf text;
    out[0] = '\0';
    buf_init(&text, PATH_MAX);
    int rc = git_inspect_join(path, git_dir, "commondir", look->err);
    if (rc == 0)
        rc = git_inspect_read(look->confine, path, &text, look->err);
    if (rc == 0) {
        text.data[strcspn(text.data, "\r\n")] = '\0';
        rc = git_inspect_join(common, git_dir, text.data, look->err);
        if (rc == 0)
            rc = real_path(look, common, out);
        if (rc == 1)
            rc = err_set(look->err, ERR_REPOSITORY_NOT_FOUND, "the repository of this worktree is gone");
    }
    buf_deinit(&text);
    return rc < 0 ? -1 : 0;
}

int git_inspect(const struct confine *confine, const char *git_dir, struct err *err)
{
    const struct confine_guard *unused;
    struct look look = {.confine = confine, .err = err, .guarded = confine_guards(confine, &unused) > 0};
    char real[PATH_MAX], common[PATH_MAX];
    int rc = real_path(&look, git_dir, real);
    if (rc != 0)
        return rc < 0 ? -1 : err_set(err, ERR_REPOSITORY_NOT_FOUND, "there is no repository at %s", git_dir);
    if (look_at_git_dir(&look, real) != 0 || read_common_dir(&look, real, common) != 0)
        return -1;
    return common[0] ? look_at_git_dir(&look, common) : 0;
}
