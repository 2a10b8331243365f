/* Parts of files as answers: by bytes with every kind of cut, by lines with every kind of end, text and binaries. */
#include "tree.h"

#include "base/base64.h"
#include "base/json.h"
#include "prim/file_read.h"

/* What an answer says. */
struct said {
    char content[1024], encoding[8], path[128], key[32];
    bool binary, lossy, eof;
    int64_t size, offset, length, total_lines; /* -1: not there */
    enum err_code code;                        /* ERR_NONE: all the others are filled in */
    char field[64];
};

static int on_key(void *ctx, const char *text, size_t len, struct err *err)
{
    struct said *said = ctx;
    (void)err;
    snprintf(said->key, sizeof(said->key), "%.*s", (int)len, text);
    return 0;
}

static int on_bool(void *ctx, bool value, struct err *err)
{
    struct said *said = ctx;
    (void)err;
    *(strcmp(said->key, "binary") == 0  ? &said->binary
      : strcmp(said->key, "lossy") == 0 ? &said->lossy
                                        : &said->eof) = value;
    return 0;
}

static int on_int(void *ctx, int64_t value, struct err *err)
{
    struct said *said = ctx;
    (void)err;
    *(strcmp(said->key, "size") == 0     ? &said->size
      : strcmp(said->key, "offset") == 0 ? &said->offset
      : strcmp(said->key, "length") == 0 ? &said->length
                                         : &said->total_lines) = value;
    return 0;
}

static int on_string(void *ctx, const char *text, size_t len, struct err *err)
{
    struct said *said = ctx;
    (void)err;
    if (strcmp(said->key, "content") == 0)
        snprintf(said->content, sizeof(said->content), "%.*s", (int)len, text);
    else if (strcmp(said->key, "encoding") == 0)
        snprintf(said->encoding, sizeof(said->encoding), "%.*s", (int)len, text);
    else if (strcmp(said->key, "path") == 0)
        snprintf(said->path, sizeof(said->path), "%.*s", (int)len, text);
    return 0;
}

static unsigned at_once_count;

/* What can be answered at once is the same answer; the rest is left alone. */
static void check_at_once(struct tree *tree, const char *path, const struct file_part *part, const struct buf *wanted,
                          int wanted_result)
{
    atomic_bool cancelled = false;
    struct file_terms terms = {.cancelled = &cancelled, .short_only = true, .at_once = true};
    struct err err = {0};
    struct buf out;
    buf_init(&out, 200 * 1024 * 1024);
    int result = file_read(tree->confine, path, strlen(path), part, &terms, &out, &err);
    if (result == 0) {
        assert_int_equal(wanted_result, 0);
        assert_int_equal(out.len, wanted->len);
        assert_memory_equal(out.data, wanted->data, out.len);
        at_once_count++;
    } else {
        assert_int_equal(result, 1);
        assert_int_equal(out.len, 0);
    }
    buf_deinit(&out);
}

static struct said read_on(struct tree *tree, const char *path, const struct file_part *part, bool short_only)
{
    static const struct json_events events = {
        .on_key = on_key, .on_bool = on_bool, .on_int = on_int, .on_string = on_string};
    atomic_bool cancelled = false;
    struct file_terms terms = {.cancelled = &cancelled, .short_only = short_only};
    struct said said = {.size = -1, .offset = -1, .length = -1, .total_lines = -1};
    struct err err = {0};
    struct buf out;
    buf_init(&out, 200 * 1024 * 1024);
    int result = file_read(tree->confine, path, strlen(path), part, &terms, &out, &err);
    if (terms.short_only)
        check_at_once(tree, path, part, &out, result);
    if (result == 0) {
        assert_int_equal(json_scan(out.data, out.len, &events, &said, &err), 0);
    } else {
        assert_int_equal(out.len, 0);
        assert_int_equal(result, err.code == ERR_NONE ? 1 : -1);
        said.code = err.code;
        snprintf(said.field, sizeof(said.field), "%s", err.field);
    }
    buf_deinit(&out);
    return said;
}

