/* Log lines on stderr, JSON or text. Secrets are replaced before anything is written. */
#ifndef ABX_BASE_LOG_H
#define ABX_BASE_LOG_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVEL_OFF };

/* Who a line belongs to; both may be NULL. */
struct log_context {
    const char *request_id;
    const char *route;
};

void log_configure(enum log_level level, bool json);
/* 0, or -1 where no level bears that name (debug info warn error off). */
int log_level_parse(const char *name, enum log_level *out_level) ABX_MUST_USE;
/* Every later occurrence of this text in a line becomes "***"; copied; shorter than 4 bytes is ignored. NULL forgets.
 */
void log_hide(const char *secret);
/* Every message goes through this before it is written: it appends the text with what is secret in it hidden (0, or
 * -1). Set once, before other threads log; it is called from any. NULL (as at first): messages stay as they are. */
void log_mask_with(int (*mask)(struct buf *out, const char *text, size_t len));
bool log_enabled(enum log_level level);

/* One line {"ts","level","area","request_id","route","msg"}; a message is cut at 4 KiB. As text, a line break in the
 * message begins a further, indented line. May be called from any thread. Never waits: lines that a full pipe has no
 * room for are dropped, and a later line tells how many. */
void log_write(enum log_level level, const char *area, const struct log_context *who, const char *fmt, ...)
    ABX_PRINTF(4, 5);

#define log_info(area, ...) log_write(LOG_LEVEL_INFO, area, NULL, __VA_ARGS__)
#define log_warn(area, ...) log_write(LOG_LEVEL_WARN, area, NULL, __VA_ARGS__)
#define log_error(area, ...) log_write(LOG_LEVEL_ERROR, area, NULL, __VA_ARGS__)

#endif
