/* Where a clone goes; see the header. Called by bind/bind_git and bind/git_workers, on threads. */
#include "prim/clone_target.h"

#include "prim/parents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 1: an empty directory, but for the remains of a clone before that are about to go; 0: not one; -1 with errno. */
static int is_empty_dir(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        int reason = errno;
        if (fd >= 0)
            close(fd);
        errno = reason;
        return -1;
    }
    int empty = 1;
    for (struct dirent *entry; empty && (entry = readdir(dir)) != NULL;)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || staged_is_name(entry->d_name);
    closedir(dir);
    return empty;
}

/* The empty directory dir_fd (taken over) as the target. */
static int use_inside(struct clone_target *target, int dir_fd, const char *shown, struct err *err)
{
    if (target->parent_fd >= 0)
        close(target->parent_fd);
    target->parent_fd = dir_fd;
    target->inside = true;
    if (confine_is_kernel_fs(dir_fd))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "nothing is made in /proc or /sys");
    int empty = is_empty_dir(dir_fd);
    if (empty < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot read the directory %.120s", shown);
    return empty ? 0 : err_set(err, ERR_ALREADY_EXISTS, "the directory is not empty: %.120s", shown);
}

static int look(const struct confine *confine, struct clone_target *target, const char *name, struct err *err)
{
    struct stat found;
    bool exists = fstatat(target->parent_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists && errno != ENOENT)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot look at %.120s", name);
    if (confine_is_guarded(confine, target->parent_fd, name, exists ? &found : NULL))
        return err_set(err, ERR_PERMISSION_DENIED, "belongs to the server's configuration: %.120s", name);
    if (!exists)
        return 0;
    if (!S_ISDIR(found.st_mode))
        return err_set(err, ERR_ALREADY_EXISTS, "something else has that name: %.120s", name);
    int dir_fd = openat(target->parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot open the directory %.120s", name);
    return use_inside(target, dir_fd, name, err);
}

static int open_parent(const struct confine *confine, const char *path, size_t len, struct confine_entry *entry,
                       struct clone_target *target, struct err *err)
{
    if (confine_parent(confine, path, len, CONFINE_FOLLOW | CONFINE_MISSING_PARENTS, entry, err) != 0)
        return -1;
    target->dir_fd = entry->dir_fd;
    if (confine_is_kernel_fs(entry->dir_fd))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "nothing is made in /proc or /sys");
    target->parent_fd = parents_make(entry->dir_fd, entry->missing, &target->made, err);
    if (target->parent_fd < 0)
        return -1;
    memcpy(target->missing, entry->missing, sizeof(target->missing));
    return 0;
}

static int set_path(struct clone_target *target, const char *name, struct err *err)
{
    if (target->inside) {
        if (confine_path_of(target->parent_fd, target->path, sizeof(target->path), err) != 0)
            return -1;
        return strlen(target->path) < sizeof(target->path) - STAGED_NAME_LEN - 1
                   ? 0
                   : err_set(err, ERR_INVALID_PATH, "the path is too long");
    }
    char parent[PATH_MAX];
    if (confine_path_of(target->parent_fd, parent, sizeof(parent), err) != 0)
        return -1;
    int len = snprintf(target->path, sizeof(target->path), "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
    if (len < 0 || (size_t)len >= sizeof(target->path) - STAGED_NAME_LEN)
        return err_set(err, ERR_INVALID_PATH, "the path is too long");
    return 0;
}

/* Called with the parents' lock held. */
static void take_back(struct clone_target *target)
{
    if (target->made > 0)
        parents_remove(target->dir_fd, target->missing, target->made);
    target->made = 0;
}

/* The base has no entry: it is looked at itself. */
static int find(const struct confine *confine, const char *path, size_t len, struct clone_target *target,
                struct err *err)
{
    struct confine_entry entry;
    if (open_parent(confine, path, len, &entry, target, err) == 0)
        return look(confine, target, entry.name, err) == 0 ? set_path(target, entry.name, err) : -1;
    if (err->code != ERR_BASE_DIR_PROTECTED)
        return -1;
    int dir_fd = openat(confine_base_fd(confine), ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot open the base directory");
    return use_inside(target, dir_fd, ".", err) == 0 ? set_path(target, ".", err) : -1;
}

int clone_target_open(const struct confine *confine, const char *path, size_t len, struct clone_target *out,
                      struct err *err)
{
    struct clone_target target = {.dir_fd = -1, .parent_fd = -1};
    parents_lock();
    int failed = find(confine, path, len, &target, err);
    if (failed)
        take_back(&target);
    parents_unlock();
    if (failed) {
        clone_target_close(&target);
        return -1;
    }
    staged_name(target.temporary);
    *out = target;
    return 0;
}

void clone_target_close(struct clone_target *target)
{
    if (target->parent_fd >= 0)
        close(target->parent_fd);
    if (target->dir_fd >= 0)
        close(target->dir_fd);
    target->parent_fd = target->dir_fd = -1;
}

void clone_target_undo(const struct confine *confine, struct clone_target *target)
{
    staged_discard(confine, target->parent_fd, target->temporary);
    parents_lock();
    take_back(target);
    parents_unlock();
    clone_target_close(target);
}
