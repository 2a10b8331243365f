/* Plain text within expressions and files: the fast part of search_pattern. */
#ifndef ABX_PRIM_SEARCH_LITERAL_H
#define ABX_PRIM_SEARCH_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

/* A text that every match of the expression holds, the longest that is simple to see; out has room for len bytes.
 * Answers its length, 0 where there is none. For expressions that PCRE2 accepts, and that mind case. */
size_t search_literal_of(const char *regex, size_t len, char *out);

/* Writes an expression that matches the same within a line, but never takes a line break: `[^x]` becomes `[^\nx]`, `\s`
 * `[^\S\n]`. So many lines can be searched at once. out has room for SEARCH_IN_LINE_FACTOR * len bytes. Answers the
 * length; 0 where that is not plain to do. For expressions that PCRE2 accepts. */
enum { SEARCH_IN_LINE_FACTOR = 20 };
size_t search_literal_in_line(const char *regex, size_t len, char *out);

struct search_needle {
    const char *text;      /* borrowed */
    size_t len;            /* not 0 */
    size_t rare, rare_too; /* offsets of the two bytes that text files hold the least */
};
void search_needle_init(struct search_needle *needle, const char *text, size_t len);
/* As memmem, and faster where the needle is not common. */
const char *search_needle_find(const struct search_needle *needle, const char *text, size_t len);

#endif
