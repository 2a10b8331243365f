/* Where in a text a value ends, as a shell or JSON has it. For mask alone. None looks beyond len;
 * each takes time in proportion to what it steps over. */
#ifndef ABX_PRIM_MASK_VALUE_H
#define ABX_PRIM_MASK_VALUE_H

#include <stdbool.h>
#include <stddef.h>

struct mask_value {
    const char *text;
    size_t len;
    char quote;    /* one that was open before the value and ends it, or 0 */
    bool backtick; /* so was one of these */
};

/* Past the quote (as itself, or as \" with its backslash) at `at`; `at` where none stands there. */
size_t mask_value_skip_quote(const char *text, size_t len, size_t at);
/* Where the text ends that the quote before `at` begins: at the quote that closes it, or at the backslash of that; len
 * where none does. */
size_t mask_value_string_end(const char *text, size_t len, size_t at);
/* Past what closes the quote or bracket at `at`, with what a shell lets stand in it; len where nothing does. */
size_t mask_value_enclosed_end(const char *text, size_t len, size_t at);
/* Past the word of a shell that begins at `at`. */
size_t mask_value_word_end(const struct mask_value *value, size_t at);

#endif
