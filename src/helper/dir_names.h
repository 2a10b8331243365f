/* The names in a directory, sorted by their bytes. */
#ifndef ABX_HELPER_DIR_NAMES_H
#define ABX_HELPER_DIR_NAMES_H

#include <stddef.h>

/* Zero it before use; dir_names_deinit frees. */
struct dir_names {
    char *bytes;        /* the names, each ended by NUL */
    const char **names; /* point into bytes */
    size_t count;
};

/* Reads the open directory fd (stays the caller's) without "." and "..". 0, or -1 with errno; EOVERFLOW where the names
 * take more than 64 MiB. */
int dir_names_read(struct dir_names *out, int fd) __attribute__((warn_unused_result));
void dir_names_deinit(struct dir_names *names);

#endif
