/* A part of a file as the JSON text of an answer, by bytes or by lines. For fs.read. */
#ifndef ABX_PRIM_FILE_READ_H
#define ABX_PRIM_FILE_READ_H

#include "base/buf.h"
#include "base/err.h"
#include "prim/confine.h"
#include "prim/file_bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILE_READ_MAX_BYTES = 32 * 1024 * 1024, FILE_READ_DEFAULT_BYTES = 1024 * 1024 };

enum file_encoding {
    FILE_ENCODING_AUTO, /* UTF-8 where the bytes are text, else base64 */
    FILE_ENCODING_UTF8, /* what is not UTF-8 becomes U+FFFD */
    FILE_ENCODING_BASE64,
};

struct file_part {
    enum file_encoding encoding;
    bool by_lines;
    uint64_t first_line, last_line; /* from 1, inclusive */
    uint64_t offset_bytes;
    size_t length_bytes; /* at most FILE_READ_MAX_BYTES */
};

/* Appends the answer of GET /files/read in braces. The part that it tells of is what it holds: by bytes, as text, a
 * character that the end would cut is left out (where it is all that was asked for, it comes whole, up to three bytes
 * more); one that the beginning cuts is not, so bytes from within a character are no text. Nothing past the size that
 * the file had at first is answered, and size and etag are of that moment: a change that comes later than the etag
 * makes it stale.
 * Blocks on the disk, unless terms->at_once. 1: reading by lines would be long work and terms->short_only is set, or
 * at_once is, and not all is in memory: nothing was appended. -1
 * with err: the path's, those of file_lines_read. */
int file_read(const struct confine *confine, const char *path, size_t path_len, const struct file_part *part,
              const struct file_terms *terms, struct buf *out, struct err *err) ABX_MUST_USE;

#endif
