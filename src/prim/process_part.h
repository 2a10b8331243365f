/* Which part of a process's output comes next: from an offset on, past what is no longer kept, up to what is there,
 * with no character cut. For the streams and answers of bind. Main thread only. */
#ifndef ABX_PRIM_PROCESS_PART_H
#define ABX_PRIM_PROCESS_PART_H

#include "prim/process.h"

struct process_part {
    uint64_t gap_from, gap_to; /* bytes asked for that are no longer kept; equal where there are none */
    uint64_t from, to;         /* the part itself, after the gap; equal where there is nothing yet */
    bool last;                 /* nothing can follow it: the program has ended, or closed the stream */
};

/* Where the output of that stream ends for now, once PROCESS_DRAINED for good (exit_end): what a grandchild writes
 * later is none of the program's. */
uint64_t process_part_end(const struct process *process, enum process_stream stream);
/* The next part from offset on, of at most bytes_max. text: a character that is cut at its end is left for the next
 * part unless it is the last one (of one that is longer than bytes_max all of it is taken), and one that the gap cut is
 * left out. An offset beyond the end: an empty part there. */
struct process_part process_part_find(const struct process *process, enum process_stream stream, uint64_t offset,
                                      size_t bytes_max, bool text);
/* Where the newest tail_bytes begin; text: with a whole character, or with one that is still to come whole. May be
 * before what is kept. */
uint64_t process_part_tail(const struct process *process, enum process_stream stream, uint64_t tail_bytes, bool text);

#endif
