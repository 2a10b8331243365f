/* The directories missing on the way to a target ("a/b", as confine_parent tells them). Blocking. */
#ifndef ABX_PRIM_PARENTS_H
#define ABX_PRIM_PARENTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Held while missing directories are made, used and perhaps taken back, and while a target's directory is looked up and
 * gets its first file: so nobody meets a directory that another one is about to remove. */
void parents_lock(void);
bool parents_try_lock(void); /* false where it is held: never waits */
void parents_unlock(void);

/* Makes "a/b/c" below dir_fd, mode 0777 less umask; what stands there already is used. The last one, O_PATH, the
 * caller's; *out_made: how many, from the end, were made here. -1: nothing that was made here is left. */
int parents_make(int dir_fd, const char *missing, size_t *out_made, struct err *err) ABX_MUST_USE;
/* Takes that back, as far as they are empty. */
void parents_remove(int dir_fd, const char *missing, size_t made);

#endif
