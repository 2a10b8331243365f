/* Paths below the base directory, confined by the kernel: the only way in which abxd opens, makes or removes a client's
 * file. Every function may block on the disk and may be called from any thread; the base itself is immutable. */
#ifndef ABX_PRIM_CONFINE_H
#define ABX_PRIM_CONFINE_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct confine;

/* Opens the base directory (it must exist; a link to one is followed) and probes openat2 once: ENOSYS or EPERM chooses
 * the component-wise walk, and a log line says so. force_walk chooses it in any case (tests). NULL with *err. */
struct confine *confine_new(const char *base_dir, bool force_walk, struct err *err);
void confine_free(struct confine *confine);
/* The base's real absolute path. */
const char *confine_base_dir(const struct confine *confine);
/* Its descriptor (O_PATH), which stays the confine's. */
int confine_base_fd(const struct confine *confine);
bool confine_uses_openat2(const struct confine *confine);

/* A path that no verb may change or read, nor anything below it: the operator's tables and configuration. Kept by inode
 * and by name, so that a file which an editor replaces, or which is missing still, is protected too. Before any other
 * thread uses the base. 0; *out_inside tells whether it lies inside the base (or is it). A missing path is no error.
 * Verbs that remove or move whole trees must ask for each entry: a directory above is not protected. */
int confine_protect(struct confine *confine, const char *absolute_path, bool *out_inside, struct err *err) ABX_MUST_USE;

/* A protected path, known both by what it is now and by where it stands: an editor that saves by rename makes a new
 * inode under the old name, and a file that is missing today may be made tomorrow. */
struct confine_guard {
    dev_t dev, dir_dev;
    ino_t ino, dir_ino;
    bool exists;
    char *name; /* in that directory */
};

/* Whether the entry `name` of dir_fd is a protected path; found is what it is now, not followed, or NULL where it does
 * not exist. For verbs that walk a tree from held descriptors: asked before an entry is read, changed or removed. */
bool confine_is_guarded(const struct confine *confine, int dir_fd, const char *name, const struct stat *found);

/* All of them, for what walks a tree in another process (archives); borrowed. Answers how many. */
size_t confine_guards(const struct confine *confine, const struct confine_guard **out_guards);

/* One of them as a word for the command line of such a process, "DEV:INO:DIR_DEV:DIR_INO:NAME"; and back, before any
 * other thread uses the base. */
enum { CONFINE_GUARD_WORD_MAX = NAME_MAX + 100 };
void confine_guard_word(const struct confine_guard *guard, char out[CONFINE_GUARD_WORD_MAX]);
int confine_guard_adopt(struct confine *confine, const char *word, struct err *err) ABX_MUST_USE;

/* Paths: `path` is bytes without NUL of the given length, relative to the base or absolute and inside it. Links that
 * stay inside are followed, absolute ones too, at most 40; what leads outside is ERR_PATH_OUTSIDE_BASE, and nothing
 * outside was opened, made or removed. "" is the base itself. ERR_INVALID_PATH: NUL inside, too long, too many links,
 * or (where the walk decides) over 255 directories deep. ERR_BUSY: moved all the while it was looked up. */

/* open(2) of that path with O_CLOEXEC added. O_CREAT is not for here: see confine_parent. With O_NOFOLLOW a final link
 * gives O_PATH access to the link itself or ELOOP as openat does. Protected files: ERR_PERMISSION_DENIED. */
int confine_open(const struct confine *confine, const char *path, size_t len, int flags, struct err *err) ABX_MUST_USE;

/* A directory for use as working directory or to list (to be read and searched): ERR_NOT_A_DIRECTORY where it is
 * something else. */
int confine_open_dir(const struct confine *confine, const char *path, size_t len, struct err *err) ABX_MUST_USE;

/* A regular file, opened without ever blocking on a FIFO or device: ERR_NOT_A_REGULAR_FILE or ERR_IS_A_DIRECTORY for
 * all else, and for files of procfs and sysfs. flags: O_RDONLY, O_WRONLY, O_RDWR, O_APPEND. */
int confine_open_file(const struct confine *confine, const char *path, size_t len, int flags,
                      struct err *err) ABX_MUST_USE;

/* The file systems that verbs treat in ways of their own. */
enum confine_fs {
    CONFINE_FS_OTHER,
    CONFINE_FS_LOCAL,  /* on this machine: opening what the kernel has in its cache waits for nobody */
    CONFINE_FS_MEMORY, /* in memory only: nothing that is done there waits for a disk, or is stored by fsync */
    CONFINE_FS_KERNEL, /* the kernel's own (procfs, sysfs): to read or write there has effects, blocks or never ends */
};
enum confine_fs confine_fs_of(int fd);
bool confine_is_kernel_fs(int fd);

/* Where an entry is or would be: a descriptor of its directory and its name in it, for the *at calls. */
struct confine_entry {
    int dir_fd;
    char name[NAME_MAX + 1];
    char missing[PATH_MAX]; /* "a/b": names to be made below dir_fd first, with CONFINE_MISSING_PARENTS; else "" */
};
enum {
    CONFINE_FOLLOW = 1, /* a final link is followed (to a target that may not exist); else the entry is the link */
    CONFINE_MISSING_PARENTS = 2, /* directories may be missing: dir_fd is the last that exists. Makes nothing. */
};
/* ERR_BASE_DIR_PROTECTED where the path is the base itself; ERR_FILE_NOT_FOUND where the directory does not exist, or
 * where ".." follows one that is missing. The caller closes out->dir_fd. */
int confine_parent(const struct confine *confine, const char *path, size_t len, int flags, struct confine_entry *out,
                   struct err *err) ABX_MUST_USE;

/* ---- What the loop's own thread may look up: it never waits for a disk, another machine or a process. Only in the
 * base's own file system, where the kernel has all that it takes in memory (openat2(2), RESOLVE_CACHED: Linux 5.12) and
 * no link is on the way. -1 for anything else and any failure: confine_open_file and confine_parent know more. The real
 * absolute path is that of the names, below the base's at start. */

/* Whether that file system is CONFINE_FS_MEMORY. */
bool confine_is_in_memory(const struct confine *confine);
/* A regular file, to be read; out_found: its state. */
int confine_open_cached(const struct confine *confine, const char *path, size_t len, char out_path[PATH_MAX],
                        struct stat *out_found) ABX_MUST_USE;
/* The directory of a path, which exists; what its last name is was not looked at. Only in memory, as the directory of a
 * file that is written. The caller closes out->dir_fd; out_dir_path: that directory's. */
int confine_parent_cached(const struct confine *confine, const char *path, size_t len, struct confine_entry *out,
                          char out_dir_path[PATH_MAX]) ABX_MUST_USE;

/* The real absolute path of an open descriptor, as the kernel tells it (for one that was removed meanwhile, where it
 * stood); 0 or -1. out holds PATH_MAX bytes. */
int confine_path_of(int fd, char *out, size_t out_size, struct err *err) ABX_MUST_USE;

#endif
