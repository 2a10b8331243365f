/* Lines of a file by their numbers: found by going through all of it once, in bounded memory. For file_read. */
#ifndef ABX_PRIM_FILE_LINES_H
#define ABX_PRIM_FILE_LINES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A line ends behind its "\n" (a CR before it belongs to the line), or where the file does. */
struct file_lines {
    uint64_t first, last; /* wanted: from 1, inclusive */
    bool text_only;       /* binaries are refused */

    uint64_t total;  /* in the file */
    uint64_t offset; /* of the first one's first byte; the end of the file where there is no such line */
    uint64_t scanned_bytes;
};

/* Appends the wanted lines of the file's first `size` bytes to out and fills in the rest of *lines. Blocks on the disk.
 * -1 with err: out's maximum or memory is short (ERR_PAYLOAD_TOO_LARGE), it was cancelled, or with text_only
 * ERR_BINARY_FILE: the file's first 64 KiB hold NUL, or the wanted lines hold NUL or are not UTF-8. */
int file_lines_read(int fd, uint64_t size, struct file_lines *lines, const atomic_bool *cancelled, struct buf *out,
                    struct err *err) ABX_MUST_USE;

#endif
