/* Adds bytes to the end of a file, in place. For file_write. Blocking. */
#ifndef ABX_PRIM_APPEND_H
#define ABX_PRIM_APPEND_H

#include "base/err.h"
#include "prim/replace.h"

#include <stddef.h>
#include <sys/stat.h>

/* To the file that replace_look saw, while the caller holds replace_lock; fsynced. mode: -1 as it is. On failure the
 * file is cut back to where it ended, unless another program wrote behind that meanwhile. */
int append_in_place(struct replace *replace, const void *bytes, size_t len, int mode, struct stat *out_now,
                    struct err *err) ABX_MUST_USE;

#endif
