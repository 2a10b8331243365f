/* What the two files of glob share: a pattern as a little program for a machine that follows all its branches at once
 * (K. Thompson, "Regular expression search algorithm", 1968). */
#ifndef ABX_PRIM_GLOB_PROGRAM_H
#define ABX_PRIM_GLOB_PROGRAM_H

#include "prim/glob.h"

#include <stdint.h>

enum glob_op {
    GLOB_CHAR,     /* this character */
    GLOB_ANY,      /* one but '/' */
    GLOB_ANY_PATH, /* one */
    GLOB_SET,      /* one of the ranges, or none of them and no '/' */
    GLOB_SEGMENT,  /* takes nothing: goes on where a segment of the path starts */
    GLOB_SPLIT,    /* goes on with the next step and at `to` */
    GLOB_JUMP,     /* goes on at `to` */
    GLOB_END,      /* matches where the path ends, too */
};

struct glob_step {
    uint8_t op;
    bool negated;
    uint16_t to;    /* GLOB_SET: its first range */
    uint32_t value; /* GLOB_CHAR: the character; GLOB_SET: how many ranges */
};

struct glob_range {
    uint32_t first, last;
};

/* A star needs three steps, a comma in { } two. */
enum { GLOB_STEPS_MAX = 3 * GLOB_LEN_MAX + 1 };

struct glob {
    bool whole_path;
    uint16_t step_count, range_count;
    struct glob_range *ranges;
    struct glob_step steps[];
};

/* The character at the start of text, len is not 0: a code point, or, past all of them, a byte that is no UTF-8. */
uint32_t glob_next(const char *text, size_t len, size_t *out_len);

#endif
