/* The three ways to write a file, for bind_file_write.c: replaced by new content, replaced by its own text with edits,
 * or appended to. */
#include "prim/file_write.h"

#include "base/base64.h"
#include "base/json.h"
#include "prim/append.h"
#include "prim/entry.h"
#include "prim/file_copy.h"
#include "prim/parents.h"
#include "prim/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURNS_MAX = 16, ANSWER_TAIL_BYTES = 256, AT_ONCE_MAX_BYTES = 64 * 1024, AGAIN = 1 };

struct writer {
    const struct confine *confine;
    const struct file_write *request;
    const char *content; /* decoded */
    size_t content_len;
    struct confine_entry entry;
    char dir_path[PATH_MAX]; /* the entry's directory, with at_once */
    struct replace replace;  /* in the entry's directory */
    int made_fd;             /* the directory that was made for it; -1 */
    size_t made;
    bool created;
    struct stat written;
};

static int refuse(struct err *err, const char *field, const char *why)
{
    err_set(err, ERR_INVALID_REQUEST, "%s", why);
    return err_field(err, field);
}

static int check_request(const struct file_write *request, struct err *err)
{
    if (!request->content && !request->edits && !request->from_file)
        return refuse(err, "content", "content or edits must be given");
    if (request->edits && request->content)
        return refuse(err, "content", "give content or edits, not both");
    if (request->edits && request->append)
        return refuse(err, "append", "edits change the text that is there; append needs content");
    if (request->edits && request->base64)
        return refuse(err, "encoding", "encoding is of content; edits are always text");
    if (request->path_len > 0 && request->path[request->path_len - 1] == '/')
        return err_set(err, ERR_IS_A_DIRECTORY, "the path names a directory, not a file: %.*s",
                       request->path_len > 100 ? 100 : (int)request->path_len, request->path);
    return 0;
}

static int find_directory(struct writer *writer, struct err *err)
{
    const struct file_write *request = writer->request;
    if (request->at_once)
        return confine_parent_cached(writer->confine, request->path, request->path_len, &writer->entry,
                                     writer->dir_path);
    int flags = CONFINE_FOLLOW | (request->create_parents && !request->edits ? CONFINE_MISSING_PARENTS : 0);
    return confine_parent(writer->confine, request->path, request->path_len, flags, &writer->entry, err);
}

/* Finds the target's directory and, unless there is text to keep, begins the new file in it. That holds the directory:
 * one with a file in it is not taken back by who made it. */
static int open_target(struct writer *writer, struct err *err)
{
    const struct file_write *request = writer->request;
    if (find_directory(writer, err) != 0) {
        writer->entry.dir_fd = -1;
        return -1;
    }
    struct replace *replace = &writer->replace;
    replace_init(replace, writer->entry.dir_fd, writer->entry.name);
    replace->overwrite = request->overwrite;
    replace->if_match = request->if_match;
    replace->later = true;
    replace->at_once = request->at_once;
    if (writer->entry.missing[0] && request->if_match) {
        err_set(err, ERR_STALE_WRITE, "if_match needs a file, but not even its directory exists");
        return err_field(err, "if_match");
    }
    if (request->edits)
        return 0;
    /* A plain replacement looks at its end only. */
    bool is_plain = !request->append && request->overwrite && !request->if_match;
    if (!is_plain && !writer->entry.missing[0] && replace_look(replace, err) != 0)
        return -1;
    if (request->append && replace->exists)
        return 0;
    if (request->append)
        replace->overwrite = false; /* who makes it meanwhile must not lose what he wrote */
    return replace_open(replace, err);
}

/* The answer's path: before the file is put in place, as nothing may fail afterwards. */
static int describe(const struct writer *writer, struct buf *answer, struct err *err)
{
    char path[PATH_MAX + NAME_MAX + 2];
    if (writer->request->at_once)
        memcpy(path, writer->dir_path, strlen(writer->dir_path) + 1);
    else if (confine_path_of(writer->replace.target_fd, path, PATH_MAX, err) != 0)
        return -1;
    size_t len = strlen(path);
    if (len > 1)
        path[len++] = '/';
    memcpy(path + len, writer->replace.name, strlen(writer->replace.name) + 1);
    buf_reset(answer);
    if (buf_append(answer, "{", 1) != 0 || entry_write_path(answer, "path", path, strlen(path)) != 0 ||
        buf_reserve(answer, ANSWER_TAIL_BYTES) != 0)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot answer");
    return 0;
}

