/* SHA-1, thin over nettle: for the handshake of WebSockets, which asks for it, and for nothing that must be safe. */
#ifndef ABX_PRIM_SHA1_H
#define ABX_PRIM_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BYTES = 20 };

void sha1_of(const void *bytes, size_t len, uint8_t out[SHA1_BYTES]);

#endif
