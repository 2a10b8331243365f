/* Any pattern must be refused or match as a plain matcher does that tries one way after the other. The input: a
 * pattern, a newline, a path. */
#include "prim/glob.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHORT_MAX = 24, SEAM = 1 };

static bool naive(const char *pattern, const char *start, const char *at);

/* Past a set, NULL where it does not take c. */
static const char *naive_set(const char *pattern, char c)
{
    bool negated = pattern[1] == '!' || pattern[1] == '^', found = false;
    const char *at = pattern + (negated ? 2 : 1);
    do {
        at += *at == '\\';
        char first = *at++, last = first;
        if (at[0] == '-' && at[1] != ']') {
            at++;
            at += *at == '\\';
            last = *at++;
        }
        found |= c >= first && c <= last;
    } while (*at != ']');
    return c != '/' && c != '\0' && found != negated ? at + 1 : NULL;
}

/* Past an alternative: at its ',' or '}'. */
static const char *skip(const char *at)
{
    for (int depth = 0; depth > 0 || (*at != ',' && *at != '}'); at++) {
        if (*at == '\\') {
            at++;
        } else if (*at == '[') {
            at += at[1] == '!' || at[1] == '^' ? 2 : 1;
            do
                at += *at == '\\' ? 2 : 1;
            while (*at != ']');
        } else {
            depth += (*at == '{') - (*at == '}');
        }
    }
    return at;
}

/* Each alternative with the rest of the pattern behind it; the seam keeps stars of both apart. */
static bool naive_alternatives(const char *pattern, const char *start, const char *at)
{
    const char *end = skip(pattern + 1);
    while (*end != '}')
        end = skip(end + 1);
    for (const char *one = pattern + 1; one <= end; one = skip(one) + 1) {
        char text[4 * SHORT_MAX];
        int len = (int)(skip(one) - one);
        snprintf(text, sizeof(text), "%c%.*s%c%s", SEAM, len, one, SEAM, end + 1);
        if (naive(text, start, at))
            return true;
    }
    return false;
}

static bool naive_stars(const char *pattern, const char *start, const char *at)
{
    const char *rest = pattern + strspn(pattern, "*");
    bool wide = rest - pattern > 1, segment = wide && *rest == '/';
    for (;; at++) {
        if ((!segment || at == start || at[-1] == '/') && naive(rest + segment, start, at))
            return true;
        if (*at == '\0' || (*at == '/' && !wide))
            return false;
    }
}

/* Commas and closing braces outside of { } are characters; inside, naive_alternatives took them away. */
static bool naive(const char *pattern, const char *start, const char *at)
{
    const char *rest;
    switch (*pattern) {
    case '\0':
        return *at == '\0';
    case SEAM:
        return naive(pattern + 1, start, at);
    case '*':
        return naive_stars(pattern, start, at);
    case '?':
        return *at != '\0' && *at != '/' && naive(pattern + 1, start, at + 1);
    case '[':
        rest = naive_set(pattern, *at);
        return rest && naive(rest, start, at + 1);
    case '{':
        return naive_alternatives(pattern, start, at);
    default:
        pattern += *pattern == '\\';
        return *at == *pattern && naive(pattern + 1, start, at + 1);
    }
}

static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x80 || (unsigned char)text[i] <= SEAM)
            return false;
    return len <= SHORT_MAX;
}

static void compare(const char *pattern, size_t len, const char *path, size_t path_len, bool found)
{
    char pattern_text[SHORT_MAX + 1], path_text[SHORT_MAX + 1];
    if (!is_plain(pattern, len) || !is_plain(path, path_len))
        return;
    snprintf(pattern_text, sizeof(pattern_text), "%.*s", (int)len, pattern);
    snprintf(path_text, sizeof(path_text), "%.*s", (int)path_len, path);
    const char *start = path_text, *slash = strrchr(path_text, '/');
    /* What only says where the pattern applies is not for this one: see glob.h. */
    if (pattern[0] == '/' || strncmp(pattern_text, "./", 2) == 0 || pattern[len - 1] == '/')
        return;
    if (slash && !memchr(pattern, '/', len))
        start = slash + 1;
    if (naive(pattern_text, start, start) != found) {
        fprintf(stderr, "%s on %s: %d\n", pattern_text, path_text, found);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *pattern = (const char *)data, *newline = memchr(data, '\n', size);
    struct err err;
    if (!newline)
        return 0;
    size_t len = (size_t)(newline - pattern), path_len = size - len - 1;
    struct glob *glob = glob_new(pattern, len, &err);
    if (!glob)
        return 0;
    bool found = glob_matches(glob, newline + 1, path_len);
    compare(pattern, len, newline + 1, path_len, found);
    glob_free(glob);
    return 0;
}