static struct said read_bytes(struct tree *tree, const char *path, enum file_encoding encoding, uint64_t offset,
                              size_t length)
{
    struct file_part part = {.encoding = encoding, .offset_bytes = offset, .length_bytes = length};
    return read_on(tree, path, &part, true);
}

static struct said read_lines(struct tree *tree, const char *path, enum file_encoding encoding, uint64_t first,
                              uint64_t last)
{
    struct file_part part = {.encoding = encoding, .by_lines = true, .first_line = first, .last_line = last};
    return read_on(tree, path, &part, true);
}

static void make_file(struct tree *tree, const char *name, const void *bytes, size_t len)
{
    int fd = open(tree_path(tree, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

static void make_sparse(struct tree *tree, const char *name, const char *head, off_t size)
{
    tree_file(tree, name, head);
    assert_int_equal(truncate(tree_path(tree, name), size), 0);
}

#define assert_part(said_, content_, encoding_, offset_, length_, eof_)                                                \
    do {                                                                                                               \
        struct said got_ = (said_);                                                                                    \
        assert_int_equal(got_.code, ERR_NONE);                                                                         \
        assert_string_equal(got_.content, content_);                                                                   \
        assert_string_equal(got_.encoding, encoding_);                                                                 \
        assert_int_equal(got_.offset, offset_);                                                                        \
        assert_int_equal(got_.length, length_);                                                                        \
        assert_int_equal(got_.eof, eof_);                                                                              \
    } while (0)

static void test_parts_by_bytes(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "hello\r\nworld");
    tree_file(tree, "ws/empty", "");
    tree_link(tree, "f", "ws/in");
    struct said whole = read_bytes(tree, "in", FILE_ENCODING_AUTO, 0, FILE_READ_DEFAULT_BYTES);
    assert_part(whole, "hello\r\nworld", "utf-8", 0, 12, true);
    assert_string_equal(whole.path, tree_path(tree, "ws/f"));
    assert_int_equal(whole.size, 12);
    assert_int_equal(whole.total_lines, -1);
    assert_false(whole.binary || whole.lossy);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 5, 4), "\r\nwo", "utf-8", 5, 4, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 9, 3), "rld", "utf-8", 9, 3, true);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 9, 2), "rl", "utf-8", 9, 2, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 3, 0), "", "utf-8", 3, 0, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 12, 5), "", "utf-8", 12, 0, true);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, INT64_MAX, 5), "", "utf-8", INT64_MAX, 0, true);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_BASE64, 0, 5), "aGVsbG8=", "base64", 0, 5, false);
    assert_part(read_bytes(tree, "empty", FILE_ENCODING_AUTO, 0, 10), "", "utf-8", 0, 0, true);
    assert_part(read_bytes(tree, "empty", FILE_ENCODING_BASE64, 0, 10), "", "base64", 0, 0, true);
}

