/* Writes a directory tree as an archive while it is walked: memory stays flat, whatever the tree's size. */
#ifndef ABX_HELPER_ARCHIVE_TREE_H
#define ABX_HELPER_ARCHIVE_TREE_H

enum archive_format { ARCHIVE_FORMAT_UNKNOWN, ARCHIVE_FORMAT_TAR_GZ, ARCHIVE_FORMAT_ZIP };

/* By its name in the contract, "tar.gz" or "zip". */
enum archive_format archive_tree_format(const char *name);

/* Writes the tree of the open directory dir_fd (stays the caller's) to out_fd, every entry below the name `top_name`.
 * Blocks. Links are stored and never followed. Special files and what cannot be opened are left out, with a line on
 * stderr each. -1 after a line on stderr, and then the archive is cut short, never padded: a file became shorter than
 * its entry promised, a read failed in its middle, out_fd was closed, or memory is out. libarchive then leaks some
 * memory: the process is meant to end. */
int archive_tree_write(int dir_fd, int out_fd, enum archive_format format, const char *top_name)
    __attribute__((warn_unused_result));

#endif
