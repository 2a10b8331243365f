/* The end of an upload: all of its files are written, and get their names. For upload.c. Blocking. */
#ifndef ABX_PRIM_UPLOAD_PLACE_H
#define ABX_PRIM_UPLOAD_PLACE_H

#include "prim/parents.h"
#include "prim/upload.h"
#include "prim/upload_dirs.h"
#include "prim/upload_file.h"

struct upload_batch {
    struct upload_pending *pending;
    size_t count;
    struct upload_dirs *dirs;
    const char *field; /* that errors of the target's directory name */
};

/* Makes what directories are missing, fills in files (`count` of them, zeroed) and renames in order; *renamed counts.
 * Where it fails, those that were renamed stay, and of the directories what they need. */
int upload_place(struct upload_batch *batch, struct upload_file *files, size_t *renamed, struct err *err) ABX_MUST_USE;

#endif
