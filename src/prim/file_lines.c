/* Counts lines and keeps those that are wanted; called by file_read.c. */
#include "prim/file_lines.h"

#include "prim/file_bytes.h"

#include <string.h>

struct scan {
    struct file_lines *lines;
    struct buf *out;
    uint64_t at;        /* bytes before the block in hand */
    uint64_t line;      /* the number of the line that the next byte belongs to */
    bool is_line_begun; /* it has bytes already */
};

static int refuse_binary(struct err *err)
{
    return err_set(
        err, ERR_BINARY_FILE,
        "the file is not text (UTF-8 without NUL); encoding=base64 gives the exact bytes of its lines, utf-8 "
        "replaces what is not UTF-8");
}

static int keep(struct scan *scan, const char *bytes, size_t len, struct err *err)
{
    if (buf_append_few(scan->out, bytes, len) == 0)
        return 0;
    err_set(err, ERR_PAYLOAD_TOO_LARGE,
            "these lines are over %zu bytes; ask for fewer of them, or use offset and length", scan->out->max);
    return err_field(err, "end_line");
}

/* Binaries mostly show it there; NUL further on is the matter of those who want its line. */
static bool is_nul_near_start(const struct scan *scan, const char *block, size_t len)
{
    if (scan->at >= FILE_BLOCK_BYTES)
        return false;
    size_t near_len = FILE_BLOCK_BYTES - (size_t)scan->at;
    return memchr(block, '\0', len < near_len ? len : near_len) != NULL;
}

static int on_block(void *ctx, const char *block, size_t len, struct err *err)
{
    struct scan *scan = ctx;
    struct file_lines *lines = scan->lines;
    if (lines->text_only && is_nul_near_start(scan, block, len))
        return refuse_binary(err);
    for (size_t begin = 0, end; begin < len; begin = end) {
        const char *newline = memchr(block + begin, '\n', len - begin);
        end = newline ? (size_t)(newline - block) + 1 : len;
        if (scan->line == lines->first && !scan->is_line_begun)
            lines->offset = scan->at + begin;
        if (scan->line >= lines->first && scan->line <= lines->last && keep(scan, block + begin, end - begin, err) != 0)
            return -1;
        scan->is_line_begun = !newline;
        scan->line += newline != NULL;
    }
    scan->at += len;
    return 0;
}

int file_lines_read(int fd, uint64_t size, struct file_lines *lines, const atomic_bool *cancelled, struct buf *out,
                    struct err *err)
{
    struct scan scan = {.lines = lines, .out = out, .line = 1};
    if (file_bytes_each(fd, size, cancelled, on_block, &scan, err) != 0)
        return -1;
    if (lines->text_only && !file_bytes_are_text(out->data, out->len))
        return refuse_binary(err);
    lines->total = scan.line - !scan.is_line_begun;
    lines->scanned_bytes = scan.at;
    if (lines->first > lines->total)
        lines->offset = scan.at;
    return 0;
}