static int finish_answer(const struct writer *writer, struct buf *answer, struct err *err)
{
    char etag[ENTRY_ETAG_MAX];
    entry_etag(etag, &writer->written);
    if (buf_printf(answer, ",\"size\":%" PRIu64 ",\"created\":%s,\"etag\":", (uint64_t)writer->written.st_size,
                   writer->created ? "true" : "false") != 0 ||
        json_write_string(answer, etag, strlen(etag)) != 0 || buf_append(answer, "}", 1) != 0)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot answer");
    return 0;
}

/* Makes the directories only when the new file is complete: a write that fails before leaves none. They are on its file
 * system: nothing can be mounted below what did not exist. */
static int place_below_new_parents(struct writer *writer, struct buf *answer, struct err *err)
{
    struct replace *replace = &writer->replace;
    writer->made_fd = parents_make(writer->entry.dir_fd, writer->entry.missing, &writer->made, err);
    if (writer->made_fd < 0)
        return -1;
    replace->target_fd = writer->made_fd;
    if (describe(writer, answer, err) == 0 && replace_rename(replace, &writer->created, err) == 0) {
        replace_sync_dir(writer->made_fd);
        replace_sync_dir(writer->entry.dir_fd);
        return 0;
    }
    parents_remove(writer->entry.dir_fd, writer->entry.missing, writer->made);
    return -1;
}

static int copy_content(struct writer *writer, struct err *err)
{
    struct replace *replace = &writer->replace;
    struct file_copier copier = {.cancelled = writer->request->cancelled};
    struct stat found;
    uint64_t len;
    if (fstat(writer->request->content_fd, &found) != 0 || (uint64_t)found.st_size != writer->content_len)
        return err_set(err, ERR_BUSY, "the new content of %.100s was changed meanwhile, try again", replace->name);
    int result = file_copy_content(&copier, writer->request->content_fd, replace->fd, &found, &len);
    if (result != 0)
        err_set_errno(err, err_from_errno(errno), errno, "cannot write %.100s", replace->name);
    file_copier_deinit(&copier);
    replace->size = found.st_size;
    return result;
}

static int write_content(struct writer *writer, struct buf *answer, struct err *err)
{
    struct replace *replace = &writer->replace;
    int result = writer->request->from_file ? copy_content(writer, err)
                                            : replace_write(replace, writer->content, writer->content_len, err);
    if (result != 0)
        return -1;
    if (writer->entry.missing[0]) {
        if (replace_finish(replace, writer->request->mode, true, err) != 0)
            return -1;
        parents_lock();
        result = place_below_new_parents(writer, answer, err);
        parents_unlock();
    } else {
        result = describe(writer, answer, err);
        if (result == 0)
            result = replace_commit(replace, writer->request->mode, true, &writer->created, err);
    }
    writer->written = replace->now;
    if (result != 0 && err->code == ERR_ALREADY_EXISTS && writer->request->append && writer->request->overwrite)
        return AGAIN; /* made meanwhile: append to it */
    return result;
}

