/* A new file beside its target that takes the target's name at the end: readers see the old bytes or all the new ones.
 * For uploads, writes and copies. Everything acts on descriptors of directories, so nothing can leave them. Blocking.
 */
#ifndef ABX_PRIM_REPLACE_H
#define ABX_PRIM_REPLACE_H

#include "base/err.h"
#include "prim/file_lock.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { REPLACE_TEMP_NAME_LEN = 21 }; /* ".abx-" and 16 hex digits */

struct replace {
    int dir_fd;    /* borrowed: where the temporary file stands */
    int target_fd; /* borrowed: the target's directory. The same, unless the caller sets one that was made meanwhile */
    int fd;        /* the temporary file, to be read and written; -1: none */
    bool overwrite;
    const char *if_match; /* borrowed: the etag that the target must have, "*": it must exist; NULL: as it may be */
    bool later;           /* the new file's modification time is past the old one's, so that no etag comes twice */
    bool at_once;         /* dir_fd is in memory; ERR_BUSY rather than to wait for a writer or to free what is large */
    bool exists;          /* what stood there when replace_look was last called, and its state */
    struct stat old;
    int64_t size; /* what the file must hold at the end; replace_write counts it. -1: not checked */
    struct stat
        now;        /* the new file after its rename, where fd was still open: not without durable, nor after a close */
    bool has_temp;  /* the temporary name stands on the disk */
    bool in_memory; /* there is no disk below, so nothing is fsynced; known from replace_open on */
    struct file_lock lock;
    char temp[REPLACE_TEMP_NAME_LEN + 1];
    char name[NAME_MAX + 1];
};

/* Fills in the struct and no more; overwrite is true, if_match NULL. name is copied. */
void replace_init(struct replace *r, int dir_fd, const char *name);
/* May the target be replaced? Fills in exists and old. ERR_IS_A_DIRECTORY, ERR_NOT_A_REGULAR_FILE (links, too, are none
 * here: they were followed before; ERR_BUSY), ERR_ALREADY_EXISTS without overwrite, ERR_STALE_WRITE by if_match. */
int replace_look(struct replace *r, struct err *err) ABX_MUST_USE;
/* Makes the temporary file, mode 0600. ERR_NOT_A_REGULAR_FILE in procfs and sysfs. */
int replace_open(struct replace *r, struct err *err) ABX_MUST_USE;
/* The three together; where they fail there is nothing to abort. */
int replace_begin(struct replace *r, int dir_fd, const char *name, bool overwrite, struct err *err) ABX_MUST_USE;

/* Appends all bytes, or fails. */
int replace_write(struct replace *r, const void *bytes, size_t len, struct err *err) ABX_MUST_USE;

/* Keeps other writers of the target away until the rename or the abort; replace_rename and replace_commit do it
 * themselves where it is not held. For who reads the target before. */
int replace_lock(struct replace *r, struct err *err) ABX_MUST_USE;

/* Opens the file that replace_look saw, to be read or appended to, and brings `old` up to date. The caller's. ERR_BUSY:
 * it is another one by now; ERR_NOT_A_REGULAR_FILE in procfs and sysfs. */
int replace_open_old(struct replace *r, int flags, struct err *err) ABX_MUST_USE;

/* All bytes are there, and the target is what replace_look saw: gives the new file its owner, attributes and mode (-1:
 * the old one's, or by the umask), and fsyncs it if durable. ERR_PERMISSION_DENIED where the owner cannot be kept. */
int replace_finish(struct replace *r, int mode, bool durable, struct err *err) ABX_MUST_USE;
/* Closes the finished file early, for who holds many. */
int replace_close(struct replace *r, struct err *err) ABX_MUST_USE;
/* Looks again and gives it the target's name; *out_created is false where it replaced a file. Lets other writers in,
 * also when it fails. */
int replace_rename(struct replace *r, bool *out_created, struct err *err) ABX_MUST_USE;
/* Looks again, finishes and renames while no other writer is at the target, and lets them in; fsyncs the directory too
 * if durable. */
int replace_commit(struct replace *r, int mode, bool durable, bool *out_created, struct err *err) ABX_MUST_USE;

/* After success and failure alike: closes fd, removes the temporary file if it still stands, lets other writers in. */
void replace_abort(struct replace *r);

/* fsyncs a directory that may be held by O_PATH. One that may not be read is left to the kernel. */
void replace_sync_dir(int dir_fd);

#endif
