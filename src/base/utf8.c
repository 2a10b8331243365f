/* Validates and mends UTF-8 for the JSON border, the output of programs and everything that ends in an answer. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

static bool is_tail(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* How long the character that starts with this byte is; 0 where none does. The second byte must lie in *low..*high
 * (that rules out overlong forms, surrogates and what lies past U+10FFFF; Unicode table 3-7). */
static size_t lead(unsigned char byte, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (byte < 0x80)
        return 1;
    if (byte < 0xC2 || byte > 0xF4)
        return 0;
    if (byte < 0xE0)
        return 2;
    if (byte < 0xF0) {
        if (byte == 0xE0)
            *low = 0xA0;
        else if (byte == 0xED)
            *high = 0x9F;
        return 3;
    }
    if (byte == 0xF0)
        *low = 0x90;
    else if (byte == 0xF4)
        *high = 0x8F;
    return 4;
}

/* How many bytes at the start belong together, and whether they are whole (want == have). */
static size_t match(const unsigned char *text, size_t len, size_t *out_want)
{
    unsigned char low, high;
    size_t want = lead(text[0], &low, &high), have = 1;
    *out_want = want;
    if (want < 2 || len < 2 || text[1] < low || text[1] > high)
        return have;
    for (have = 2; have < want && have < len && is_tail(text[have]);)
        have++;
    return have;
}

size_t utf8_next(const char *text, size_t len, bool *out_valid)
{
    size_t want, have = match((const unsigned char *)text, len, &want);
    *out_valid = have == want;
    return have;
}

/* Bytes of plain ASCII at the start. */
static size_t ascii_len(const char *text, size_t len)
{
    size_t at = 0;
    for (uint64_t words[4]; at + sizeof words <= len; at += sizeof words) {
        memcpy(words, text + at, sizeof words);
        if ((words[0] | words[1] | words[2] | words[3]) & UINT64_C(0x8080808080808080))
            break;
    }
    for (uint64_t word; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (at < len && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

/* Bytes of well-formed text at the start. */
static size_t valid_len(const char *text, size_t len)
{
    size_t at = 0;
    while (at < len) {
        if ((unsigned char)text[at] < 0x80) {
            at += ascii_len(text + at, len - at);
            continue;
        }
        bool valid;
        size_t step = utf8_next(text + at, len - at, &valid);
        if (!valid)
            break;
        at += step;
    }
    return at;
}

bool utf8_valid(const char *text, size_t len)
{
    return valid_len(text, len) == len;
}

size_t utf8_whole_len(const char *text, size_t len)
{
    /* A cut character shows its first byte among the last three. */
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const unsigned char *at = (const unsigned char *)text + len - back;
        if (is_tail(*at))
            continue;
        size_t want, have = match(at, back, &want);
        return have == back && want > have ? len - back : len;
    }
    return len;
}

size_t utf8_skip_len(const char *text, size_t len)
{
    size_t skip = 0;
    while (skip < 3 && skip < len && is_tail((unsigned char)text[skip]))
        skip++;
    return skip;
}

int utf8_append_scrubbed(struct buf *out, const char *text, size_t len, bool *out_lossy)
{
    size_t len_before = out->len;
    bool lossy = false;
    for (size_t at = 0; at < len;) {
        size_t good = valid_len(text + at, len - at);
        if (buf_append_few(out, text + at, good) < 0)
            goto full;
        at += good;
        if (at == len)
            break;
        bool valid;
        at += utf8_next(text + at, len - at, &valid);
        lossy = true;
        if (buf_append_few(out, "\xEF\xBF\xBD", 3) < 0)
            goto full;
    }
    if (lossy)
        *out_lossy = true;
    return 0;
full:
    out->len = len_before;
    return -1;
}

void utf8_mend(char *text, bool cut)
{
    size_t len = strlen(text);
    if (cut) {
        len = utf8_whole_len(text, len);
        text[len] = '\0';
    }
    for (size_t at = 0, step; at < len; at += step) {
        bool valid;
        step = utf8_next(text + at, len - at, &valid);
        if (!valid)
            memset(text + at, '?', step);
    }
}
