/* An upload from its first byte to the last rename; bind/bind_fs feeds it on the pool. */
#include "prim/upload.h"

#include "base/multipart.h"
#include "prim/parents.h"
#include "prim/upload_dirs.h"
#include "prim/upload_file.h"
#include "prim/upload_place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { UPLOAD_FILES_MAX = 10000 };

struct upload {
    const struct confine *confine;
    char *path, *dir;
    size_t path_len, dir_len;
    bool overwrite, create_parents, has_sha256;
    int mode;
    char sha256[SHA256_HEX_LEN + 1];

    struct multipart *multipart; /* NULL: the body is the raw file */
    enum { PART_IGNORED, PART_FILE, PART_PATH } part;
    struct err failure; /* code ERR_NONE: none so far */
    bool finished;

    struct upload_pending *pending;
    size_t count, cap;
    struct upload_dirs dirs;
    struct sha256_ctx hash;    /* of the newest file: the others are written */
    struct upload_file *files; /* the answer; as many as pending once it is finished */
    size_t renamed;
};

static int no_memory(struct err *err)
{
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot take the upload");
}

static int refuse(struct err *err, const char *field, const char *why)
{
    err_set(err, ERR_INVALID_REQUEST, "%s", why);
    return err_field(err, field);
}

static struct upload_pending *add_pending(struct upload *upload, struct err *err)
{
    if (upload->count == UPLOAD_FILES_MAX) {
        err_set(err, ERR_PAYLOAD_TOO_LARGE, "one upload may hold at most %d files", UPLOAD_FILES_MAX);
        return NULL;
    }
    if (upload->count == upload->cap) {
        size_t cap = upload->cap ? 2 * upload->cap : 4;
        struct upload_pending *grown = realloc(upload->pending, cap * sizeof(*grown));
        if (!grown) {
            no_memory(err);
            return NULL;
        }
        upload->pending = grown;
        upload->cap = cap;
    }
    struct upload_pending *file = &upload->pending[upload->count++];
    memset(file, 0, sizeof(*file));
    file->replace.fd = -1;
    return file;
}

static int begin_target(struct upload *upload, const char *path, size_t len, struct err *err)
{
    if (len > 0 && path[len - 1] == '/')
        return err_set(err, ERR_IS_A_DIRECTORY, "the target names a directory, not a file: %.*s",
                       len > 100 ? 100 : (int)len, path);
    struct confine_entry entry;
    int flags = CONFINE_FOLLOW | (upload->create_parents ? CONFINE_MISSING_PARENTS : 0);
    if (confine_parent(upload->confine, path, len, flags, &entry, err) != 0)
        return -1;
    ssize_t dir = upload_dirs_keep(&upload->dirs, entry.dir_fd, err);
    struct upload_pending *file = dir < 0 ? NULL : add_pending(upload, err);
    if (!file)
        return -1;
    file->dir = file->target = (size_t)dir;
    if (entry.missing[0] && !(file->missing = strdup(entry.missing)))
        return no_memory(err);
    return upload_file_begin(file, &upload->hash, upload->dirs.items[dir].fd, entry.name, upload->overwrite, err);
}

static int begin_file(struct upload *upload, const char *path, size_t len, struct err *err)
{
    parents_lock();
    int result = begin_target(upload, path, len, err);
    parents_unlock();
    if (result == 0)
        return 0;
    return err_field(err, upload->path ? "path" : "dir");
}

static int write_file(struct upload *upload, const char *bytes, size_t len, struct err *err)
{
    return upload_file_write(&upload->pending[upload->count - 1], &upload->hash, bytes, len, err);
}

static int end_file(struct upload *upload, struct err *err)
{
    return upload_file_end(&upload->pending[upload->count - 1], &upload->hash, upload->mode, err);
}

