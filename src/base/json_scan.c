/* The one JSON parser for bytes from clients and workers: strict, iterative, and without a tree of its own. */
#include "base/json.h"
#include "base/utf8.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scan {
    const char *text, *at, *end;
    const struct json_events *events;
    void *ctx;
    struct err *err;
    char *decoded; /* for strings with escapes; grows to the longest one */
    size_t decoded_cap;
    int depth;
    bool in_object[JSON_DEPTH_MAX];
};

enum expect { EXPECT_VALUE, EXPECT_VALUE_OR_END, EXPECT_KEY, EXPECT_KEY_OR_END, EXPECT_COMMA_OR_END, EXPECT_NOTHING };

/* The arguments are not evaluated where there is no callback. */
#define EMIT(scan, event, ...)                                                                                         \
    ((scan)->events->event && (scan)->events->event((scan)->ctx, __VA_ARGS__, (scan)->err) != 0 ? -1 : 0)

static int refuse(struct scan *scan, const char *what)
{
    return err_set(scan->err, ERR_INVALID_JSON, "%s at byte %zu", what, (size_t)(scan->at - scan->text));
}

static void skip_space(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
        scan->at++;
}

/* --- strings */

/* The first byte from `at` on that is a control, a quote or a backslash (or the end); *high becomes true where a byte
 * that is not ASCII was passed. Eight bytes a step; the tests for "a byte below n" and "a zero byte" are the well-known
 * exact ones, which leave out bytes with the high bit. */
static const char *find_special(const char *at, const char *end, bool *high)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    uint64_t seen = 0;
    at += json_plain_len(at, (size_t)(end - at));
    for (uint64_t word; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        word = le64toh(word);
        uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
        uint64_t hit = ((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
        hit &= highs;
        if (hit) {
            /* The lowest one is exact; a borrow can only make more of them above it. */
            int before = __builtin_ctzll(hit) / 8;
            seen |= before > 0 ? word << (64 - 8 * before) : 0;
            *high |= (seen & highs) != 0;
            return at + before;
        }
        seen |= word;
    }
    for (; at < end; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == '"' || byte == '\\')
            break;
        seen |= byte;
    }
    *high |= (seen & highs) != 0;
    return at;
}

static int hex4(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *put_utf8(char *to, unsigned point)
{
    if (point < 0x80) {
        *to++ = (char)point;
    } else if (point < 0x800) {
        *to++ = (char)(0xC0 | point >> 6);
        *to++ = (char)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *to++ = (char)(0xE0 | point >> 12);
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    } else {
        *to++ = (char)(0xF0 | point >> 18);
        *to++ = (char)(0x80 | (point >> 12 & 0x3F));
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    }
    return to;
}

/* One escape at scan->at (the backslash); NULL where it is none. */
static char *decode_escape(struct scan *scan, char *to)
{
    static const char from[] = "\"\\/bfnrt", what[] = "\"\\/\b\f\n\r\t";
    const char *at = scan->at + 1;
    if (at >= scan->end)
        return NULL;
    if (*at != 'u') {
        const char *known = memchr(from, *at, sizeof from - 1);
        if (!known)
            return NULL;
        *to++ = what[known - from];
        scan->at = at + 1;
        return to;
    }
    int unit = hex4(at + 1, scan->end);
    at += 5;
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
        return NULL;
    unsigned point = (unsigned)unit;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        int low = scan->end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? hex4(at + 2, scan->end) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return NULL;
        point = 0x10000 + ((unsigned)(unit - 0xD800) << 10) + (unsigned)(low - 0xDC00);
        at += 6;
    }
    scan->at = at;
    return put_utf8(to, point);
}

/* The closing quote of a string that holds escapes, or the end; what stands between is checked while it is decoded. */
static const char *find_close(const char *at, const char *end)
{
    bool high = false;
    while ((at = find_special(at, end, &high)) < end && *at != '"')
        at += *at == '\\' && end - at >= 2 ? 2 : 1;
    return at;
}

/* A string at scan->at (its opening quote): *out_text is in the document where nothing had to be decoded. */
static int scan_string(struct scan *scan, const char **out_text, size_t *out_len)
{
    bool high = false;
    const char *start = ++scan->at, *stop = find_special(start, scan->end, &high);
    char *to = NULL;
    if (stop < scan->end && *stop == '\\') {
        /* Decoding never makes a string longer. */
        size_t needed = (size_t)(find_close(stop, scan->end) - start);
        if (needed > scan->decoded_cap) {
            free(scan->decoded);
            scan->decoded_cap = needed;
            scan->decoded = malloc(needed);
            if (!scan->decoded) {
                scan->decoded_cap = 0;
                return err_set(scan->err, ERR_PAYLOAD_TOO_LARGE, "out of memory for the JSON document");
            }
        }
        to = scan->decoded;
    }
    for (;;) {
        if (to && stop > scan->at) {
            memcpy(to, scan->at, (size_t)(stop - scan->at));
            to += stop - scan->at;
        }
        scan->at = stop;
        if (stop == scan->end)
            return refuse(scan, "string without end");
        if (*stop == '"')
            break;
        if (*stop != '\\')
            return refuse(scan, "control character in a string");
        to = decode_escape(scan, to);
        if (!to)
            return refuse(scan, "bad escape in a string");
        stop = find_special(scan->at, scan->end, &high);
    }
    *out_text = to ? scan->decoded : start;
    *out_len = to ? (size_t)(to - scan->decoded) : (size_t)(stop - start);
    if (high && !utf8_valid(*out_text, *out_len)) {
        scan->at = start;
        return refuse(scan, "string that is not UTF-8");
    }
    scan->at = stop + 1;
    return 0;
}

