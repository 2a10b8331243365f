/* The newest bytes of a stream with absolute offsets: grows to its maximum, then drops the oldest. */
#ifndef ABX_PRIM_RING_H
#define ABX_PRIM_RING_H

#include <stddef.h>
#include <stdint.h>

enum { RING_MAX_BYTES = 4 * 1024 * 1024 };

struct ring {
    char *data;
    size_t cap, max;     /* cap is 0 until the first byte */
    uint64_t start, end; /* offsets of the oldest byte kept and of the next one to come */
};

void ring_init(struct ring *ring, size_t max_bytes);
void ring_deinit(struct ring *ring); /* frees the memory; offsets stay, start becomes end */
/* Appends, dropping the oldest where it must. Never fails: where memory is out older bytes give way. */
void ring_append(struct ring *ring, const char *bytes, size_t len);
/* Bytes that can be appended before something is lost. */
size_t ring_free_bytes(const struct ring *ring);
/* A piece of contiguous memory from offset on (at most up to end): its length, 0 at the end. Offsets below start are
 * the caller's gap to report: they read from start. Valid until the next append. */
size_t ring_peek(const struct ring *ring, uint64_t offset, const char **out_bytes);
/* Copies up to len bytes from offset on, which may lie round the end of the memory: how many there were. An offset
 * below start reads from start. */
size_t ring_copy(const struct ring *ring, uint64_t offset, char *out, size_t len);

#endif