static void test_cut_characters(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "a\xE2\x82\xACz\xF0\x9F\x98\x80"); /* a, euro, z, grinning face */
    /* The end cuts one: it is left out, and the next part begins with it. */
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 0, 2), "a", "utf-8", 0, 1, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_UTF8, 0, 3), "a", "utf-8", 0, 1, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 0, 4), "a\xE2\x82\xAC", "utf-8", 0, 4, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 4, 4), "z", "utf-8", 4, 1, false);
    /* Less than one character was asked for: it comes whole. */
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 1, 1), "\xE2\x82\xAC", "utf-8", 1, 3, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_UTF8, 1, 2), "\xE2\x82\xAC", "utf-8", 1, 3, false);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 5, 1), "\xF0\x9F\x98\x80", "utf-8", 5, 4, true);
    assert_part(read_bytes(tree, "f", FILE_ENCODING_AUTO, 0, 1), "a", "utf-8", 0, 1, false);
    /* Bytes are never left out. */
    assert_part(read_bytes(tree, "f", FILE_ENCODING_BASE64, 0, 2), "YeI=", "base64", 0, 2, false);
    /* From within a character they are no text. */
    struct said within = read_bytes(tree, "f", FILE_ENCODING_AUTO, 2, 3);
    assert_part(within, "gqx6", "base64", 2, 3, false);
    assert_true(within.binary);
    within = read_bytes(tree, "f", FILE_ENCODING_UTF8, 2, 3);
    assert_part(within, "\xEF\xBF\xBD\xEF\xBF\xBDz", "utf-8", 2, 3, false);
    assert_true(within.lossy);
    /* At the end of the file nothing will follow: there it is no character. */
    tree_file(tree, "ws/torn", "ok\xE2\x82");
    assert_part(read_bytes(tree, "torn", FILE_ENCODING_AUTO, 0, 100), "b2vigg==", "base64", 0, 4, true);
    assert_part(read_bytes(tree, "torn", FILE_ENCODING_UTF8, 0, 4), "ok\xEF\xBF\xBD", "utf-8", 0, 4, true);
    assert_part(read_bytes(tree, "torn", FILE_ENCODING_AUTO, 0, 3), "ok", "utf-8", 0, 2, false);
    assert_part(read_bytes(tree, "torn", FILE_ENCODING_AUTO, 2, 1), "4g==", "base64", 2, 1, false);
    assert_part(read_bytes(tree, "torn", FILE_ENCODING_UTF8, 2, 1), "\xEF\xBF\xBD", "utf-8", 2, 2, true);
}

/* A client that goes on at offset + length meets each byte once, whatever the file and the length. */
static void test_going_on(void **state)
{
    struct tree *tree = *state;
    static const char *const files[] = {"\xE4\xBD\xA0\xE5\xA5\xBD a\xC3\xBC\xF0\x9F\x98\x80\n", "\xE2\x82x\xE2\x82",
                                        "\xF0\x9F\x98", "\x80\x80\x80\x80\x80", "\xED\xA0\x80\xC0\xAF"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        tree_file(tree, "ws/f", files[i]);
        for (int encoding = FILE_ENCODING_AUTO; encoding <= FILE_ENCODING_BASE64; encoding++) {
            for (size_t length = 1; length < 8; length++) {
                int64_t at = 0;
                struct said said;
                do {
                    said = read_bytes(tree, "f", (enum file_encoding)encoding, (uint64_t)at, length);
                    assert_int_equal(said.offset, at);
                    assert_true(said.length > 0);
                    at += said.length;
                } while (!said.eof);
                assert_int_equal(at, strlen(files[i]));
            }
        }
    }
}

