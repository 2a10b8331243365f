/* Reads a part of a file and makes the answer of it, at once or on a thread, for fs.read. */
#include "prim/file_read.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "prim/entry.h"
#include "prim/file_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHARACTER_MAX_BYTES = 4, HEAD_BYTES = 1024, AT_ONCE_MAX_BYTES = 64 * 1024 };

/* What is answered. */
struct answer {
    struct stat found;
    char path[PATH_MAX];
    struct buf bytes; /* may hold more than len */
    size_t len;
    uint64_t offset;
    bool cached_only; /* nothing that a disk would have to be asked for is read */
    bool is_text, is_base64, eof, has_total_lines;
    uint64_t total_lines;
};

static int out_of_memory(struct err *err)
{
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot read the file");
}

/* How many of the len bytes to answer as text; those up to have are at hand too. */
static size_t text_len(const char *bytes, size_t len, size_t have)
{
    size_t whole = utf8_whole_len(bytes, len);
    if (whole > 0 || len == 0)
        return whole;
    /* All that was asked for is the beginning of one character. Without it the client would ask for the same again. */
    bool valid;
    return utf8_next(bytes, have, &valid);
}

static void choose_encoding(struct answer *answer, enum file_encoding wanted, size_t as_text_len, size_t as_bytes_len)
{
    answer->is_text = file_bytes_are_text(answer->bytes.data, as_text_len);
    answer->is_base64 = wanted == FILE_ENCODING_BASE64 || (wanted == FILE_ENCODING_AUTO && !answer->is_text);
    answer->len = answer->is_base64 ? as_bytes_len : as_text_len;
}

/* 1: not all of it was there at once. */
static int read_at(int fd, char *bytes, size_t want, uint64_t offset, bool cached, size_t *have, struct err *err)
{
    if (!cached)
        return file_bytes_read_at(fd, bytes, want, offset, have, err);
    return file_bytes_read_cached(fd, bytes, want, offset, have) == 0 && *have == want ? 0 : 1;
}

static int read_bytes(int fd, const struct file_part *part, const struct file_terms *terms, struct answer *answer,
                      struct err *err)
{
    uint64_t size = (uint64_t)answer->found.st_size, offset = part->offset_bytes;
    uint64_t left = offset < size ? size - offset : 0;
    size_t want = part->length_bytes, have = 0;
    if (want > 0 && want < CHARACTER_MAX_BYTES)
        want = CHARACTER_MAX_BYTES;
    if (want > left)
        want = (size_t)left;
    if (terms->at_once && want > AT_ONCE_MAX_BYTES)
        return 1;
    if (buf_reserve(&answer->bytes, want) != 0)
        return out_of_memory(err);
    int result = want > 0 ? read_at(fd, answer->bytes.data, want, offset, answer->cached_only, &have, err) : 0;
    if (result != 0)
        return result;

    size_t len = have < part->length_bytes ? have : part->length_bytes;
    bool has_shrunk = have < want, ends_here = len == have && (has_shrunk || len == left);
    choose_encoding(answer, part->encoding, ends_here ? len : text_len(answer->bytes.data, len, have), len);
    answer->offset = offset;
    answer->eof = answer->len == left || (has_shrunk && answer->len == have);
    return 0;
}

static int read_lines(int fd, const struct file_part *part, const struct file_terms *terms, struct answer *answer,
                      struct err *err)
{
    uint64_t size = (uint64_t)answer->found.st_size;
    if (terms->short_only && size > FILE_SHORT_BYTES)
        return 1;
    struct file_lines lines = {
        .first = part->first_line, .last = part->last_line, .text_only = part->encoding == FILE_ENCODING_AUTO};
    if (file_lines_read(fd, size, &lines, terms->cancelled, &answer->bytes, err) != 0)
        return -1;
    choose_encoding(answer, part->encoding, answer->bytes.len, answer->bytes.len);
    answer->offset = lines.offset;
    answer->eof = lines.offset + answer->len >= lines.scanned_bytes;
    answer->has_total_lines = true;
    answer->total_lines = lines.total;
    return 0;
}

