/* The newest bytes of a stream with absolute offsets; used by prim/process and prim/capture. */
#include "prim/ring.h"

#include <stdlib.h>
#include <string.h>

enum { RING_FIRST_BYTES = 512 }; /* terminals and processes are many, and most print little */

void ring_init(struct ring *ring, size_t max_bytes)
{
    *ring = (struct ring){.max = max_bytes};
}

void ring_deinit(struct ring *ring)
{
    free(ring->data);
    ring->data = NULL;
    ring->cap = 0;
    ring->start = ring->end;
}

/* A byte with offset o lives at o % cap, so what is kept must move when cap changes. */
static void copy_in(char *data, size_t cap, uint64_t offset, const char *bytes, size_t len)
{
    size_t at = offset % cap;
    size_t first = len < cap - at ? len : cap - at;
    memcpy(data + at, bytes, first);
    memcpy(data, bytes + first, len - first);
}

static void grow(struct ring *ring, size_t wanted)
{
    if (wanted > ring->max)
        wanted = ring->max;
    size_t cap = ring->cap != 0 ? ring->cap : RING_FIRST_BYTES;
    while (cap < wanted)
        cap *= 2;
    if (cap > ring->max)
        cap = ring->max;
    if (cap <= ring->cap)
        return;
    char *data = malloc(cap);
    if (data == NULL)
        return; /* the oldest bytes give way instead */
    uint64_t offset = ring->start;
    const char *piece = NULL;
    for (size_t len = ring_peek(ring, offset, &piece); len > 0; len = ring_peek(ring, offset, &piece)) {
        copy_in(data, cap, offset, piece, len);
        offset += len;
    }
    free(ring->data);
    ring->data = data;
    ring->cap = cap;
}

void ring_append(struct ring *ring, const char *bytes, size_t len)
{
    size_t used = (size_t)(ring->end - ring->start);
    if (used + len > ring->cap)
        grow(ring, used + len);
    if (len > ring->cap) {
        size_t lost = len - ring->cap;
        ring->end += lost;
        ring->start = ring->end;
        bytes += lost;
        len -= lost;
    }
    if (len > 0) {
        copy_in(ring->data, ring->cap, ring->end, bytes, len);
        ring->end += len;
    }
    if (ring->end - ring->start > ring->cap)
        ring->start = ring->end - ring->cap;
}

size_t ring_free_bytes(const struct ring *ring)
{
    return ring->max - (size_t)(ring->end - ring->start);
}

size_t ring_peek(const struct ring *ring, uint64_t offset, const char **out_bytes)
{
    if (offset < ring->start)
        offset = ring->start;
    if (offset >= ring->end)
        return 0;
    size_t at = offset % ring->cap;
    size_t len = (size_t)(ring->end - offset);
    *out_bytes = ring->data + at;
    return len < ring->cap - at ? len : ring->cap - at;
}

size_t ring_copy(const struct ring *ring, uint64_t offset, char *out, size_t len)
{
    size_t copied = 0;
    if (offset < ring->start)
        offset = ring->start;
    while (copied < len) {
        const char *piece = NULL;
        size_t piece_len = ring_peek(ring, offset + copied, &piece);
        if (piece_len == 0)
            break;
        if (piece_len > len - copied)
            piece_len = len - copied;
        memcpy(out + copied, piece, piece_len);
        copied += piece_len;
    }
    return copied;
}
