/* The size of a terminal's window, in characters. */
#ifndef ABX_PRIM_TERMINAL_SIZE_H
#define ABX_PRIM_TERMINAL_SIZE_H

enum { TERMINAL_SIZE_MAX = 1000 }; /* of each; the least is 1 */

struct terminal_size {
    unsigned cols, rows;
};

#endif
