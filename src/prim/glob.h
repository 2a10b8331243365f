/* Patterns for names of files, as shells have them: for listings and searches. Matching takes time in the length of the
 * pattern times that of the path at most, whatever they are. */
#ifndef ABX_PRIM_GLOB_H
#define ABX_PRIM_GLOB_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct glob;

enum { GLOB_LEN_MAX = 1024, GLOB_ALTERNATIVES_MAX = 256, GLOB_NESTING_MAX = 16 };

/* `*` any characters but '/'; `**` any at all, and where '/' follows it, also none with it; `?` one but '/'; [a-z] and
 * [!a] one of these, or none of them, never '/'; {a,b} either, nesting; \ takes the next character as it is. A dot at
 * the start is nothing special. A character is one of UTF-8, or a byte that belongs to none.
 *
 * A pattern without '/' is about names, one with '/' about relative paths; a '/' or "./" at the start says only that,
 * and one at the end says nothing. The caller frees it with glob_free. NULL with *err: ERR_INVALID_REQUEST without a
 * field (empty, too long, unclosed, too many alternatives), or no memory. */
struct glob *glob_new(const char *pattern, size_t len, struct err *err);

/* Whether it matches the entry with this path, relative to the start of the walk, without '/' at either end. Bytes.
 * From any thread. */
bool glob_matches(const struct glob *glob, const char *relative, size_t len);
void glob_free(struct glob *glob); /* NULL is allowed */

#endif
