/* Makes a directory, with those missing above it if need be, for fs.mkdir. Blocking. */
#ifndef ABX_PRIM_MAKE_DIR_H
#define ABX_PRIM_MAKE_DIR_H

#include "prim/confine.h"

/* Where one stands already, perhaps behind a link, *out_created is false and nothing is changed; the base counts too.
 * parents: missing directories on the way are made, by the umask; taken back on failure. mode: of the last one,
 * whatever the umask; -1: by the umask. out_path is its real path. ERR_ALREADY_EXISTS where something else is in the
 * way: also a link that leads nowhere, and, with parents, a file on the way. ERR_FILE_NOT_FOUND: no parent. */
int make_dir(const struct confine *confine, const char *path, size_t len, bool parents, int mode,
             char out_path[PATH_MAX], bool *out_created, struct err *err) ABX_MUST_USE;

#endif
