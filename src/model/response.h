/* An answer as plain data: made by the script layer or the pipeline, sent by net. */
#ifndef ABX_MODEL_RESPONSE_H
#define ABX_MODEL_RESPONSE_H

#include "base/buf.h"
#include "model/sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { RESPONSE_HEADERS_MAX = 24, RESPONSE_BODY_MAX_BYTES = 256 * 1024 * 1024 };

enum response_kind {
    RESPONSE_BYTES,  /* `bytes` */
    RESPONSE_FILE,   /* `file`; ranges and conditions are worked out by request/conditional */
    RESPONSE_STREAM, /* `sink`, of unknown length */
};

struct response_file {
    int fd;                       /* owned by the response; -1 once taken */
    uint64_t size, first, length; /* what is sent: length bytes from first */
    struct timespec modified_at;
    char etag[80]; /* with its quotes; "": made for this answer alone, so without conditions and ranges */
};

struct response {
    int status;
    enum response_kind kind;
    struct header_pair {
        const char *name, *value;
        char *owned; /* the block of the heap that holds both; NULL where they outlive the answer anyway */
    } headers[RESPONSE_HEADERS_MAX];
    size_t header_count;
    struct buf bytes;
    struct response_file file;
    struct sink *sink; /* net's reference */
};

void response_init(struct response *response);
/* Frees all, closes the file, closes the sink and lets it go. Whoever takes sink or file over sets NULL and -1. */
void response_deinit(struct response *response);
/* Both copied. Replaces one of the same name (no case). -1: too many, out of memory, or bytes that no header may hold
 * (controls, and names that are no token). */
int response_header(struct response *response, const char *name, const char *value) __attribute__((warn_unused_result));
/* The same for text that outlives the answer and is known to be clean: literals, or what the request's arena holds.
 * Such text is not copied. -1: too many. */
int response_header_fixed(struct response *response, const char *name, const char *value)
    __attribute__((warn_unused_result));
const char *response_header_find(const struct response *response, const char *name);

#endif
