/* fs.write: takes what is to be written out of Lua and hands it to prim/file_write: at once, or on a thread. */
#include "bind/bind_fs.h"
#include "prim/file_write.h"
#include "script/bindings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct write_job {
    struct fs_job job; /* first: fs_job.c frees by it */
    struct file_write request;
    _Alignas(
        struct edit) char bytes[]; /* all that the request points to: the edits first, as they need to be aligned */
};

static void close_file(struct file_write *request)
{
    if (request->from_file)
        close(request->content_fd);
    request->from_file = false;
}

static int write_run(struct fs_job *job, struct err *err)
{
    struct write_job *write = (struct write_job *)job;
    write->request.at_once = job->place == FS_JOB_ON_LOOP;
    int result = file_write(job->confine, &write->request, &job->answer, &job->created, err);
    job->go_on = result == 1;
    if (!job->go_on)
        close_file(&write->request); /* here, as it may be the last of a file without a name: giving its pages back
                                      * takes its time */
    return result < 0 ? -1 : 0;
}

static void write_free(struct fs_job *job)
{
    struct write_job *write = (struct write_job *)job;
    close_file(&write->request);
    free(write);
}

static const char *const option_keys[] = {"path",           "content", "file",     "encoding", "append", "overwrite",
                                          "create_parents", "mode",    "if_match", "edits",    NULL};
static const char *const edit_keys[] = {"old", "new", "all", NULL};

static struct edit read_edit(lua_State *L, int table)
{
    struct edit edit = {.all = lua_field_bool(L, table, "all", false)};
    lua_check_keys(L, table, edit_keys, "fs.write: edits");
    edit.old = lua_field_string(L, table, "old", &edit.old_len);
    edit.new = lua_field_string(L, table, "new", &edit.new_len);
    if (!edit.old || !edit.new)
        luaL_error(L, "fs.write: each of edits needs 'old' and 'new'");
    return edit;
}

/* Leaves a userdata with the edits on the stack; their bytes are those of the strings in the table at `options`, which
 * keeps them. NULL where there are none. */
static struct edit *read_edits(lua_State *L, int options, size_t *out_count)
{
    lua_getfield(L, options, "edits");
    *out_count = 0;
    if (lua_isnil(L, -1))
        return NULL;
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_thaw(L, -1);
    int table = lua_gettop(L);
    size_t count = lua_rawlen(L, table);
    struct edit *edits = lua_newuserdatauv(L, (count + 1) * sizeof(*edits), 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, table, (lua_Integer)i + 1);
        edits[i] = read_edit(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    *out_count = count;
    return edits;
}

/* The request with pointers into Lua's strings; the member "file", or nil, is on top. Raises for misuse. */
static struct file_write read_options(lua_State *L, int options)
{
    lua_check_keys(L, options, option_keys, "fs.write");
    struct file_write request = {
        .append = lua_field_bool(L, options, "append", false),
        .overwrite = lua_field_bool(L, options, "overwrite", true),
        .create_parents = lua_field_bool(L, options, "create_parents", true),
        .mode = bind_fs_mode_field(L, options),
        .if_match = lua_field_string(L, options, "if_match", NULL),
    };
    const char *encoding = lua_field_string(L, options, "encoding", NULL);
    request.base64 = encoding && strcmp(encoding, "base64") == 0;
    if (encoding && !request.base64 && strcmp(encoding, "utf-8") != 0)
        luaL_error(L, "fs.write: 'encoding' is \"utf-8\" or \"base64\"");
    request.path = lua_field_string(L, options, "path", &request.path_len);
    if (!request.path)
        luaL_error(L, "fs.write: 'path' must be given");
    request.content = lua_field_string(L, options, "content", &request.content_len);
    request.edits = read_edits(L, options, &request.edit_count);
    lua_getfield(L, options, "file");
    if (!lua_isnil(L, -1) && (request.content || request.edits || request.base64 || request.append))
        luaL_error(L, "fs.write: 'file' is all of the new content");
    return request;
}

static size_t bytes_needed(const struct file_write *request)
{
    size_t size = request->edit_count * sizeof(*request->edits);
    for (size_t i = 0; i < request->edit_count; i++)
        size += request->edits[i].old_len + request->edits[i].new_len;
    size += request->path_len + (request->content ? request->content_len : 0);
    return size + (request->if_match ? strlen(request->if_match) + 1 : 0);
}

static const char *move_in(char **to, const char *bytes, size_t len)
{
    char *copy = *to;
    if (len > 0)
        memcpy(copy, bytes, len);
    *to += len;
    return copy;
}

/* Copies what a request borrows to `to`, which has bytes_needed, and makes it borrow that instead. */
static void take_in(struct file_write *request, char *to)
{
    struct edit *edits = (struct edit *)(void *)to;
    to += request->edit_count * sizeof(*edits);
    for (size_t i = 0; i < request->edit_count; i++) {
        edits[i] = request->edits[i];
        edits[i].old = move_in(&to, edits[i].old, edits[i].old_len);
        edits[i].new = move_in(&to, edits[i].new, edits[i].new_len);
    }
    if (request->edits)
        request->edits = edits;
    request->path = move_in(&to, request->path, request->path_len);
    if (request->content)
        request->content = move_in(&to, request->content, request->content_len);
    if (request->if_match)
        request->if_match = move_in(&to, request->if_match, strlen(request->if_match) + 1);
}

static bool take_file(lua_State *L, struct file_write *request)
{
    struct response_file file;
    if (!lua_take_file(L, -1, &file))
        return false;
    request->from_file = true;
    request->content_fd = file.fd;
    request->content_len = (size_t)file.size;
    return true;
}

/* fs.write{path=, content=, file=, encoding=, append=, overwrite=, create_parents=, mode=, if_match=, edits=} -> JSON,
 * created | nil, code, message, field.  Yields, unless it is little and stays in memory. */
int bind_fs_write(lua_State *L)
{
    task_check(L);
    struct file_write request = read_options(L, 1);
    struct write_job *write = fs_job_new(L, sizeof(*write) + bytes_needed(&request), write_run, write_free);
    take_in(&request, write->bytes);
    request.cancelled = &write->job.cancelled;
    write->request = request;
    if (!lua_isnil(L, -1) && !take_file(L, &write->request)) {
        write_free(&write->job);
        return luaL_error(L, "fs.write: 'file' must be an open file that was not taken before");
    }
    return fs_job_start(L, &write->job, FS_JOB_ON_LOOP, false);
}