/* The file of a part goes into dir, under what follows the last separator of its name: browsers of old send folders. */
static int begin_named_part(struct upload *upload, const char *filename, struct err *err)
{
    const char *name = filename;
    for (const char *at = filename; *at; at++) {
        if (*at == '/' || *at == '\\')
            name = at + 1;
    }
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return refuse(err, "filename", "a file part needs a file name that is not empty, \".\" or \"..\"");

    char path[PATH_MAX];
    size_t name_len = strlen(name);
    if (upload->dir_len + 1 + name_len >= sizeof(path))
        return err_set(err, ERR_INVALID_PATH, "the target path is too long (%d bytes at most)", PATH_MAX - 1);
    memcpy(path, upload->dir, upload->dir_len);
    size_t len = upload->dir_len;
    if (len > 0)
        path[len++] = '/';
    memcpy(path + len, name, name_len);
    return begin_file(upload, path, len + name_len, err);
}

static int on_part(void *ctx, const struct multipart_part *part, struct err *err)
{
    struct upload *upload = ctx;
    if (part->filename) {
        upload->part = PART_FILE;
        if (upload->count > 0 && upload->path)
            return refuse(err, "path", "a text part \"path\" names the target of one file, but there are more");
        if (upload->count > 0 && upload->has_sha256)
            return refuse(err, "sha256", "sha256 checks one file, but there are more");
        if (upload->path)
            return begin_file(upload, upload->path, upload->path_len, err);
        return begin_named_part(upload, part->filename, err);
    }
    upload->part = PART_IGNORED;
    if (!part->name || strcmp(part->name, "path") != 0)
        return 0;
    if (upload->path || upload->count > 0)
        return refuse(err, "path", "the text part \"path\" may come once, before the file");
    upload->part = PART_PATH;
    upload->path = malloc(PATH_MAX);
    upload->path_len = 0;
    return upload->path ? 0 : no_memory(err);
}

static int on_data(void *ctx, const char *bytes, size_t len, struct err *err)
{
    struct upload *upload = ctx;
    if (upload->part == PART_FILE)
        return write_file(upload, bytes, len, err);
    if (upload->part == PART_IGNORED)
        return 0;
    if (len >= PATH_MAX - upload->path_len) {
        err_set(err, ERR_INVALID_PATH, "the path is too long (%d bytes at most)", PATH_MAX - 1);
        return err_field(err, "path");
    }
    memcpy(upload->path + upload->path_len, bytes, len);
    upload->path_len += len;
    return 0;
}

static int on_part_end(void *ctx, struct err *err)
{
    struct upload *upload = ctx;
    return upload->part == PART_FILE ? end_file(upload, err) : 0;
}

static bool is_form_data(const char *content_type)
{
    static const char type[] = "multipart/form-data";
    if (!content_type || strncasecmp(content_type, type, strlen(type)) != 0)
        return false;
    return strchr("; \t", content_type[strlen(type)]) != NULL; /* or the end */
}

