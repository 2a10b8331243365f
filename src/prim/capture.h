/* The beginning and the end of a stream within a bound: what a run's answer shows when the middle was too much. */
#ifndef ABX_PRIM_CAPTURE_H
#define ABX_PRIM_CAPTURE_H

#include "prim/ring.h"

#include <stddef.h>
#include <stdint.h>

struct capture {
    char *head;
    size_t head_len, head_cap, head_max;
    struct ring tail;
    char *flat; /* the tail in one piece, where the last view needed it */
    uint64_t total_bytes;
};

/* Keeps up to limit_bytes: half of them from the beginning, the rest from the end. Memory grows with what comes. */
void capture_init(struct capture *capture, size_t limit_bytes);
void capture_deinit(struct capture *capture);
void capture_append(struct capture *capture, const char *bytes, size_t len);

struct capture_view {
    const char *head, *tail;
    size_t head_len, tail_len; /* together less than total_bytes where the middle was dropped */
    uint64_t total_bytes;
};
/* Borrowed until the next append or view. */
void capture_view(struct capture *capture, struct capture_view *out);

#endif
