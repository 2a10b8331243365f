/* Removes files, links and whole trees, for fs.delete and for moves across file systems. Blocking. */
#ifndef ABX_PRIM_TREE_REMOVE_H
#define ABX_PRIM_TREE_REMOVE_H

#include "prim/confine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Removes the entry `name` of dir_fd (a link itself, never what it leads to), with recursive also all that is below a
 * directory, however deep. Acts on held descriptors and follows no link: a directory that is swapped meanwhile leads
 * nowhere else. What vanishes meanwhile is fine and not counted. Stops at the first entry that cannot go, and what was
 * removed until then is gone: one that is protected or forbidden (ERR_PERMISSION_DENIED), or a directory that a file
 * system is mounted on, whose content is not touched (ERR_BUSY). cancelled is looked at now and then: -1 then too.
 * ERR_FILE_NOT_FOUND, ERR_NOT_EMPTY. *out_count grows by what was removed, also on failure. */
int tree_remove_at(const struct confine *confine, int dir_fd, const char *name, bool recursive,
                   const atomic_bool *cancelled, uint64_t *out_count, struct err *err) ABX_MUST_USE;

/* The same by path; out_path: the absolute path of what went. Never the base (ERR_BASE_DIR_PROTECTED), nor anything of
 * /proc or /sys (ERR_NOT_A_REGULAR_FILE). */
int tree_remove_path(const struct confine *confine, const char *path, size_t len, bool recursive,
                     const atomic_bool *cancelled, char out_path[PATH_MAX + NAME_MAX + 2], uint64_t *out_count,
                     struct err *err) ABX_MUST_USE;

#endif
