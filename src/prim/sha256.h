/* SHA-256, thin over nettle: start with sha256_init, add with sha256_update (nettle's own), end with sha256_hex. */
#ifndef ABX_PRIM_SHA256_H
#define ABX_PRIM_SHA256_H

#include <nettle/sha2.h>
#include <stdbool.h>

enum { SHA256_HEX_LEN = 64 };

/* Writes the digest as lower-case hex with a NUL, and starts the hash anew. */
void sha256_hex(struct sha256_ctx *hash, char out[SHA256_HEX_LEN + 1]);
/* Copies 64 hex digits in lower case with a NUL; false where text is anything else. */
bool sha256_parse_hex(const char *text, char out[SHA256_HEX_LEN + 1]);

#endif
