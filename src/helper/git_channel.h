/* The channel of `abxd-helper git`: JSON-RPC messages, one a line, on descriptor 3. A thread of its own reads, so that
 * the end of the channel and a cancel are seen while an operation runs. */
#ifndef ABX_HELPER_GIT_CHANNEL_H
#define ABX_HELPER_GIT_CHANNEL_H

#include "base/buf.h"
#include "base/err.h"

#include <cjson/cJSON.h>
#include <stdint.h>

enum { GIT_CHANNEL_FD = 3, GIT_LINE_MAX_BYTES = 32 * 1024 * 1024 };

/* Starts the reader, which ends the process when the channel closes: at once where nothing runs, else after a second,
 * so that an operation may remove its lock files. 0 or -1. */
int git_channel_start(struct err *err) ABX_MUST_USE;
/* The next request; blocks. The caller frees it by cJSON_Delete. The one before is over then. */
cJSON *git_channel_next(void);
/* Tells that the request with this id is being served: a cancel means it only if it names it. */
void git_channel_serve(int64_t id);
/* Writes the line and its end; blocks. -1: nobody reads any more. */
int git_channel_send(struct buf *line) ABX_MUST_USE;

#endif
