/* The directories that an upload writes into, held open; for upload.c. */
#include "prim/upload_dirs.h"

#include "prim/replace.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t upload_dirs_keep(struct upload_dirs *dirs, int fd, struct err *err)
{
    struct stat found;
    if (fstat(fd, &found) != 0) {
        err_set_errno(err, err_from_errno(errno), errno, "cannot use the target directory");
        close(fd);
        return -1;
    }
    for (size_t i = 0; i < dirs->count; i++) {
        if (dirs->items[i].dev == found.st_dev && dirs->items[i].ino == found.st_ino) {
            close(fd);
            return (ssize_t)i;
        }
    }
    if (dirs->count == UPLOAD_DIRS_MAX) {
        close(fd);
        return err_set(err, ERR_PAYLOAD_TOO_LARGE, "one upload may reach at most %d directories", UPLOAD_DIRS_MAX);
    }
    dirs->items[dirs->count] = (struct upload_dir){fd, found.st_dev, found.st_ino};
    return (ssize_t)dirs->count++;
}

void upload_dirs_sync(const struct upload_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        replace_sync_dir(dirs->items[i].fd);
}

void upload_dirs_close(struct upload_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        close(dirs->items[i].fd);
    dirs->count = 0;
}
