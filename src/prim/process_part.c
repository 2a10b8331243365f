/* Which part of a process's output comes next; called by bind_stream for events and by bind_proc_output for answers. */
#include "prim/process_part.h"

#include "base/utf8.h"

enum { CHARACTER_MAX_BYTES = 4 };

uint64_t process_part_end(const struct process *process, enum process_stream stream)
{
    return process_state(process) == PROCESS_DRAINED ? process_exit_end(process, stream)
                                                     : process_ring(process, stream)->end;
}

/* How many of the bytes from `from` to `to` are the rest of a character that began before. */
static uint64_t skip_len(const struct ring *ring, uint64_t from, uint64_t to)
{
    char start[CHARACTER_MAX_BYTES];
    size_t len = to - from < sizeof(start) ? (size_t)(to - from) : sizeof(start);
    return utf8_skip_len(start, ring_copy(ring, from, start, len));
}

/* `to`, or up to 3 less where a character begins there that goes on after it. */
static uint64_t whole_end(const struct ring *ring, uint64_t from, uint64_t to)
{
    char end[CHARACTER_MAX_BYTES];
    size_t len = to - from < sizeof(end) ? (size_t)(to - from) : sizeof(end);
    size_t kept = ring_copy(ring, to - len, end, len);
    return to - kept + utf8_whole_len(end, kept);
}

/* The end of the character at `from`, of which there are bytes up to `end`; `from` where the rest of it is missing. */
static uint64_t first_end(const struct ring *ring, uint64_t from, uint64_t end)
{
    char start[CHARACTER_MAX_BYTES];
    bool valid;
    size_t len = end - from < sizeof(start) ? (size_t)(end - from) : sizeof(start);
    len = ring_copy(ring, from, start, len);
    return utf8_whole_len(start, len) == 0 ? from : from + utf8_next(start, len, &valid);
}

struct process_part process_part_find(const struct process *process, enum process_stream stream, uint64_t offset,
                                      size_t bytes_max, bool text)
{
    const struct ring *ring = process_ring(process, stream);
    uint64_t end = process_part_end(process, stream);
    bool closed = process_state(process) == PROCESS_DRAINED || process_stream_closed(process, stream);
    struct process_part part = {.gap_from = offset, .gap_to = offset, .from = offset, .to = offset};
    if (offset < ring->start && offset < end) {
        part.gap_to = ring->start < end ? ring->start : end;
        if (text)
            part.gap_to += skip_len(ring, part.gap_to, end);
        part.from = part.to = part.gap_to;
    }
    if (part.from < end) {
        part.to = end - part.from < bytes_max ? end : part.from + bytes_max;
        if (text && !(closed && part.to == end))
            part.to = whole_end(ring, part.from, part.to);
        if (part.to == part.from) /* a character that is longer than bytes_max, or not yet whole */
            part.to = first_end(ring, part.from, end);
    }
    part.last = closed && part.to >= end;
    return part;
}

uint64_t process_part_tail(const struct process *process, enum process_stream stream, uint64_t tail_bytes, bool text)
{
    const struct ring *ring = process_ring(process, stream);
    uint64_t end = process_part_end(process, stream);
    bool closed = process_state(process) == PROCESS_DRAINED || process_stream_closed(process, stream);
    if (text && !closed && end > ring->start)
        end = whole_end(ring, ring->start, end);
    uint64_t from = tail_bytes < end ? end - tail_bytes : 0;
    if (text && from >= ring->start && from > 0)
        from += skip_len(ring, from, end);
    return from;
}
