/* Receiving files: streamed to temporary names in the target directory, or the nearest above it that exists, hashed,
 * fsynced, and renamed in order only when everything has come; create_parents makes directories right before that. An
 * upload that fails or is freed earlier leaves nothing. Blocking: runs on the pool, one job at a time. */
#ifndef ABX_PRIM_UPLOAD_H
#define ABX_PRIM_UPLOAD_H

#include "base/err.h"
#include "prim/confine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct upload_options {
    const char *content_type; /* multipart/form-data is taken apart; anything else is the raw file; NULL: raw */
    const char *path;         /* raw: the target (required); NULL for multipart */
    size_t path_len;
    const char *dir; /* multipart: where named parts go; NULL: the base */
    size_t dir_len;
    bool overwrite, create_parents;
    int mode;           /* -1: keep what it replaces, else 0666 less umask */
    const char *sha256; /* 64 hex digits that the one file must have; NULL: not checked */
};

struct upload_file {
    char *path; /* absolute, real; may not be UTF-8 */
    uint64_t size;
    char sha256[65];
    bool created; /* false where it replaced a file */
};

struct upload;

/* Copies the options. NULL with *err where they do not fit together. Does not touch the disk yet. */
struct upload *upload_new(const struct confine *confine, const struct upload_options *options, struct err *err);
/* Takes the next bytes of the body. -1: the upload failed (as confine; ERR_NO_SPACE; ERR_INVALID_REQUEST for a bad
 * multipart body; ERR_ALREADY_EXISTS without overwrite); later calls answer the same. */
int upload_feed(struct upload *upload, const char *bytes, size_t len, struct err *err) ABX_MUST_USE;
/* The body is complete: checks, fsyncs, renames in the order of the parts. Where a rename fails after others, those
 * stay, whole, and the error says how many. Afterwards *out_files (owned by the upload) are the new files. */
int upload_finish(struct upload *upload, const struct upload_file **out_files, size_t *out_count,
                  struct err *err) ABX_MUST_USE;
/* Removes temporary files that were not renamed. */
void upload_free(struct upload *upload);

#endif
