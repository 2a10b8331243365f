/* New entries of any kind (files, links, whole trees) that are made under a temporary name beside their target and get
 * the target's name at the end: for copies and moves. Everything acts on descriptors of directories. Blocking. Errors
 * name the field "destination". */
#ifndef ABX_PRIM_STAGED_H
#define ABX_PRIM_STAGED_H

#include "prim/confine.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { STAGED_NAME_LEN = 21 }; /* ".abx-" and 16 hex digits */

/* A name that nothing bears. */
void staged_name(char out[STAGED_NAME_LEN + 1]);

/* Whether it is such a name: what bears it is on its way somewhere, or to be removed soon. */
bool staged_is_name(const char *name);

/* May something new take this name? What stands there is never followed. *out_exists, and *out_found where it does.
 * ERR_ALREADY_EXISTS without overwrite; ERR_IS_A_DIRECTORY, ERR_NOT_A_DIRECTORY where one of the two is a directory and
 * the other is not; ERR_NOT_A_REGULAR_FILE in procfs and sysfs. */
int staged_look(int dir_fd, const char *name, bool is_dir, bool overwrite, bool *out_exists, struct stat *out_found,
                struct err *err) ABX_MUST_USE;

/* rename(2) that, unless overwrite, never replaces; while no writer of this server is at the target. -1 with errno:
 * EEXIST, ENOTEMPTY (a directory onto one that is not empty), EXDEV … */
int staged_rename(int from_fd, const char *from, int to_fd, const char *to, bool overwrite) ABX_MUST_USE;
/* What a failure of that means. */
int staged_rename_err(struct err *err, int reason, const char *to);

/* Gives what was made as temp its name. */
int staged_place(int dir_fd, const char *temp, const char *name, bool overwrite, struct err *err) ABX_MUST_USE;
/* Removes it, whatever it is and however far it came; also where there is nothing. */
void staged_discard(const struct confine *confine, int dir_fd, const char *temp);

#endif
