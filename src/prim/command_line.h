/* What a program was started with, as the process table keeps it and as /proc/PID/cmdline tells it, and how answers
 * show it: cut to a bound, secrets masked (prim/mask). */
#ifndef ABX_PRIM_COMMAND_LINE_H
#define ABX_PRIM_COMMAND_LINE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { COMMAND_LINE_MAX_BYTES = 8192 };

enum command_line_form {
    COMMAND_LINE_ARGV, /* words, each ended by a NUL (the last one's may be missing) */
    COMMAND_LINE_TEXT, /* one text for a shell */
    COMMAND_LINE_NAME, /* there are no words (kernel threads, what has ended): what is shown instead */
};

struct command_line {
    char *bytes; /* not terminated; NULL where there are none */
    size_t len;
    enum command_line_form form;
    bool truncated; /* it was longer: these are the first COMMAND_LINE_MAX_BYTES */
};

/* Fill an empty one with a copy. -1 out of memory. command_line_deinit frees the bytes. */
int command_line_keep_text(struct command_line *out, const char *text, size_t len) ABX_MUST_USE;
int command_line_keep_argv(struct command_line *out, char *const *argv) ABX_MUST_USE;
void command_line_deinit(struct command_line *line);

/* Appends "command":"…" (words are joined by blanks, as ps does it), "command_truncated":true where it is so, and
 * "argv":[…] (null for a text). scratch is overwritten. -1 where a buffer is full. */
int command_line_write(struct buf *out, struct buf *scratch, const struct command_line *line) ABX_MUST_USE;

#endif