/* malloc and memcpy, since paths may hold any byte. */
static char *copy_bytes(const char *bytes, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy && len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static int take_options(struct upload *upload, const struct upload_options *options, struct err *err)
{
    static const struct multipart_events events = {on_part, on_data, on_part_end};
    upload->overwrite = options->overwrite;
    upload->create_parents = options->create_parents;
    upload->mode = options->mode;
    if (options->mode < -1 || options->mode > 07777)
        return refuse(err, "mode", "mode must be octal, at most 7777");
    upload->has_sha256 = options->sha256 != NULL;
    if (options->sha256 && !sha256_parse_hex(options->sha256, upload->sha256))
        return refuse(err, "sha256", "sha256 must be 64 hex digits");

    if (is_form_data(options->content_type)) {
        if (options->path)
            return refuse(err, "path", "for multipart/form-data name the target by dir, or by a text part \"path\"");
        upload->dir_len = options->dir ? options->dir_len : 0;
        upload->dir = copy_bytes(options->dir, upload->dir_len);
        if (!upload->dir)
            return no_memory(err);
        upload->multipart = multipart_new(options->content_type, &events, upload, err);
        return upload->multipart ? 0 : -1;
    }
    if (options->dir)
        return refuse(err, "dir", "dir is for multipart/form-data; a raw body needs path");
    if (!options->path)
        return refuse(err, "path", "a raw body needs the target's path");
    upload->path_len = options->path_len;
    upload->path = copy_bytes(options->path, options->path_len);
    return upload->path ? 0 : no_memory(err);
}

struct upload *upload_new(const struct confine *confine, const struct upload_options *options, struct err *err)
{
    struct upload *upload = calloc(1, sizeof(*upload));
    if (!upload) {
        no_memory(err);
        return NULL;
    }
    upload->confine = confine;
    if (take_options(upload, options, err) != 0) {
        upload_free(upload);
        return NULL;
    }
    return upload;
}

/* Passes a failure on and keeps it for every later call. */
static int settle(struct upload *upload, int result, struct err *err)
{
    if (result != 0)
        upload->failure = *err;
    return result;
}

static int feed(struct upload *upload, const char *bytes, size_t len, struct err *err)
{
    if (upload->multipart)
        return multipart_feed(upload->multipart, bytes, len, err);
    if (upload->count == 0 && begin_file(upload, upload->path, upload->path_len, err) != 0)
        return -1;
    return write_file(upload, bytes, len, err);
}

int upload_feed(struct upload *upload, const char *bytes, size_t len, struct err *err)
{
    if (upload->failure.code != ERR_NONE) {
        *err = upload->failure;
        return -1;
    }
    return settle(upload, feed(upload, bytes, len, err), err);
}

/* Everything is written: may it be put in place? */
static int check_whole(struct upload *upload, struct err *err)
{
    if (upload->multipart && multipart_finish(upload->multipart, err) != 0)
        return -1;
    if (!upload->multipart) {
        if (upload->count == 0 && begin_file(upload, upload->path, upload->path_len, err) != 0)
            return -1;
        if (end_file(upload, err) != 0)
            return -1;
    }
    if (upload->count == 0)
        return err_set(err, ERR_INVALID_REQUEST, "the form holds no file (a part with a filename)");
    if (upload->has_sha256 && strcmp(upload->sha256, upload->pending[0].sha256) != 0) {
        err_set(err, ERR_CHECKSUM_MISMATCH, "the bytes that came have the sha256 %s", upload->pending[0].sha256);
        return err_field(err, "sha256");
    }
    return 0;
}

static int put_in_place(struct upload *upload, struct err *err)
{
    struct upload_batch batch = {upload->pending, upload->count, &upload->dirs, upload->path ? "path" : "dir"};
    upload->files = calloc(upload->count, sizeof(*upload->files));
    if (!upload->files)
        return no_memory(err);
    return upload_place(&batch, upload->files, &upload->renamed, err);
}

int upload_finish(struct upload *upload, const struct upload_file **out_files, size_t *out_count, struct err *err)
{
    if (upload->failure.code != ERR_NONE) {
        *err = upload->failure;
        return -1;
    }
    if (!upload->finished) {
        int result = check_whole(upload, err);
        if (result == 0)
            result = put_in_place(upload, err);
        if (upload->renamed > 0)
            upload_dirs_sync(&upload->dirs);
        if (settle(upload, result, err) != 0)
            return -1;
        upload->finished = true;
    }
    *out_files = upload->files;
    *out_count = upload->count;
    return 0;
}

void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    for (size_t i = 0; i < upload->count; i++) {
        struct upload_pending *file = &upload->pending[i];
        replace_abort(&file->replace);
        free(file->missing);
        if (upload->files)
            free(upload->files[i].path);
    }
    upload_dirs_close(&upload->dirs);
    if (upload->multipart)
        multipart_free(upload->multipart);
    free(upload->pending);
    free(upload->files);
    free(upload->path);
    free(upload->dir);
    free(upload);
}
