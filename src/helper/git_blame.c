/* Who last changed each line of a file, as `git blame` of a commit tells. */
#include "base/utf8.h"
#include "helper/git_history.h"
#include "helper/git_origins.h"

#include <string.h>

enum { LINE_BYTES_MAX = 64 * 1024 }; /* of one line's text in an answer */

struct lines {
    const char *text;
    size_t len;
    size_t first, last; /* 1-based; first > last: none */
};

static size_t count_lines(const char *text, size_t len)
{
    size_t count = 0;
    for (const char *at = text, *end = text + len; at < end; count++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    return count;
}

/* The parameter `file`, relative to the root. *out is to be freed. */
static int file_param(const struct git_call *call, struct git_paths *out, struct err *err)
{
    struct git_call one = *call;
    cJSON *lists = cJSON_CreateObject();
    const char *text = git_param_text(call, "file"), *encoded = git_param_text(call, "file_base64");
    cJSON *list = cJSON_AddArrayToObject(lists, encoded ? "file_base64" : "file");
    cJSON *item = cJSON_CreateString(encoded ? encoded : text ? text : "");
    if (!lists || !list || !item || !cJSON_AddItemToArray(list, item)) {
        cJSON_Delete(lists);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    one.params = lists;
    int rc = git_param_paths(&one, "file", out, err);
    cJSON_Delete(lists);
    return rc;
}

static int find_blob(struct git_call *call, git_commit *commit, const char *path, git_blob **out, struct err *err)
{
    git_tree *tree;
    git_tree_entry *entry = NULL;
    int rc = git_commit_tree(&tree, commit);
    if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    rc = git_tree_entry_bypath(&entry, tree, path);
    git_tree_free(tree);
    if (rc == GIT_ENOTFOUND || path[0] == '\0')
        err_set(err, path[0] ? ERR_FILE_NOT_FOUND : ERR_IS_A_DIRECTORY, "no such file in that commit: %s", path);
    else if (rc != 0)
        return git_fail(err, rc, "cannot read a tree");
    else if (git_tree_entry_type(entry) != GIT_OBJECT_BLOB)
        err_set(err, git_tree_entry_type(entry) == GIT_OBJECT_TREE ? ERR_IS_A_DIRECTORY : ERR_NOT_A_REGULAR_FILE,
                "not a file in that commit: %s", path);
    else if ((rc = git_blob_lookup(out, call->repo, git_tree_entry_id(entry))) != 0)
        git_fail(err, rc, "cannot read the file");
    else if (git_blob_is_binary(*out)) {
        git_blob_free(*out);
        err_set(err, ERR_BINARY_FILE, "the file is binary: %s", path);
    } else {
        git_tree_entry_free(entry);
        return 0;
    }
    git_tree_entry_free(entry);
    return err_field(err, "file");
}

static int choose_lines(const struct git_call *call, const git_blob *blob, struct lines *out, struct err *err)
{
    out->text = git_blob_rawcontent(blob);
    out->len = (size_t)git_blob_rawsize(blob);
    size_t count = count_lines(out->text, out->len);
    int64_t first = git_param_int(call, "start_line", 1), last = git_param_int(call, "end_line", (int64_t)count);
    if (first > (int64_t)count && !(count == 0 && first == 1)) {
        err_set(err, ERR_INVALID_REQUEST, "the file has %zu lines", count);
        return err_field(err, "start_line");
    }
    if (last < first && count > 0) {
        err_set(err, ERR_INVALID_REQUEST, "end_line is before start_line");
        return err_field(err, "end_line");
    }
    out->first = (size_t)first;
    out->last = last < (int64_t)count ? (size_t)last : count;
    return 0;
}

struct writer {
    struct json_out *out;
    const char *at, *end;
    bool truncated, lossy;
};

static void write_line(struct writer *writer, size_t number, const git_commit *commit)
{
    const char *newline = memchr(writer->at, '\n', (size_t)(writer->end - writer->at));
    size_t len = (size_t)((newline ? newline : writer->end) - writer->at), shown = len;
    if (shown > LINE_BYTES_MAX) {
        shown = utf8_whole_len(writer->at, LINE_BYTES_MAX);
        writer->truncated = true;
    }
    const git_signature *author = git_commit_author(commit);
    json_out_open(writer->out, NULL, '{');
    json_out_int(writer->out, "line", (int64_t)number);
    git_out_oid(writer->out, "sha", git_commit_id(commit));
    json_out_text(writer->out, "author", author ? author->name : NULL);
    if (author)
        json_out_time(writer->out, "time", author->when.time);
    else
        json_out_null(writer->out, "time");
    json_out_bytes(writer->out, "text", writer->at, shown);
    json_out_close(writer->out, '}');
    writer->lossy = writer->lossy || !utf8_valid(writer->at, shown);
    writer->at += len + (newline ? 1 : 0);
}

static void write_lines(struct git_call *call, const struct git_origins *origins, const struct lines *lines)
{
    struct writer writer = {.out = &call->result, .at = lines->text, .end = lines->text + lines->len};
    for (size_t number = 1; number < lines->first; number++)
        writer.at = (const char *)memchr(writer.at, '\n', (size_t)(writer.end - writer.at)) + 1;
    json_out_open(writer.out, "lines", '[');
    for (size_t i = 0; i < origins->count; i++) {
        if (call->result.buf->len > GIT_ANSWER_FULL_BYTES) {
            writer.truncated = true;
            break;
        }
        write_line(&writer, origins->first + i, origins->commits[origins->of_line[i]]);
    }
    json_out_close(writer.out, ']');
    json_out_bool(writer.out, "truncated", writer.truncated);
    if (writer.lossy)
        json_out_bool(writer.out, "lossy", true);
}

static int blame_blob(struct git_call *call, git_commit *commit, git_blob *blob, const char *path, struct err *err)
{
    struct lines lines = {0};
    struct git_origins origins;
    if (choose_lines(call, blob, &lines, err) != 0)
        return -1;
    size_t count = lines.last >= lines.first ? lines.last - lines.first + 1 : 0;
    if (git_origins_find(call, commit, path, blob, lines.first, count, &origins, err) != 0)
        return -1;
    write_lines(call, &origins, &lines);
    git_origins_free(&origins);
    return 0;
}

int git_blame_operation(struct git_call *call, struct err *err)
{
    struct git_paths paths;
    git_commit *commit = NULL;
    git_blob *blob;
    if (file_param(call, &paths, err) != 0)
        return -1;
    int rc = git_resolve_commit(call, "ref", git_param_text(call, "ref"), &commit, err);
    if (rc == 0 && (rc = find_blob(call, commit, paths.items[0], &blob, err)) == 0) {
        rc = blame_blob(call, commit, blob, paths.items[0], err);
        git_blob_free(blob);
    }
    git_commit_free(commit);
    git_paths_free(&paths);
    return rc;
}
