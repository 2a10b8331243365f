/* fs.read: a part of a file as an answer. Called by handlers. */
#include "bind/bind_fs.h"
#include "prim/file_read.h"
#include "script/bindings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct read_job {
    struct fs_job job;
    struct file_part part;
    size_t path_len;
    char path[];
};

static int run(struct fs_job *job, struct err *err)
{
    struct read_job *read = (struct read_job *)job;
    struct file_terms terms = {.cancelled = &job->cancelled,
                               .at_once = job->place == FS_JOB_ON_LOOP,
                               .short_only = job->place != FS_JOB_ON_LONG_THREADS};
    int result = file_read(job->confine, read->path, read->path_len, &read->part, &terms, &job->answer, err);
    job->go_on = result == 1;
    return result < 0 ? -1 : 0;
}

static void free_job(struct fs_job *job)
{
    free(job);
}

static enum file_encoding encoding_of(lua_State *L)
{
    static const char *const names[] = {
        [FILE_ENCODING_AUTO] = "auto", [FILE_ENCODING_UTF8] = "utf-8", [FILE_ENCODING_BASE64] = "base64"};
    size_t len;
    const char *name = lua_field_string(L, 1, "encoding", &len);
    for (int i = 0; i < 3 && name; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum file_encoding)i;
    if (name)
        luaL_error(L, "fs.read: no such encoding: %s", name);
    return FILE_ENCODING_AUTO;
}

static int refuse(struct err *err, const char *field, const char *problem)
{
    err_set(err, ERR_INVALID_REQUEST, "%s: %s", field, problem);
    return err_field(err, field);
}

/* Raises for misuse; -1 with err for members that do not go together, which a schema cannot say. */
static int part_of(lua_State *L, struct file_part *part, struct err *err)
{
    lua_Integer offset = lua_field_int(L, 1, "offset", -1, 0, INT64_MAX),
                length = lua_field_int(L, 1, "length", -1, 0, FILE_READ_MAX_BYTES),
                start = lua_field_int(L, 1, "start_line", -1, 1, INT64_MAX),
                end = lua_field_int(L, 1, "end_line", -1, 1, INT64_MAX);
    part->encoding = encoding_of(L);
    part->by_lines = start >= 0 || end >= 0;
    if (part->by_lines && (offset >= 0 || length >= 0))
        return refuse(err, offset >= 0 ? "offset" : "length", "cannot stand beside start_line or end_line");
    part->offset_bytes = offset >= 0 ? (uint64_t)offset : 0;
    part->length_bytes = length >= 0 ? (size_t)length : FILE_READ_DEFAULT_BYTES;
    part->first_line = start >= 0 ? (uint64_t)start : 1;
    part->last_line = end >= 0 ? (uint64_t)end : UINT64_MAX;
    return part->first_line <= part->last_line ? 0 : refuse(err, "end_line", "is before start_line");
}

/* fs.read{path=, encoding=, offset=, length= | start_line=, end_line=} -> raw JSON, false | nil, code, message, field.
 * Yields, unless it is little and in memory. */
int bind_fs_read(lua_State *L)
{
    static const char *const known[] = {"path", "encoding", "offset", "length", "start_line", "end_line", NULL};
    size_t len;
    struct file_part part;
    struct err err;
    lua_check_keys(L, 1, known, "fs.read");
    const char *path = lua_field_string(L, 1, "path", &len);
    if (!path)
        return luaL_error(L, "fs.read: 'path' must be given");
    if (part_of(L, &part, &err) != 0)
        return lua_push_err(L, &err);
    struct read_job *read = fs_job_new(L, sizeof(*read) + len, run, free_job);
    read->part = part;
    read->path_len = len;
    memcpy(read->path, path, len);
    return fs_job_start(L, &read->job, FS_JOB_ON_LOOP, false);
}