static int read_old(struct replace *replace, struct buf *text, struct err *err)
{
    int fd = replace_open_old(replace, O_RDONLY, err);
    if (fd < 0)
        return -1;
    int result = 0;
    size_t size = (size_t)replace->old.st_size;
    if (size > text->max)
        result = err_set(err, ERR_PAYLOAD_TOO_LARGE, "%.100s is larger than %zu bytes, too large for edits",
                         replace->name, text->max);
    else if (buf_reserve(text, size) != 0)
        result = err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot edit");
    while (result == 0 && text->len < size) {
        ssize_t got = read(fd, text->data + text->len, size - text->len);
        if (got == 0)
            result = err_set(err, ERR_STALE_WRITE, "%.100s was cut while it was read, try again", replace->name);
        else if (got < 0 && errno != EINTR)
            result = err_set_errno(err, err_from_errno(errno), errno, "cannot read %.100s", replace->name);
        text->len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return result;
}

static int write_edits(struct writer *writer, struct buf *answer, struct err *err)
{
    const struct file_write *request = writer->request;
    struct replace *replace = &writer->replace;
    char etag[ENTRY_ETAG_MAX];
    struct buf text;
    if (replace_lock(replace, err) != 0 || replace_look(replace, err) != 0 || describe(writer, answer, err) != 0)
        return -1;
    if (!replace->exists)
        return err_set(err, ERR_FILE_NOT_FOUND, "no file to edit: %.100s", replace->name);
    buf_init(&text, FILE_WRITE_EDIT_MAX_BYTES);
    int result = read_old(replace, &text, err);
    if (result == 0)
        result = edits_apply(&text, request->edits, request->edit_count, request->cancelled, err);
    entry_etag(etag, &replace->old);
    replace->if_match = etag; /* others than this server may write, too */
    if (result == 0)
        result = replace_open(replace, err);
    if (result == 0)
        result = replace_write(replace, text.data, text.len, err);
    if (result == 0)
        result = replace_commit(replace, request->mode, true, &writer->created, err);
    if (result != 0 && err->code == ERR_STALE_WRITE && !request->if_match)
        err_field(err, "path");
    buf_deinit(&text);
    writer->written = replace->now;
    return result;
}

static int write_end(struct writer *writer, struct buf *answer, struct err *err)
{
    struct replace *replace = &writer->replace;
    if (replace_lock(replace, err) != 0 || replace_look(replace, err) != 0 || describe(writer, answer, err) != 0)
        return -1;
    if (!replace->exists)
        return AGAIN; /* removed meanwhile: make it */
    writer->created = false;
    return append_in_place(replace, writer->content, writer->content_len, writer->request->mode, &writer->written, err);
}

/* AGAIN: the target came or went in the middle of it. */
static int write_once(struct writer *writer, struct buf *answer, struct err *err)
{
    writer->made_fd = -1;
    replace_init(&writer->replace, -1, "");
    if (!writer->request->at_once)
        parents_lock();
    else if (!parents_try_lock())
        return -1;
    int result = open_target(writer, err);
    parents_unlock();
    if (result == 0 && writer->request->edits)
        result = write_edits(writer, answer, err);
    else if (result == 0 && writer->replace.fd < 0)
        result = write_end(writer, answer, err);
    else if (result == 0)
        result = write_content(writer, answer, err);
    replace_abort(&writer->replace);
    if (writer->made_fd >= 0)
        close(writer->made_fd);
    if (writer->entry.dir_fd >= 0)
        close(writer->entry.dir_fd);
    return result;
}

static int write_decoded(struct writer *writer, struct buf *answer, struct err *err)
{
    for (int turns = 0; turns < TURNS_MAX; turns++) {
        int result = write_once(writer, answer, err);
        if (result != AGAIN)
            return result == 0 ? finish_answer(writer, answer, err) : -1;
    }
    return err_set(err, ERR_BUSY, "the file was made and removed all the while, try again");
}

static int write_encoded(struct writer *writer, struct buf *answer, struct err *err)
{
    const struct file_write *request = writer->request;
    struct buf decoded;
    if (check_request(request, err) != 0)
        return -1;
    writer->content = request->content;
    writer->content_len = request->content_len;
    buf_init(&decoded, request->content_len);
    int result = 0;
    if (request->base64) {
        result = base64_decode(&decoded, request->content, request->content_len);
        if (result != 0)
            refuse(err, "content", "not base64 (the standard alphabet, with padding, without line breaks)");
        writer->content = decoded.data;
        writer->content_len = decoded.len;
    }
    if (result == 0)
        result = write_decoded(writer, answer, err);
    buf_deinit(&decoded);
    return result;
}

int file_write(const struct confine *confine, const struct file_write *request, struct buf *answer, bool *out_created,
               struct err *err)
{
    struct writer writer; /* not cleared: it holds paths */
    writer.confine = confine;
    writer.request = request;
    writer.created = false;
    if (request->at_once && (!request->content || request->append || request->content_len > AT_ONCE_MAX_BYTES))
        return 1;
    int result = write_encoded(&writer, answer, err);
    *out_created = writer.created;
    if (result != 0 && request->at_once) {
        buf_reset(answer);
        return 1;
    }
    return result;
}
