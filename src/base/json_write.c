/* Writes JSON scalars into a buffer: answers, events, problems and log lines are made of them. */
#include "base/json.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Vectors as gcc and clang make them for any processor. */
typedef signed char bytes16 __attribute__((vector_size(16)));

/* Each byte that is a control, a quote, a backslash or (negative) not ASCII becomes -1. */
static bytes16 needing_care(const char *text)
{
    bytes16 bytes;
    memcpy(&bytes, text, sizeof bytes);
    return (bytes < 0x20) | (bytes == '"') | (bytes == '\\');
}

static bool is_any(bytes16 marks)
{
    uint64_t halves[2];
    memcpy(halves, &marks, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

/* Whether any of eight bytes is a control, a quote, a backslash or not ASCII. */
static bool word_needs_care(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    uint64_t control = word - ones * 0x20; /* borrows only where a byte below 0x20 is hit anyway */
    return ((control | (quote - ones) | (backslash - ones) | word) & highs) != 0;
}

static bool byte_needs_care(unsigned char byte)
{
    return byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x80;
}

size_t json_plain_len(const char *text, size_t len)
{
    size_t at = 0;
    while (at + 32 <= len && !is_any(needing_care(text + at) | needing_care(text + at + 16)))
        at += 32;
    for (uint64_t word; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (word_needs_care(word))
            break;
    }
    while (at < len && !byte_needs_care((unsigned char)text[at]))
        at++;
    return at;
}

static int append_escape(struct buf *out, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[256] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (shorts[byte] != 0)
        return buf_append_few(out, (char[]){'\\', shorts[byte]}, 2);
    return buf_append_few(out, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}

int json_write_escaped(struct buf *out, const char *text, size_t len)
{
    size_t len_before = out->len;
    for (size_t at = 0; at < len;) {
        size_t step = json_plain_len(text + at, len - at);
        int rc = buf_append_few(out, text + at, step);
        at += step;
        if (rc == 0 && at < len) {
            bool valid = true;
            step = 1;
            if ((unsigned char)text[at] < 0x80) {
                rc = append_escape(out, (unsigned char)text[at]);
            } else {
                step = utf8_next(text + at, len - at, &valid);
                rc = valid ? buf_append_few(out, text + at, step) : buf_append_few(out, "\xEF\xBF\xBD", 3);
            }
            at += step;
        }
        if (rc < 0) {
            out->len = len_before;
            return -1;
        }
    }
    return 0;
}

int json_write_string(struct buf *out, const char *text, size_t len)
{
    size_t len_before = out->len;
    if (buf_append_few(out, "\"", 1) == 0 && json_write_escaped(out, text, len) == 0 &&
        buf_append_few(out, "\"", 1) == 0)
        return 0;
    out->len = len_before;
    return -1;
}

int json_write_text(struct buf *out, const char *before, const char *text)
{
    if (buf_append_text(out, before) != 0)
        return -1;
    return text ? json_write_string(out, text, strlen(text)) : buf_append_text(out, "null");
}

int json_write_int(struct buf *out, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0)
        *--at = '-';
    return buf_append_few(out, at, (size_t)(digits + sizeof digits - at));
}

int json_write_double(struct buf *out, double value)
{
    if (!isfinite(value))
        return buf_append(out, "null", 4);
    char text[32];
    int len = 0;
    for (int precision = 15; precision <= 17; precision++) {
        len = snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return buf_append(out, text, (size_t)len);
}