static void test_binaries(void **state)
{
    struct tree *tree = *state;
    make_file(tree, "ws/nul", "a\0b\n", 4);
    tree_file(tree, "ws/latin", "caf\xE9\n");
    tree_file(tree, "ws/surrogate", "\xED\xA0\x80");
    tree_file(tree, "ws/bom", "\xEF\xBB\xBFx\n");
    struct said said = read_bytes(tree, "nul", FILE_ENCODING_AUTO, 0, 10);
    assert_part(said, "YQBiCg==", "base64", 0, 4, true);
    assert_true(said.binary);
    said = read_bytes(tree, "nul", FILE_ENCODING_UTF8, 0, 10);
    assert_part(said, "a", "utf-8", 0, 4, true); /* up to the NUL, in C */
    assert_true(said.binary && !said.lossy);
    assert_part(read_bytes(tree, "nul", FILE_ENCODING_AUTO, 2, 10), "b\n", "utf-8", 2, 2, true);
    assert_part(read_bytes(tree, "latin", FILE_ENCODING_AUTO, 0, 10), "Y2Fm6Qo=", "base64", 0, 5, true);
    said = read_bytes(tree, "latin", FILE_ENCODING_UTF8, 0, 10);
    assert_part(said, "caf\xEF\xBF\xBD\n", "utf-8", 0, 5, true);
    assert_true(said.lossy && said.binary);
    said = read_bytes(tree, "surrogate", FILE_ENCODING_UTF8, 0, 10);
    assert_part(said, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "utf-8", 0, 3, true);
    assert_part(read_bytes(tree, "bom", FILE_ENCODING_AUTO, 0, 10), "\xEF\xBB\xBFx\n", "utf-8", 0, 5, true);

    assert_int_equal(read_lines(tree, "nul", FILE_ENCODING_AUTO, 1, 1).code, ERR_BINARY_FILE);
    assert_int_equal(read_lines(tree, "nul", FILE_ENCODING_AUTO, 2, 2).code, ERR_BINARY_FILE);
    assert_int_equal(read_lines(tree, "latin", FILE_ENCODING_AUTO, 1, 1).code, ERR_BINARY_FILE);
    assert_part(read_lines(tree, "latin", FILE_ENCODING_UTF8, 1, 1), "caf\xEF\xBF\xBD\n", "utf-8", 0, 5, true);
    assert_part(read_lines(tree, "nul", FILE_ENCODING_BASE64, 1, 9), "YQBiCg==", "base64", 0, 4, true);
    assert_part(read_lines(tree, "bom", FILE_ENCODING_AUTO, 1, 1), "\xEF\xBB\xBFx\n", "utf-8", 0, 5, true);
    /* One bad line far behind does not spoil the others. */
    tree_file(tree, "ws/log", "one\ntwo\xFF\nthree\n");
    assert_part(read_lines(tree, "log", FILE_ENCODING_AUTO, 1, 1), "one\n", "utf-8", 0, 4, false);
    assert_int_equal(read_lines(tree, "log", FILE_ENCODING_AUTO, 1, 2).code, ERR_BINARY_FILE);
    assert_part(read_lines(tree, "log", FILE_ENCODING_AUTO, 3, 3), "three\n", "utf-8", 9, 6, true);
}

static void test_lines(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "one\r\n\ntwo\rhalf\nlast");
    tree_file(tree, "ws/ended", "one\ntwo\n");
    tree_file(tree, "ws/empty", "");
    tree_file(tree, "ws/newline", "\n");
    static const struct {
        const char *name;
        uint64_t first, last;
        const char *content;
        int64_t offset;
        bool eof;
        int64_t total;
    } cases[] = {
        {"f", 1, 1, "one\r\n", 0, false, 4},
        {"f", 2, 2, "\n", 5, false, 4},
        {"f", 2, 3, "\ntwo\rhalf\n", 5, false, 4},
        {"f", 4, 4, "last", 15, true, 4},
        {"f", 3, UINT64_MAX, "two\rhalf\nlast", 6, true, 4},
        {"f", 1, 4, "one\r\n\ntwo\rhalf\nlast", 0, true, 4},
        {"f", 5, 9, "", 19, true, 4},
        {"f", INT64_MAX, INT64_MAX, "", 19, true, 4},
        {"ended", 2, 2, "two\n", 4, true, 2},
        {"ended", 3, 3, "", 8, true, 2},
        {"empty", 1, 1, "", 0, true, 0},
        {"newline", 1, 1, "\n", 0, true, 1},
        {"newline", 2, 2, "", 1, true, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct said said = read_lines(tree, cases[i].name, FILE_ENCODING_AUTO, cases[i].first, cases[i].last);
        assert_part(said, cases[i].content, "utf-8", cases[i].offset, strlen(cases[i].content), cases[i].eof);
        assert_int_equal(said.total_lines, cases[i].total);
    }
}

