/* Digests as text, for uploads and everything else that answers a checksum. */
#include "prim/sha256.h"

#include <stddef.h>
#include <stdint.h>

static const char digits[] = "0123456789abcdef";

void sha256_hex(struct sha256_ctx *hash, char out[SHA256_HEX_LEN + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[SHA256_HEX_LEN] = '\0';
}

bool sha256_parse_hex(const char *text, char out[SHA256_HEX_LEN + 1])
{
    for (size_t i = 0; i < SHA256_HEX_LEN; i++) {
        char digit = text[i];
        if (digit >= 'A' && digit <= 'F')
            digit = (char)(digit - 'A' + 'a');
        if (!((digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f')))
            return false; /* a NUL too: a short text ends here */
        out[i] = digit;
    }
    out[SHA256_HEX_LEN] = '\0';
    return text[SHA256_HEX_LEN] == '\0';
}
