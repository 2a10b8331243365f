/* Base64 (RFC 4648): the standard alphabet with padding, and strict decoding. */
#ifndef ABX_BASE_BASE64_H
#define ABX_BASE_BASE64_H

#include "base/buf.h"

/* Length of the encoding of len bytes, padding included. */
size_t base64_encoded_len(size_t len);
/* Appends the encoding; -1 when the buffer is full. */
int base64_encode(struct buf *out, const void *bytes, size_t len) ABX_MUST_USE;
/* Appends the decoded bytes. -1 when text is not canonical base64 (alphabet, padding, stray bits, white space) or the
 * buffer is full: then out is as it was. */
int base64_decode(struct buf *out, const char *text, size_t len) ABX_MUST_USE;

#endif
