/* A clone in an empty directory that must stay the one it is: see git_clone_files.h. */
#include "helper/dir_names.h"
#include "helper/git_clone_files.h"
#include "prim/staged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct move {
    const struct confine *confine;
    int from_fd, to_fd;
    struct dir_names names;
};

static int look_for_others(const struct move *move, struct err *err)
{
    struct dir_names there = {0};
    if (dir_names_read(&there, move->to_fd) != 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot read the directory of the clone");
    bool alone = true; /* but for what a clone before left, which is about to go */
    for (size_t i = 0; i < there.count; i++)
        alone = alone && staged_is_name(there.names[i]);
    dir_names_deinit(&there);
    if (!alone)
        return err_set(err, ERR_ALREADY_EXISTS, "something was put meanwhile where the clone was to be");
    for (size_t i = 0; i < move->names.count; i++)
        if (confine_is_guarded(move->confine, move->to_fd, move->names.names[i], NULL))
            return git_refuse_guarded(move->names.names[i], err);
    return 0;
}

/* What tells others that there is a repository. */
static void put_last(struct dir_names *names)
{
    static const char *const marks[] = {"HEAD", ".git"};
    for (size_t mark = 0; mark < sizeof marks / sizeof marks[0]; mark++)
        for (size_t i = 0; i < names->count; i++) {
            if (strcmp(names->names[i], marks[mark]) != 0)
                continue;
            const char *name = names->names[i];
            names->names[i] = names->names[names->count - 1];
            names->names[names->count - 1] = name;
        }
}

static int rename_all(const struct move *move, struct err *err)
{
    for (size_t i = 0; i < move->names.count; i++) {
        const char *name = move->names.names[i];
        if (staged_rename(move->from_fd, name, move->to_fd, name, false) == 0)
            continue;
        int reason = errno;
        while (i-- > 0)
            if (renameat(move->to_fd, move->names.names[i], move->from_fd, move->names.names[i]) != 0)
                break;
        return reason == EEXIST
                   ? err_set(err, ERR_ALREADY_EXISTS, "something was put meanwhile where the clone was to be: %s", name)
                   : err_set_errno(err, err_from_errno(reason), reason, "cannot move the clone to its place");
    }
    return 0;
}

int git_clone_move_up(const struct confine *confine, const char *from, const char *to, struct err *err)
{
    struct move move = {
        .confine = confine,
        .from_fd = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        .to_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
    };
    int rc = 0;
    if (move.from_fd < 0 || move.to_fd < 0 || dir_names_read(&move.names, move.from_fd) != 0)
        rc = err_set_errno(err, err_from_errno(errno), errno, "cannot read the clone");
    if (rc == 0) {
        put_last(&move.names);
        rc = look_for_others(&move, err);
    }
    if (rc == 0)
        rc = rename_all(&move, err);
    if (rc == 0 && rmdir(from) != 0)
        rc = err_set_errno(err, err_from_errno(errno), errno, "cannot remove the temporary directory of the clone");
    dir_names_deinit(&move.names);
    if (move.from_fd >= 0)
        close(move.from_fd);
    if (move.to_fd >= 0)
        close(move.to_fd);
    return rc;
}
