/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef ABX_BASE_UTF8_H
#define ABX_BASE_UTF8_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether all bytes are well-formed (NUL is). Eight bytes a step over ASCII. */
bool utf8_valid(const char *text, size_t len);
/* Bytes of the character at the start (len is not 0), or, with *out_valid false, of the longest ill-formed part there:
 * what one U+FFFD stands for. */
size_t utf8_next(const char *text, size_t len, bool *out_valid);
/* How many bytes to take so that no character is cut at the end: len, or up to 3 less where the tail is the proper
 * beginning of a longer character. Ill-formed bytes never hold anything back. */
size_t utf8_whole_len(const char *text, size_t len);
/* How many bytes at the start (at most 3) are the rest of a character that began before; 0 where the text starts whole.
 */
size_t utf8_skip_len(const char *text, size_t len);
/* Appends text with every maximal ill-formed part as one U+FFFD; *out_lossy becomes true if there was one (else it is
 * left alone). -1 when the buffer is full. */
int utf8_append_scrubbed(struct buf *out, const char *text, size_t len, bool *out_lossy) ABX_MUST_USE;
/* Mends a NUL-terminated text in place: bytes that are no UTF-8 become '?'. Where the text was cut (by a snprintf that
 * had no room), a character that the cut left incomplete goes. */
void utf8_mend(char *text, bool cut);

#endif