/* Lines that begin, end and run on over the borders of blocks: compared with those of a plain count. */
static void test_lines_over_blocks(void **state)
{
    struct tree *tree = *state;
    enum { LEN = 3 * FILE_BLOCK_BYTES + 17 };
    char *text = malloc(LEN);
    memset(text, 'x', LEN);
    size_t newlines[] = {FILE_BLOCK_BYTES - 1, FILE_BLOCK_BYTES, 2 * FILE_BLOCK_BYTES + 1, 3 * FILE_BLOCK_BYTES + 4};
    for (size_t i = 0; i < 4; i++)
        text[newlines[i]] = '\n';
    make_file(tree, "ws/f", text, LEN);
    size_t begin = 0;
    for (uint64_t line = 1; line <= 5; line++) {
        size_t end = line <= 4 ? newlines[line - 1] + 1 : LEN;
        struct said said = read_lines(tree, "f", FILE_ENCODING_AUTO, line, line);
        assert_int_equal(said.offset, begin);
        assert_int_equal(said.length, end - begin);
        assert_int_equal(said.total_lines, 5);
        assert_int_equal(said.eof, line == 5);
        begin = end;
    }
    assert_int_equal(read_lines(tree, "f", FILE_ENCODING_AUTO, 2, 4).length, newlines[3] - newlines[0]);
    free(text);
}

