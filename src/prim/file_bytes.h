/* The bytes of open regular files: at an offset, or all of them block by block, and whether they are text. For reads
 * and checksums. */
#ifndef ABX_PRIM_FILE_BYTES_H
#define ABX_PRIM_FILE_BYTES_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FILE_BLOCK_BYTES = 64 * 1024,
    FILE_SHORT_BYTES = 8 * 1024 * 1024, /* going through more than that is long work */
};

/* The terms on which a file is read or gone through. */
struct file_terms {
    const atomic_bool *cancelled; /* looked at before each block */
    bool short_only;              /* long work is not begun: the function that was called answers 1 */
    bool at_once;                 /* nor is what might wait for a disk */
};

/* Reads up to len bytes; fewer only where the file ends. Blocks on the disk. -1 with err. */
int file_bytes_read_at(int fd, void *bytes, size_t len, uint64_t offset, size_t *out_len, struct err *err) ABX_MUST_USE;

/* The same for what the kernel has in memory, without blocking. -1 with errno: EAGAIN, or the file cannot tell. */
int file_bytes_read_cached(int fd, void *bytes, size_t len, uint64_t offset, size_t *out_len) ABX_MUST_USE;

/* -1 with err ends it. */
typedef int (*file_block_fn)(void *ctx, const char *bytes, size_t len, struct err *err);
/* Hands over the first `size` bytes of the file, or what is left of them where it shrank, in blocks of at most
 * FILE_BLOCK_BYTES. Holes cost no reading. Moves the descriptor's position. Blocks on the disk. -1 with err: that of
 * on_block, or where it was cancelled. */
int file_bytes_each(int fd, uint64_t size, const atomic_bool *cancelled, file_block_fn on_block, void *ctx,
                    struct err *err) ABX_MUST_USE;

/* UTF-8 without NUL. */
bool file_bytes_are_text(const char *bytes, size_t len);

#endif
