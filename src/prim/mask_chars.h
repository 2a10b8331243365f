/* Kinds of characters, whatever the locale, and how a text begins and ends, in any case; for the files of mask. */
#ifndef ABX_PRIM_MASK_CHARS_H
#define ABX_PRIM_MASK_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\0' || (c >= '\t' && c <= '\r');
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

static inline bool is_name_char(char c)
{
    return is_alnum(c) || c == '_' || c == '-' || (unsigned char)c >= 0x80;
}

static inline bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

static inline bool starts_with(const char *text, size_t len, const char *prefix)
{
    size_t prefix_len = strlen(prefix);
    return len >= prefix_len && strncasecmp(text, prefix, prefix_len) == 0;
}

static inline bool ends_with(const char *text, size_t len, const char *suffix)
{
    size_t suffix_len = strlen(suffix);
    return len >= suffix_len && strncasecmp(text + len - suffix_len, suffix, suffix_len) == 0;
}

#endif
