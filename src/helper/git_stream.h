/* The sockets that libgit2 talks through, below its TLS too: each keeps to the call's deadline (but for the look-up of
 * a host's address, which nothing can end but the end of the process), and a guard sees where each leads before
 * anything is sent. */
#ifndef ABX_HELPER_GIT_STREAM_H
#define ABX_HELPER_GIT_STREAM_H

#include <stdint.h>

/* Asked before a connection is made; anything but 0 ends the operation with it (see git_stop). */
typedef int (*git_stream_guard_fn)(void *ctx, const char *host, const char *port);

/* From now on all connections of this process; one call at a time, and ctx lives until the next. 0 or -1. */
int git_stream_install(uint64_t deadline_ns, git_stream_guard_fn guard, void *ctx) __attribute__((warn_unused_result));

#endif
