/* Reads a file window by window for search; see search_file.h. It is read, not mapped: a map of a file that shrinks
 * meanwhile ends the process (SIGBUS). */
#include "prim/search_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 * 1024, /* stays in the second cache */
    BINARY_BYTES = 64 * 1024,
    LOOK_BACK_BYTES = 16, /* of a part of a line, for \b and the like */
};

struct search_reader {
    struct search_matcher *matcher;
    struct search_hits *hits;
    struct search_limits *limits;
    const struct search_found *found;
    int fd;
    uint64_t size, offset; /* of the file; what was read of it */
    size_t len;            /* in text */
    bool eof, failed;
    char text[SEARCH_LINE_MAX_BYTES];
};

struct search_reader *search_reader_new(struct search_matcher *matcher, struct search_hits *hits,
                                        struct search_limits *limits)
{
    struct search_reader *reader = malloc(sizeof *reader);
    if (reader) {
        reader->matcher = matcher;
        reader->hits = hits;
        reader->limits = limits;
    }
    return reader;
}

void search_reader_free(struct search_reader *reader)
{
    free(reader);
}

/* Some more bytes, if there is room for any. A read that comes short at the size that the file has is its end: that
 * saves a call for each small file. */
static void read_more(struct search_reader *reader)
{
    size_t room = sizeof reader->text - reader->len, wanted = room < READ_BYTES ? room : READ_BYTES;
    ssize_t got;
    do
        got = wanted > 0 ? read(reader->fd, reader->text + reader->len, wanted) : 0;
    while (got < 0 && errno == EINTR);
    if (got < 0)
        reader->failed = true;
    if (got <= 0) {
        reader->eof = reader->eof || wanted > 0;
        return;
    }
    reader->len += (size_t)got;
    reader->offset += (uint64_t)got;
    reader->eof = (size_t)got < wanted && reader->offset == reader->size;
}

static void drop(struct search_reader *reader, size_t len)
{
    reader->len -= len;
    memmove(reader->text, reader->text + len, reader->len);
}

static bool is_over(struct search_reader *reader)
{
    return reader->found->full || search_is_over(reader->limits);
}

/* Whole lines, from the start of text. */
static void search_window(struct search_reader *reader, size_t len)
{
    struct search_match match = {.line_end = 0};
    search_hits_window(reader->hits, reader->text, len);
    for (size_t from = 0; search_matcher_next(reader->matcher, reader->text, len, from, &match);) {
        search_hits_add(reader->hits, &match);
        from = match.line_end + 1;
        if (from >= len || reader->found->full)
            break;
    }
}

/* One part. True: it has the line's match. */
static bool search_part(struct search_reader *reader, size_t len, uint64_t base, bool is_last)
{
    struct search_match match;
    int flags = (base > 0 ? SEARCH_PART_NOT_FIRST : 0) | (is_last ? 0 : SEARCH_PART_NOT_LAST);
    size_t from = base > 0 ? LOOK_BACK_BYTES : 0;
    if (len < from || !search_matcher_part(reader->matcher, reader->text, len, from, flags, &match))
        return false;
    /* What begins in the overlap is found again in the next part, with what follows it. */
    if (!is_last && match.start >= len - SEARCH_OVERLAP_BYTES + LOOK_BACK_BYTES)
        return false;
    search_hits_long_add(reader->hits, reader->text, len, base, &match);
    return true;
}

/* The line that fills all of text, up to its end, which is dropped from text. */
static void search_long_line(struct search_reader *reader)
{
    uint64_t base = 0;
    size_t scanned = reader->len; /* for a line feed */
    bool found = false;
    search_hits_long_begin(reader->hits, reader->text, reader->len);
    for (;;) {
        const char *end = memchr(reader->text + scanned, '\n', reader->len - scanned);
        bool is_last = end || reader->eof, has_room = reader->len < sizeof reader->text;
        size_t len = end ? (size_t)(end - reader->text) : reader->len;
        scanned = reader->len;
        if (!is_last && has_room) {
            read_more(reader);
            continue;
        }
        if (!found)
            found = search_part(reader, len, base, is_last);
        if (is_last || is_over(reader)) {
            drop(reader, end ? len + 1 : len);
            break;
        }
        size_t done = found ? len : len - SEARCH_OVERLAP_BYTES;
        drop(reader, done);
        base += done;
        scanned = reader->len;
    }
    search_hits_long_leave(reader->hits);
}

/* All whole lines that there are; else more is read, or the line is too long. */
static void step(struct search_reader *reader)
{
    const char *last = reader->eof ? NULL : memrchr(reader->text, '\n', reader->len);
    size_t len = reader->eof ? reader->len : last ? (size_t)(last + 1 - reader->text) : 0;
    if (len > 0) {
        search_window(reader, len);
        if (!reader->eof)
            search_hits_leave(reader->hits);
        drop(reader, len);
    } else if (reader->len == sizeof reader->text) {
        search_long_line(reader);
    }
}

bool search_reader_run(struct search_reader *reader, int fd, uint64_t size, const struct search_found *found)
{
    reader->found = found;
    reader->fd = fd;
    reader->size = size;
    reader->offset = reader->len = 0;
    reader->eof = reader->failed = false;
    read_more(reader);
    size_t seen = reader->len < BINARY_BYTES ? reader->len : BINARY_BYTES;
    if (reader->failed || memchr(reader->text, '\0', seen))
        return false;
    if (reader->len >= 3 && memcmp(reader->text, "\xEF\xBB\xBF", 3) == 0)
        drop(reader, 3);
    for (;;) {
        step(reader);
        if ((reader->eof && reader->len == 0) || is_over(reader))
            return true;
        read_more(reader);
    }
}
