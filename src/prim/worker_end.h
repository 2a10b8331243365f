/* What those whose calls got no answer are told of the process that had them. */
#ifndef ABX_PRIM_WORKER_END_H
#define ABX_PRIM_WORKER_END_H

#include "base/err.h"
#include "prim/worker_run.h"

/* *out_exit: all 0 where it does not end although it was killed. *out_err: ERR_INTERNAL with how it ended, why it was
 * killed, and the last words of its standard error. For on_gone of the run. */
void worker_end_tell(const struct worker_run *run, const char *name, struct process_exit *out_exit,
                     struct err *out_err);

#endif