static int write_content(const struct answer *answer, struct buf *out)
{
    const char *bytes = answer->bytes.data;
    size_t len = answer->len;
    bool lossy = !answer->is_base64 && !answer->is_text && !utf8_valid(bytes, len);
    if (buf_append_text(out, ",\"content\":\"") != 0 ||
        (answer->is_base64 ? base64_encode(out, bytes, len) : json_write_escaped(out, bytes, len)) != 0)
        return -1;
    if (buf_append_text(out, answer->is_base64 ? "\",\"encoding\":\"base64\"" : "\",\"encoding\":\"utf-8\"") != 0 ||
        buf_append_text(out, answer->is_text ? ",\"binary\":false" : ",\"binary\":true") != 0)
        return -1;
    return lossy ? buf_append_text(out, ",\"lossy\":true") : 0;
}

/* Files and numbers of lines stay below 2^63. */
static int write_number(struct buf *out, const char *member, uint64_t value)
{
    return buf_append_text(out, member) != 0 ? -1 : json_write_int(out, (int64_t)value);
}

static int write_rest(const struct answer *answer, struct buf *out)
{
    char etag[ENTRY_ETAG_MAX];
    entry_etag(etag, &answer->found);
    if (write_number(out, ",\"size\":", (uint64_t)answer->found.st_size) != 0 ||
        write_number(out, ",\"offset\":", answer->offset) != 0 || write_number(out, ",\"length\":", answer->len) != 0 ||
        (answer->has_total_lines && write_number(out, ",\"total_lines\":", answer->total_lines) != 0) ||
        buf_append_text(out, answer->eof ? ",\"eof\":true" : ",\"eof\":false") != 0)
        return -1;
    if (buf_append_text(out, ",\"etag\":") != 0 || json_write_string(out, etag, strlen(etag)) != 0 ||
        buf_append(out, ",", 1) != 0 || entry_write_time(out, "modified_at", &answer->found.st_mtim) != 0)
        return -1;
    return buf_append(out, "}", 1);
}

static int write_answer(const struct answer *answer, struct buf *out, struct err *err)
{
    /* Most text needs few escapes: the buffer grows where it does. */
    size_t len = answer->is_base64 ? base64_encoded_len(answer->len) : answer->len + answer->len / 16;
    if (buf_reserve(out, len + HEAD_BYTES) != 0 || buf_append(out, "{", 1) != 0 ||
        entry_write_path(out, "path", answer->path, strlen(answer->path)) != 0 || write_content(answer, out) != 0 ||
        write_rest(answer, out) != 0)
        return out_of_memory(err);
    return 0;
}

static int read_part(int fd, const struct file_part *part, const struct file_terms *terms, struct answer *answer,
                     struct err *err)
{
    if (!part->by_lines)
        return read_bytes(fd, part, terms, answer, err);
    return terms->at_once ? 1 : read_lines(fd, part, terms, answer, err);
}

static int open_file(const struct confine *confine, const char *path, size_t path_len, struct answer *answer,
                     struct err *err)
{
    int fd = confine_open_file(confine, path, path_len, O_RDONLY, err);
    if (fd < 0)
        return -1;
    if (confine_path_of(fd, answer->path, sizeof(answer->path), err) == 0) {
        if (fstat(fd, &answer->found) == 0)
            return fd;
        err_set_errno(err, ERR_INTERNAL, errno, "cannot look at an open file");
    }
    close(fd);
    return -1;
}

int file_read(const struct confine *confine, const char *path, size_t path_len, const struct file_part *part,
              const struct file_terms *terms, struct buf *out, struct err *err)
{
    struct answer answer; /* not cleared: it holds a path */
    int fd = terms->at_once ? confine_open_cached(confine, path, path_len, answer.path, &answer.found)
                            : open_file(confine, path, path_len, &answer, err);
    if (fd < 0)
        return terms->at_once ? 1 : -1;
    answer.len = 0;
    answer.has_total_lines = false;
    answer.cached_only = terms->at_once && !confine_is_in_memory(confine);
    buf_init(&answer.bytes, FILE_READ_MAX_BYTES);
    int result = read_part(fd, part, terms, &answer, err);
    close(fd);
    if (result == 0)
        result = write_answer(&answer, out, err);
    buf_deinit(&answer.bytes);
    return result;
}
