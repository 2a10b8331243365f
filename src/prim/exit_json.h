/* The exit fields as JSON: what every answer, event and message that tells of a program's end carries. */
#ifndef ABX_PRIM_EXIT_JSON_H
#define ABX_PRIM_EXIT_JSON_H

#include "base/buf.h"
#include "prim/process.h"

/* Appends the five members, without braces. known: exit_code and signal are; else they are null. started_ms since 1970.
 * -1 when the buffer is full. */
int exit_json_write(struct buf *out, const struct process_exit *exit, bool known, uint64_t started_ms) ABX_MUST_USE;
/* The same of an entry of the process table. */
int exit_json_append(struct buf *out, const struct process *process) ABX_MUST_USE;

#endif
