/* The names in one directory, sorted by their bytes, for what lists, searches, copies and removes trees. Blocking. */
#ifndef ABX_PRIM_DIR_SCAN_H
#define ABX_PRIM_DIR_SCAN_H

#include "base/err.h"

#include <stddef.h>

struct dir_scan {
    struct dir_name {
        const char *name;   /* NUL-terminated, neither "." nor ".." */
        unsigned char type; /* DT_REG, DT_DIR, DT_LNK …; DT_UNKNOWN where the file system does not tell */
    } * names;
    size_t count;
    char *text; /* holds the names */
};

/* dir_fd is open for reading (no O_PATH) and stays the caller's; its position is moved. *out is to be freed by
 * dir_scan_free, also after a failure: then it holds what could be read. -1 with errno: ENOMEM, EACCES, EIO … */
int dir_scan(int dir_fd, struct dir_scan *out) ABX_MUST_USE;
void dir_scan_free(struct dir_scan *scan);

#endif
