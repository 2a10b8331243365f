/* One digest in one call; ws_handshake answers a client's key with it. */
#include "prim/sha1.h"

#include <nettle/sha1.h>

void sha1_of(const void *bytes, size_t len, uint8_t out[SHA1_BYTES])
{
    struct sha1_ctx hash;

    sha1_init(&hash);
    sha1_update(&hash, len, bytes);
    sha1_digest(&hash, SHA1_BYTES, out);
}
