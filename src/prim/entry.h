/* What answers tell of a file, as JSON text: the `entry` of the contract, paths with their twins, etags, times. Made on
 * the pool's threads, so that a listing of many thousands costs the loop one copy. */
#ifndef ABX_PRIM_ENTRY_H
#define ABX_PRIM_ENTRY_H

#include "base/buf.h"

#include <stdbool.h>
#include <sys/stat.h>

/* User and group names that were looked up already: for one job, as the system's files may change. Zeroed to begin;
 * entry_names_free afterwards. */
struct entry_names {
    struct entry_name *users, *groups;
};
void entry_names_free(struct entry_names *names);
/* A user's name, or the number that has none; borrowed from names. NULL out of memory. */
const char *entry_user_name(struct entry_names *names, uid_t uid);

/* Appends the members of an entry without braces, so that more can follow: "path":…,"name":…,"type":… path is
 * absolute; its last part is the name. target (with its length; NULL: none) is where a link leads. -1: out is full. */
int entry_write(struct buf *out, struct entry_names *names, const char *path, size_t path_len, const struct stat *found,
                const char *target, size_t target_len) ABX_MUST_USE;

/* Looks at `name` in dir_fd without following it and appends its entry in braces; dir is the absolute path of dir_fd
 * ("" for the root). -1 with errno where it cannot be looked at, or ENOBUFS where out is full. */
int entry_write_at(struct buf *out, struct entry_names *names, int dir_fd, const char *dir,
                   const char *name) ABX_MUST_USE;

/* Appends "NAME":"…" and, where the bytes are not UTF-8, ,"NAME_base64":"…". */
int entry_write_path(struct buf *out, const char *member, const char *path, size_t len) ABX_MUST_USE;
/* Appends "NAME":"2026-01-31T00:00:00.000Z". */
int entry_write_time(struct buf *out, const char *member, const struct timespec *time) ABX_MUST_USE;

/* "file", "directory", "symlink", "fifo", "socket", "char", "block". */
const char *entry_type(mode_t mode);

enum { ENTRY_ETAG_MAX = 80 };
/* With its quotes: inode, size, and both times in nanoseconds: a file that is replaced by rename within one tick of the
 * clock still differs, and the modification time can be set back. */
void entry_etag(char out[ENTRY_ETAG_MAX], const struct stat *found);

#endif
