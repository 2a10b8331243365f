/* The exit fields as JSON: what every answer and event that tells of a program's end carries. */
#ifndef ABX_BIND_EXIT_JSON_H
#define ABX_BIND_EXIT_JSON_H

#include "base/buf.h"
#include "prim/process.h"

/* Appends the five members, without braces; exit_code and signal are null while it runs. -1 when the buffer is full. */
int exit_json_append(struct buf *out, const struct process *process) ABX_MUST_USE;

#endif
