/* What a worker's refusal says, as a failure to pass on. Called by whoever makes calls to workers. */
#ifndef ABX_PRIM_WORKER_REFUSAL_H
#define ABX_PRIM_WORKER_REFUSAL_H

#include "base/err.h"

#include <stddef.h>

/* Fills *err from the valid JSON of an `error` member: message, data.code (ERR_INTERNAL where it is none of ours),
 * data.field. */
void worker_refusal_read(const char *answer, size_t len, struct err *err);

#endif
