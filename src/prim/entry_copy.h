/* The copy of one entry that is no directory (file, link, FIFO, socket), under a name that is free. For tree_copy.
 * Blocking. */
#ifndef ABX_PRIM_ENTRY_COPY_H
#define ABX_PRIM_ENTRY_COPY_H

#include "prim/confine.h"
#include "prim/file_copy.h"
#include "prim/hard_links.h"

#include <stdbool.h>
#include <stdint.h>

/* What the copies of one tree share. Zeroed but for what is set by the caller; entry_copier_deinit at the end. */
struct entry_copier {
    const struct confine *confine;
    void (*begun)(void *ctx);   /* called when something stands under the new name, perhaps without its content yet */
    void *begun_ctx;            /* NULL: not called */
    struct file_copier files;   /* its cancelled is the caller's */
    uint64_t file_count, bytes; /* regular files that were copied, and their content */
    uint64_t other_count;       /* links and the like */

    /* Where copies made before are found by their paths, for names of one file. -1: no names are kept together. */
    struct hard_links links;
    int top_fd;             /* the top of the copy */
    int staged_fd;          /* a directory in it that bears another name still; -1: none */
    size_t staged_path_len; /* of its path from the top */

    dev_t checked_dev; /* known not to be the kernel's */
    bool has_checked_dev;
};

/* Where the source is. */
struct entry_source {
    int dir_fd;
    const char *name;
    const char *path;   /* from the top of its tree, for messages and hard links; "": it is the top itself */
    unsigned char type; /* DT_REG … */
};

void entry_copier_deinit(struct entry_copier *copier);

/* Makes the copy as `to` in to_dir. What is there after a failure is the caller's to remove. ERR_NOT_A_REGULAR_FILE for
 * devices and all of procfs and sysfs, ERR_PERMISSION_DENIED also for protected paths, ERR_NO_SPACE … with the fields
 * "source" and "destination". */
int entry_copy(struct entry_copier *copier, const struct entry_source *from, int to_dir, const char *to,
               struct err *err) ABX_MUST_USE;

/* May this entry be read at all? found is its state, fd holds it, or its directory. */
int entry_copy_check(struct entry_copier *copier, const struct entry_source *from, int fd, const struct stat *found,
                     struct err *err) ABX_MUST_USE;
/* Says what errno means for an end of the copy. */
int entry_copy_err(struct err *err, const char *field, const struct entry_source *from, const char *doing);

#endif
