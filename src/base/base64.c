/* Base64 for JSON fields that carry bytes: file content, stdin, output, paths that are not UTF-8. */
#include "base/base64.h"

#include <stdint.h>

static const char alphabet[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of a digit plus 1; 0 for what is none. */
static const uint8_t digits[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

size_t base64_encoded_len(size_t len)
{
    return (len / 3 + (len % 3 != 0)) * 4;
}

int base64_encode(struct buf *out, const void *bytes, size_t len)
{
    const uint8_t *in = bytes;
    if (len == 0)
        return 0;
    if (buf_reserve(out, base64_encoded_len(len)) < 0)
        return -1;
    char *to = out->data + out->len;
    for (; len >= 3; len -= 3, in += 3) {
        uint32_t group = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = alphabet[group >> 6 & 63];
        *to++ = alphabet[group & 63];
    }
    if (len > 0) {
        uint32_t group = (uint32_t)in[0] << 16 | (len == 2 ? (uint32_t)in[1] << 8 : 0);
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = len == 2 ? alphabet[group >> 6 & 63] : '=';
        *to++ = '=';
    }
    out->len = (size_t)(to - out->data);
    return 0;
}

int base64_decode(struct buf *out, const char *text, size_t len)
{
    if (len % 4 != 0)
        return -1;
    size_t padding = len == 0 ? 0 : text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
    size_t decoded_len = len / 4 * 3 - padding;
    if (decoded_len == 0)
        return 0;
    if (buf_reserve(out, decoded_len) < 0)
        return -1;

    /* Written behind out->len, which moves only when all was good. */
    const uint8_t *in = (const uint8_t *)text, *whole_end = in + (padding ? len - 4 : len);
    char *to = out->data + out->len;
    for (; in < whole_end; in += 4) {
        uint32_t a = digits[in[0]], b = digits[in[1]], c = digits[in[2]], d = digits[in[3]];
        if (!a || !b || !c || !d)
            return -1;
        uint32_t group = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
        *to++ = (char)(group >> 16);
        *to++ = (char)(group >> 8);
        *to++ = (char)group;
    }
    if (padding) {
        uint32_t a = digits[in[0]], b = digits[in[1]], c = padding == 1 ? digits[in[2]] : 1;
        if (!a || !b || !c)
            return -1;
        uint32_t group = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6;
        /* Bits that no byte takes must be zero, or two texts would mean the same bytes. */
        if (group & (padding == 1 ? 0xFF : 0xFFFF))
            return -1;
        *to++ = (char)(group >> 16);
        if (padding == 1)
            *to++ = (char)(group >> 8);
    }
    out->len += decoded_len;
    return 0;
}
