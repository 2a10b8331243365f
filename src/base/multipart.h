/* multipart/form-data (RFC 7578), fed in pieces of any size: the parser of uploads. Pure: no files, no network. */
#ifndef ABX_BASE_MULTIPART_H
#define ABX_BASE_MULTIPART_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { MULTIPART_BOUNDARY_MAX = 70, MULTIPART_HEADERS_MAX_BYTES = 8192 };

/* What the headers of a part said. Strings live during on_part only; NUL-terminated, NUL inside is refused.
 * filename is NULL for a plain field; it is the decoded value, folders and all (quoted-string with \" and \\, or
 * filename*=UTF-8''..., which wins). */
struct multipart_part {
    const char *name;
    const char *filename;
    const char *content_type; /* NULL where not said */
};

/* Any may answer -1 with *err filled: the parser stops for good and passes it on. */
struct multipart_events {
    int (*on_part)(void *ctx, const struct multipart_part *part, struct err *err);
    int (*on_data)(void *ctx, const char *bytes, size_t len, struct err *err);
    int (*on_part_end)(void *ctx, struct err *err);
};

struct multipart;

/* content_type is the request's header value; the boundary is read from it. NULL with ERR_UNSUPPORTED_MEDIA_TYPE where
 * it is not multipart/form-data, ERR_INVALID_REQUEST where it names no proper boundary. Freed by multipart_free. */
struct multipart *multipart_new(const char *content_type, const struct multipart_events *events, void *ctx,
                                struct err *err);
void multipart_free(struct multipart *parser);

/* 0, or -1 with ERR_INVALID_REQUEST for a malformed body, or what a callback said. What follows the closing boundary is
 * ignored. Memory stays flat: data is passed on from the caller's bytes. */
int multipart_feed(struct multipart *parser, const char *bytes, size_t len, struct err *err) ABX_MUST_USE;
/* The body is complete: -1 with ERR_INVALID_REQUEST where the closing boundary did not come. */
int multipart_finish(struct multipart *parser, struct err *err) ABX_MUST_USE;

#endif
