/* Writes a directory tree as an archive while it is walked: memory stays flat, whatever the tree's size. */
#ifndef ABX_HELPER_ARCHIVE_TREE_H
#define ABX_HELPER_ARCHIVE_TREE_H

#include <stddef.h>

enum archive_format { ARCHIVE_FORMAT_UNKNOWN, ARCHIVE_FORMAT_TAR_GZ, ARCHIVE_FORMAT_ZIP };

/* By its name in the contract, "tar.gz" or "zip". */
enum archive_format archive_tree_format(const char *name);

/* An entry that is left out without a word, by what it is and by where it stands: the operator's tables, where they lie
 * inside the base (prim/confine, whose guards these are). */
struct archive_guard {
    unsigned long long dev, ino, dir_dev, dir_ino;
    const char *name;
};
/* From "DEV:INO:DIR_DEV:DIR_INO:NAME", which stays the caller's. */
int archive_guard_parse(const char *text, struct archive_guard *out) __attribute__((warn_unused_result));

/* Writes the tree of the open directory dir_fd (stays the caller's) to out_fd, every entry below the name `top_name`.
 * Blocks. Links are stored and never followed. Special files and what cannot be opened are left out, with a line on
 * stderr each. -1 after a line on stderr, and then the archive is cut short, never padded: a file became shorter than
 * its entry promised, a read failed in its middle, out_fd was closed, or memory is out. libarchive then leaks some
 * memory: the process is meant to end. */
int archive_tree_write(int dir_fd, int out_fd, enum archive_format format, const char *top_name,
                       const struct archive_guard *guards, size_t guard_count) __attribute__((warn_unused_result));

#endif
