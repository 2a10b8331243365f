/* What `abxd-helper shell` answers: lines of JSON-RPC on its channel. All block until the parent takes them, and end
 * the process where it is gone, or memory is out. */
#ifndef ABX_HELPER_SHELL_ANSWER_H
#define ABX_HELPER_SHELL_ANSWER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHELL_CHANNEL_FD = 3 };

void shell_answer_refuse(int64_t id, const struct err *err);
/* bash is there: version as its BASH_VERSION has it. */
void shell_answer_opened(int64_t id, const char *version);
/* A cell has ended with that status, in decimals; late: it was made to leave. */
void shell_answer_cell(int64_t id, int64_t execution_count, const char *exit_status, bool late);

#endif
