/* JSON at the border: a strict scanner for what comes in (RFC 8259 and nothing more), a writer for what goes out. */
#ifndef ABX_BASE_JSON_H
#define ABX_BASE_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 64 };

/* Called in document order; any may answer non-zero to stop the scan (then json_scan answers -1 with err as they left
 * it). Text is decoded (escapes resolved, NUL possible) and lives only during the call. Keys come with on_key before
 * their value. */
struct json_events {
    int (*on_null)(void *ctx, struct err *err);
    int (*on_bool)(void *ctx, bool value, struct err *err);
    int (*on_int)(void *ctx, int64_t value, struct err *err);
    int (*on_double)(void *ctx, double value, struct err *err);
    int (*on_string)(void *ctx, const char *text, size_t len, struct err *err);
    int (*on_key)(void *ctx, const char *text, size_t len, struct err *err);
    int (*on_begin)(void *ctx, bool object, struct err *err);
    int (*on_end)(void *ctx, bool object, struct err *err);
};

/* Scans one document. Refuses with ERR_INVALID_JSON and the byte offset: bad grammar or UTF-8, raw control characters,
 * a BOM, lone surrogates, trailing text, nesting over JSON_DEPTH_MAX, numbers that are no finite double. Integers in
 * the range of int64 arrive by on_int, exactly; other numbers (and "-0") by on_double. A callback may be NULL.
 * Duplicate keys are the builder's to refuse. Does not recurse; time is linear. */
int json_scan(const char *text, size_t len, const struct json_events *events, void *ctx, struct err *err) ABX_MUST_USE;

/* Appends a quoted string; bytes that are not UTF-8 become U+FFFD. -1 when the buffer is full. */
int json_write_string(struct buf *out, const char *text, size_t len) ABX_MUST_USE;
/* Appends `before` as it is ("," and a member's name), and then a NUL-terminated text as a string, or null for NULL. */
int json_write_text(struct buf *out, const char *before, const char *text) ABX_MUST_USE;
/* A string without its quotes. */
int json_write_escaped(struct buf *out, const char *text, size_t len) ABX_MUST_USE;
/* Bytes at the start that stand for themselves in a string: ASCII without controls, quotes and backslashes. */
size_t json_plain_len(const char *text, size_t len);
int json_write_int(struct buf *out, int64_t value) ABX_MUST_USE;
/* A short form that reads back equal; NaN and infinities become null. Whole numbers are written without ".0". */
int json_write_double(struct buf *out, double value) ABX_MUST_USE;

#endif
