/* JSON written member by member into a buffer. A failure (the buffer's maximum, memory) is kept, so that callers look
 * once, at the end. */
#ifndef ABX_HELPER_JSON_OUT_H
#define ABX_HELPER_JSON_OUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_out {
    struct buf *buf;
    bool comma, failed;
};

/* name is a literal without anything to escape; NULL for an item of an array or the whole document. */
void json_out_open(struct json_out *out, const char *name, char bracket);                  /* '{' or '[' */
void json_out_close(struct json_out *out, char bracket);                                   /* '}' or ']' */
void json_out_bytes(struct json_out *out, const char *name, const char *text, size_t len); /* U+FFFD where not UTF-8 */
void json_out_text(struct json_out *out, const char *name, const char *text);              /* NULL: null */
void json_out_int(struct json_out *out, const char *name, int64_t value);
void json_out_bool(struct json_out *out, const char *name, bool value);
void json_out_null(struct json_out *out, const char *name);
/* The contract's way with paths: the text, and NAME_base64 with the exact bytes where they are not UTF-8. name is
 * not NULL. */
void json_out_path(struct json_out *out, const char *name, const char *path);
/* A list of paths, each ended by a NUL: NAME, and beside it NAME_base64 with the exact bytes of all in the same order
 * where one of them is not UTF-8. */
void json_out_names(struct json_out *out, const char *name, const struct buf *names);
/* Seconds since 1970 as RFC 3339 UTC with milliseconds; null for what has no year of four digits. */
void json_out_time(struct json_out *out, const char *name, int64_t seconds);

#endif