static void test_large_files(void **state)
{
    struct tree *tree = *state;
    const off_t size = (off_t)5 << 30;
    make_sparse(tree, "ws/huge", "first\n", size);
    int fd = open(tree_path(tree, "ws/huge"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\nend", 4, size - 4), 4);
    close(fd);
    struct said said = read_bytes(tree, "huge", FILE_ENCODING_AUTO, (uint64_t)size - 3, 100);
    assert_part(said, "end", "utf-8", size - 3, 3, true);
    assert_int_equal(said.size, size);
    assert_part(read_bytes(tree, "huge", FILE_ENCODING_BASE64, (uint64_t)1 << 32, 3), "AAAA", "base64",
                (int64_t)1 << 32, 3, false);
    assert_int_equal(read_bytes(tree, "huge", FILE_ENCODING_AUTO, 0, FILE_READ_MAX_BYTES).length, FILE_READ_MAX_BYTES);

    /* Going through it is long work. */
    struct file_part part = {.encoding = FILE_ENCODING_AUTO, .by_lines = true, .first_line = 1, .last_line = 1};
    assert_int_equal(read_on(tree, "huge", &part, true).code, ERR_NONE);
    assert_int_equal(read_on(tree, "huge", &part, true).size, -1);
    assert_int_equal(read_on(tree, "huge", &part, false).code, ERR_BINARY_FILE);

    make_sparse(tree, "ws/long", "x\n", FILE_READ_MAX_BYTES + 10);
    part.encoding = FILE_ENCODING_BASE64;
    assert_int_equal(read_on(tree, "long", &part, false).total_lines, 2);
    part.first_line = part.last_line = 2;
    said = read_on(tree, "long", &part, false);
    assert_int_equal(said.code, ERR_PAYLOAD_TOO_LARGE);
    assert_string_equal(said.field, "end_line");
}

/* What stands between holes is found; a hole is NUL like any other. */
static void test_holes(void **state)
{
    struct tree *tree = *state;
    const off_t size = (off_t)6 << 30;
    make_sparse(tree, "ws/holes", "one\n", size);
    int fd = open(tree_path(tree, "ws/holes"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\ntwo\n", 5, (off_t)1 << 30), 5);
    assert_int_equal(pwrite(fd, "three", 5, size - 5), 5);
    close(fd);
    struct file_part part = {.encoding = FILE_ENCODING_UTF8, .by_lines = true, .first_line = 3, .last_line = 3};
    struct said said = read_on(tree, "holes", &part, false);
    assert_part(said, "two\n", "utf-8", ((int64_t)1 << 30) + 1, 4, false);
    assert_int_equal(said.total_lines, 4);
    part.first_line = part.last_line = 5;
    assert_int_equal(read_on(tree, "holes", &part, false).offset, size);
    part.first_line = part.last_line = 4;
    assert_int_equal(read_on(tree, "holes", &part, false).code, ERR_PAYLOAD_TOO_LARGE);
}

/* Nothing is made up for what was cut off while it was read. */
static int count(void *ctx, const char *bytes, size_t len, struct err *err)
{
    (void)bytes;
    (void)err;
    *(size_t *)ctx += len;
    return 0;
}

static void test_shrunk(void **state)
{
    struct tree *tree = *state;
    atomic_bool cancelled = false;
    struct err err;
    off_t sizes[] = {0, 5, 100000, 3 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t seen = 0;
        make_sparse(tree, "ws/f", "hello", sizes[i]);
        int fd = open(tree_path(tree, "ws/f"), O_RDONLY);
        assert_int_equal(file_bytes_each(fd, (uint64_t)1 << 40, &cancelled, count, &seen, &err), 0);
        assert_int_equal(seen, sizes[i]);
        close(fd);
    }
}

static void test_cancelled(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "x\n");
    atomic_bool cancelled = true;
    struct file_terms terms = {.cancelled = &cancelled};
    struct file_part part = {.by_lines = true, .first_line = 1, .last_line = 1};
    struct err err;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(file_read(tree->confine, "f", 1, &part, &terms, &out, &err), -1);
    buf_deinit(&out);
}

static void test_what_is_refused(void **state)
{
    struct tree *tree = *state;
    tree_link(tree, "../out/secret", "ws/leaves");
    tree_link(tree, "none", "ws/dangling");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    assert_int_equal(read_bytes(tree, "leaves", FILE_ENCODING_AUTO, 0, 9).code, ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(read_bytes(tree, "dangling", FILE_ENCODING_AUTO, 0, 9).code, ERR_FILE_NOT_FOUND);
    assert_int_equal(read_bytes(tree, "fifo", FILE_ENCODING_AUTO, 0, 9).code, ERR_NOT_A_REGULAR_FILE);
    assert_int_equal(read_lines(tree, "", FILE_ENCODING_AUTO, 1, 1).code, ERR_IS_A_DIRECTORY);
}

/* A file that is replaced while it is open is told by the name that it had. */
static void test_path_of_what_was_removed(void **state)
{
    struct tree *tree = *state;
    char path[PATH_MAX];
    struct err err;
    const char *names[] = {"ws/f", "ws/x (deleted)"};
    for (size_t i = 0; i < 2; i++) {
        tree_file(tree, names[i], "x");
        int fd = open(tree_path(tree, names[i]), O_RDONLY);
        assert_int_equal(confine_path_of(fd, path, sizeof(path), &err), 0);
        assert_string_equal(path, tree_path(tree, names[i]));
        assert_int_equal(unlink(tree_path(tree, names[i])), 0);
        assert_int_equal(confine_path_of(fd, path, sizeof(path), &err), 0);
        assert_string_equal(path, tree_path(tree, names[i]));
        close(fd);
    }
}

/* After all others: some of them must have been answered so, unless this kernel or file system cannot. */
static void test_at_once(void **state)
{
    struct tree *tree = *state;
    char path[PATH_MAX];
    tree_file(tree, "ws/f", "x");
    struct stat found;
    int fd = confine_open_cached(tree->confine, "f", 1, path, &found);
    if (fd < 0 && !tree->walk)
        printf("NOT RUN: reads at once: the temporary folder's file system or kernel is not known for them\n");
    if (fd < 0)
        return;
    close(fd);
    assert_in_range(at_once_count, 10, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_parts_by_bytes), TREE_TEST(test_cut_characters),  TREE_TEST(test_going_on),
        TREE_TEST(test_binaries),       TREE_TEST(test_lines),           TREE_TEST(test_lines_over_blocks),
        TREE_TEST(test_large_files),    TREE_TEST(test_holes),           TREE_TEST(test_shrunk),
        TREE_TEST(test_cancelled),      TREE_TEST(test_what_is_refused), TREE_TEST(test_path_of_what_was_removed),
        TREE_TEST(test_at_once),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tree_use_memory() ? failed + cmocka_run_group_tests_name("in memory", tests, NULL, NULL) : failed;
}
