/* Looks up where a copy or a move begins and ends; see transfer.h. */
#include "prim/transfer.h"

#include "prim/parents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct err *err, const char *why)
{
    err_set(err, ERR_INVALID_REQUEST, "%s", why);
    return err_field(err, "destination");
}

/* The path of dir_fd without the slash of the root, so that "/name" can follow. */
static int dir_path(int dir_fd, char out[PATH_MAX], struct err *err)
{
    if (confine_path_of(dir_fd, out, PATH_MAX, err) != 0)
        return -1;
    if (strcmp(out, "/") == 0)
        out[0] = '\0';
    return 0;
}

static int find_source(struct transfer *transfer, const struct confine *confine, const struct transfer_options *options,
                       struct stat *out_found, struct err *err)
{
    struct confine_entry *source = &transfer->source;
    char dir[PATH_MAX];
    if (confine_parent(confine, options->source, options->source_len, 0, source, err) != 0)
        return err_field(err, "source");
    int result = fstatat(source->dir_fd, source->name, out_found, AT_SYMLINK_NOFOLLOW);
    if (result != 0)
        err_set_errno(err, err_from_errno(errno), errno, "cannot look at %.150s", source->name);
    else
        result = dir_path(source->dir_fd, dir, err);
    if (result == 0) {
        snprintf(transfer->source_path, sizeof transfer->source_path, "%s/%s", dir, source->name);
        return 0;
    }
    close(source->dir_fd);
    return err_field(err, "source");
}

static bool is_same_dir(int a_fd, int b_fd)
{
    struct stat a, b;
    return fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Whether the directory is `top`, or lies below it: climbs to the root, whose ".." is itself. */
static bool is_within(int dir_fd, const struct stat *top)
{
    struct stat here, above;
    int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    bool within = false, climbs = fd >= 0 && fstat(fd, &here) == 0;
    while (climbs) {
        within = here.st_dev == top->st_dev && here.st_ino == top->st_ino;
        int parent = within ? -1 : openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0)
            break;
        close(fd);
        fd = parent;
        climbs = fstat(fd, &above) == 0 && (above.st_dev != here.st_dev || above.st_ino != here.st_ino);
        here = above;
    }
    if (fd >= 0)
        close(fd);
    return within;
}

static int check_not_within(const struct confine_entry *destination, const struct stat *source, struct err *err)
{
    struct stat old;
    bool is_other_name = !destination->missing[0] &&
                         fstatat(destination->dir_fd, destination->name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
                         old.st_dev == source->st_dev && old.st_ino == source->st_ino;
    if (is_other_name) /* by way of a mount */
        return refuse(err, "source and destination are the same");
    return is_within(destination->dir_fd, source) ? refuse(err, "the destination lies inside the source") : 0;
}

static int check_ends(const struct transfer *transfer, const struct transfer_options *options, const struct stat *found,
                      struct err *err)
{
    const struct confine_entry *source = &transfer->source, *destination = &transfer->destination;
    if (!destination->missing[0] && strcmp(source->name, destination->name) == 0 &&
        is_same_dir(source->dir_fd, destination->dir_fd))
        return refuse(err, "source and destination are the same");
    if (S_ISDIR(found->st_mode))
        return check_not_within(destination, found, err);
    size_t len = options->destination_len;
    if (len == 0 || options->destination[len - 1] != '/')
        return 0;
    err_set(err, ERR_IS_A_DIRECTORY, "the destination names a directory, but the source is none: %.150s",
            destination->name);
    return err_field(err, "destination");
}

static int find_destination(struct transfer *transfer, const struct confine *confine,
                            const struct transfer_options *options, const struct stat *found, struct err *err)
{
    struct confine_entry *destination = &transfer->destination;
    int flags = options->create_parents ? CONFINE_MISSING_PARENTS : 0;
    if (confine_parent(confine, options->destination, options->destination_len, flags, destination, err) != 0)
        return err_field(err, "destination");
    transfer->to_dir = -1;
    if (check_ends(transfer, options, found, err) == 0) {
        transfer->to_dir = destination->missing[0]
                               ? parents_make(destination->dir_fd, destination->missing, &transfer->made, err)
                               : fcntl(destination->dir_fd, F_DUPFD_CLOEXEC, 0);
        if (transfer->to_dir < 0 && !destination->missing[0])
            err_set_errno(err, err_from_errno(errno), errno, "cannot use the directory of %.150s", destination->name);
    }
    if (transfer->to_dir >= 0 && dir_path(transfer->to_dir, transfer->to_dir_path, err) == 0)
        return 0;
    if (transfer->made > 0)
        parents_remove(destination->dir_fd, destination->missing, transfer->made);
    if (transfer->to_dir >= 0)
        close(transfer->to_dir);
    close(destination->dir_fd);
    return err_field(err, "destination");
}

int transfer_begin(struct transfer *transfer, const struct confine *confine, const struct transfer_options *options,
                   struct err *err)
{
    struct stat found;
    transfer->made = 0;
    if (find_source(transfer, confine, options, &found, err) != 0)
        return -1;
    parents_lock();
    transfer->parents_lock = true;
    if (find_destination(transfer, confine, options, &found, err) == 0)
        return 0;
    parents_unlock();
    close(transfer->source.dir_fd);
    return -1;
}

void transfer_end(struct transfer *transfer, bool done)
{
    bool takes_back = !done && transfer->made > 0;
    if (takes_back && !transfer->parents_lock)
        parents_lock();
    if (takes_back)
        parents_remove(transfer->destination.dir_fd, transfer->destination.missing, transfer->made);
    if (takes_back || transfer->parents_lock)
        parents_unlock();
    transfer->parents_lock = false;
    close(transfer->to_dir);
    close(transfer->destination.dir_fd);
    close(transfer->source.dir_fd);
}
