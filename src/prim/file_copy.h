/* One file, with its content and all that is told of it, from one open descriptor to another. For tree_copy and
 * file_write. Blocking. */
#ifndef ABX_PRIM_FILE_COPY_H
#define ABX_PRIM_FILE_COPY_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* What copies of many files share; zeroed to begin, file_copier_deinit at the end. */
struct file_copier {
    const atomic_bool *cancelled; /* looked at every 16 MiB */
    char *buffer;
    bool no_clone, no_range; /* refused once: the file systems cannot */
};
void file_copier_deinit(struct file_copier *copier);

/* Copies what from_fd holds, from its start, into the new, empty file to_fd: as a clone that shares its blocks where
 * the file system can, else by copy_file_range, else by hand; holes stay holes. found is fstat of from_fd. *out_len:
 * the copy's length. -1 with errno: ENOSPC, EIO …, ECANCELED. */
int file_copy_content(struct file_copier *copier, int from_fd, int to_fd, const struct stat *found,
                      uint64_t *out_len) ABX_MUST_USE;

/* Gives the open file or directory to_fd, which was made here, the owner, attributes and ACLs of from_fd as far as the
 * server may, its mode and times. Set-id bits go where the owner cannot come along. -1 with errno. */
int file_copy_attributes(int from_fd, int to_fd, const struct stat *found) ABX_MUST_USE;

#endif