/* --- numbers */

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* strtod wants a NUL behind the number. It is linear in the digits. */
static int emit_double(struct scan *scan, const char *start, size_t len)
{
    char small[64], *copy = len < sizeof small ? small : malloc(len + 1);
    if (!copy)
        return err_set(scan->err, ERR_PAYLOAD_TOO_LARGE, "out of memory for the JSON document");
    memcpy(copy, start, len);
    copy[len] = '\0';
    double value = strtod(copy, NULL);
    if (copy != small)
        free(copy);
    if (!isfinite(value)) {
        scan->at = start;
        return refuse(scan, "number too large");
    }
    return EMIT(scan, on_double, value);
}

static int scan_number(struct scan *scan)
{
    const char *start = scan->at, *end = scan->end, *at = start;
    bool negative = *at == '-';
    const char *digits = at += negative;
    at = skip_digits(at, end);
    bool good = at > digits && (*digits != '0' || at == digits + 1), whole = true;
    const char *digits_end = at;
    if (good && at < end && *at == '.') {
        const char *fraction = ++at;
        at = skip_digits(at, end);
        good = at > fraction;
        whole = false;
    }
    if (good && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        const char *exponent = at;
        at = skip_digits(at, end);
        good = at > exponent;
        whole = false;
    }
    if (!good)
        return refuse(scan, "bad number");
    scan->at = at;

    /* "-0" is no integer of ours: as a double it keeps its sign. */
    if (whole && digits_end - digits <= 19 && !(negative && *digits == '0')) {
        uint64_t magnitude = 0; /* 19 digits fit */
        for (const char *digit = digits; digit < digits_end; digit++)
            magnitude = magnitude * 10 + (uint64_t)(*digit - '0');
        if (magnitude <= (uint64_t)INT64_MAX + negative)
            return EMIT(scan, on_int, negative ? (int64_t)-magnitude : (int64_t)magnitude);
    }
    return emit_double(scan, start, (size_t)(at - start));
}

/* --- the document */

static int scan_word(struct scan *scan, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
        return refuse(scan, "unknown word");
    scan->at += len;
    return 0;
}

static int open_container(struct scan *scan, bool object)
{
    if (scan->depth == JSON_DEPTH_MAX)
        return refuse(scan, "nesting too deep");
    scan->in_object[scan->depth++] = object;
    scan->at++;
    return EMIT(scan, on_begin, object);
}

static int close_container(struct scan *scan)
{
    bool object = scan->in_object[--scan->depth];
    scan->at++;
    return EMIT(scan, on_end, object);
}

static int scan_scalar(struct scan *scan)
{
    const char *text;
    size_t len;
    switch (*scan->at) {
    case '"':
        return scan_string(scan, &text, &len) < 0 ? -1 : EMIT(scan, on_string, text, len);
    case 't':
        return scan_word(scan, "true") < 0 ? -1 : EMIT(scan, on_bool, true);
    case 'f':
        return scan_word(scan, "false") < 0 ? -1 : EMIT(scan, on_bool, false);
    case 'n':
        if (scan_word(scan, "null") < 0)
            return -1;
        return scan->events->on_null && scan->events->on_null(scan->ctx, scan->err) != 0 ? -1 : 0;
    case '-':
    case '0' ... '9':
        return scan_number(scan);
    default:
        return refuse(scan, "unexpected character");
    }
}

static int scan_key(struct scan *scan)
{
    const char *text;
    size_t len;
    if (*scan->at != '"')
        return refuse(scan, "a member name was expected");
    if (scan_string(scan, &text, &len) < 0 || EMIT(scan, on_key, text, len) < 0)
        return -1;
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != ':')
        return refuse(scan, "':' was expected");
    scan->at++;
    return 0;
}

static int scan_document(struct scan *scan)
{
    enum expect expect = EXPECT_VALUE;
    for (;;) {
        skip_space(scan);
        if (scan->at == scan->end)
            return expect == EXPECT_NOTHING ? 0 : refuse(scan, "unexpected end");
        char next = *scan->at;
        bool in_object = scan->depth > 0 && scan->in_object[scan->depth - 1];
        int rc = 0;
        switch (expect) {
        case EXPECT_NOTHING:
            return refuse(scan, "text after the end");
        case EXPECT_KEY_OR_END:
        case EXPECT_KEY:
            if (expect == EXPECT_KEY_OR_END && next == '}') {
                rc = close_container(scan);
                expect = EXPECT_COMMA_OR_END;
                break;
            }
            rc = scan_key(scan);
            expect = EXPECT_VALUE;
            break;
        case EXPECT_VALUE_OR_END:
        case EXPECT_VALUE:
            if (next == '{' || next == '[') {
                rc = open_container(scan, next == '{');
                expect = next == '{' ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
                break;
            }
            rc = expect == EXPECT_VALUE_OR_END && next == ']' ? close_container(scan) : scan_scalar(scan);
            expect = EXPECT_COMMA_OR_END;
            break;
        case EXPECT_COMMA_OR_END:
            if (next == ',') {
                scan->at++;
                expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
            } else if (next == (in_object ? '}' : ']')) {
                rc = close_container(scan);
            } else {
                return refuse(scan, in_object ? "',' or '}' was expected" : "',' or ']' was expected");
            }
            break;
        }
        if (rc < 0)
            return -1;
        if (expect == EXPECT_COMMA_OR_END && scan->depth == 0)
            expect = EXPECT_NOTHING;
    }
}

int json_scan(const char *text, size_t len, const struct json_events *events, void *ctx, struct err *err)
{
    if (!text)
        text = "";
    struct scan scan = {.text = text, .at = text, .end = text + len, .events = events, .ctx = ctx, .err = err};
    int rc = scan_document(&scan);
    free(scan.decoded);
    return rc;
}
