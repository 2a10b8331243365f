/* Writes one uploaded file beside its target, hashing it; upload.c says when, upload_place.c puts it in place. */
#include "prim/upload_file.h"

int upload_file_begin(struct upload_pending *pending, struct sha256_ctx *hash, int dir_fd, const char *name,
                      bool overwrite, struct err *err)
{
    sha256_init(hash);
    if (!pending->missing)
        return replace_begin(&pending->replace, dir_fd, name, overwrite, err);
    replace_init(&pending->replace, dir_fd, name);
    pending->replace.overwrite = overwrite;
    return replace_open(&pending->replace, err);
}

int upload_file_write(struct upload_pending *pending, struct sha256_ctx *hash, const char *bytes, size_t len,
                      struct err *err)
{
    sha256_update(hash, len, (const uint8_t *)bytes);
    pending->size += len;
    return replace_write(&pending->replace, bytes, len, err);
}

int upload_file_end(struct upload_pending *pending, struct sha256_ctx *hash, int mode, struct err *err)
{
    sha256_hex(hash, pending->sha256);
    if (replace_finish(&pending->replace, mode, true, err) != 0)
        return -1;
    return replace_close(&pending->replace, err);
}
