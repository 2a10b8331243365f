/* `abxd-helper git BASE_DIR`: serves one call after the other, each an operation on a repository below the base. */
#include "base/base64.h"
#include "base/json.h"
#include "base/loop.h"
#include "helper/git.h"
#include "helper/git_channel.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_MAX_BYTES = GIT_LINE_MAX_BYTES - 64 * 1024,
    EXTRA_MAX_BYTES = 1024 * 1024,
    TIMEOUT_DEFAULT_MS = 60 * 1000,
};

static const struct git_operation *const all_operations[] = {
    git_basic_operations,
    git_history_operations,
    git_refs_operations,
    git_remote_operations,
};

static const struct git_operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof all_operations / sizeof all_operations[0]; i++)
        for (const struct git_operation *operation = all_operations[i]; operation->name; operation++)
            if (strcmp(operation->name, name) == 0)
                return operation;
    return NULL;
}

/* `path_base64`, made real and absolute by the server. */
static int take_path(struct git_call *call, char out[PATH_MAX], struct err *err)
{
    const char *encoded = git_param_text(call, "path_base64");
    struct buf bytes;
    buf_init(&bytes, PATH_MAX);
    int rc = encoded ? base64_decode(&bytes, encoded, strlen(encoded)) : -1;
    if (rc == 0 &&
        (bytes.len == 0 || bytes.data[0] != '/' || bytes.len >= PATH_MAX || memchr(bytes.data, 0, bytes.len)))
        rc = -1;
    if (rc == 0) {
        memcpy(out, bytes.data, bytes.len);
        out[bytes.len] = '\0';
        call->path = out;
    } else {
        err_set(err, ERR_INVALID_PATH, "path_base64 is no absolute path");
    }
    buf_deinit(&bytes);
    return rc;
}

static int run(struct git_call *call, const struct git_operation *operation, struct err *err)
{
    if (!(operation->flags & GIT_OPENS_ITSELF)) {
        if (git_call_open(call, err) != 0)
            return -1;
        if ((operation->flags & GIT_NEEDS_WORKTREE) && git_repository_is_bare(call->repo))
            return err_set(err, ERR_INVALID_REQUEST, "%s needs a working tree, and the repository is bare",
                           operation->name);
    }
    struct git_index_state before;
    git_racy_begin(call, &before);
    int rc = operation->run(call, err);
    git_racy_end(call, &before);
    if (rc != 0)
        return -1;
    return call->result.failed ? err_set(err, ERR_PAYLOAD_TOO_LARGE, "the answer is too large: ask for a part") : 0;
}

static void write_result(struct git_call *call)
{
    json_out_close(&call->result, '}');
    json_out_path(&call->result, "root", call->root);
    if (call->repo)
        git_out_head(&call->result, call->repo);
    else
        json_out_null(&call->result, "head");
    json_out_close(&call->result, '}');
    json_out_close(&call->result, '}');
}

static void write_error(struct json_out *out, int64_t id, const struct err *err, const struct buf *extra)
{
    buf_reset(out->buf);
    *out = (struct json_out){.buf = out->buf};
    json_out_open(out, NULL, '{');
    json_out_text(out, "jsonrpc", "2.0");
    json_out_int(out, "id", id);
    json_out_open(out, "error", '{');
    json_out_int(out, "code", -32000);
    json_out_text(out, "message", err->text);
    json_out_open(out, "data", '{');
    json_out_text(out, "code", err_code_name(err->code));
    if (err->field[0])
        json_out_text(out, "field", err->field);
    if (extra->len > 0 && buf_printf(out->buf, ",%.*s", (int)extra->len, extra->data) != 0)
        out->failed = true;
    json_out_close(out, '}');
    json_out_close(out, '}');
    json_out_close(out, '}');
}

/* One request to one line. */
static void answer(struct git_call *call, const cJSON *request, int64_t id, struct buf *line)
{
    struct err err = {0};
    char path[PATH_MAX];
    const char *method = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "method"));
    const struct git_operation *operation = method ? find_operation(method) : NULL;
    call->result = (struct json_out){.buf = line};
    json_out_open(&call->result, NULL, '{');
    json_out_text(&call->result, "jsonrpc", "2.0");
    json_out_int(&call->result, "id", id);
    json_out_open(&call->result, "result", '{');
    json_out_open(&call->result, "result", '{');
    int rc;
    if (!operation)
        rc = err_set(&err, ERR_OPERATION_NOT_FOUND, "no such operation: %s", method ? method : "");
    else
        rc = take_path(call, path, &err);
    if (rc == 0)
        rc = run(call, operation, &err);
    if (rc == 0) {
        write_result(call);
        if (call->result.failed)
            rc = err_set(&err, ERR_PAYLOAD_TOO_LARGE, "the answer is too large: ask for a part");
    }
    if (rc != 0)
        write_error(&call->result, id, &err, &call->extra);
}

static int serve(const struct confine *confine, const cJSON *request)
{
    struct buf line;
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(request, "id");
    if (!cJSON_IsNumber(id))
        return 0; /* a notification that is not for us */
    git_channel_serve((int64_t)id->valuedouble);
    struct git_call call = {.confine = confine, .params = cJSON_GetObjectItemCaseSensitive(request, "params")};
    call.deadline_ns =
        loop_clock_ns() + (uint64_t)git_param_int(&call, "timeout_ms", TIMEOUT_DEFAULT_MS) * UINT64_C(1000000);
    buf_init(&line, ANSWER_MAX_BYTES);
    buf_init(&call.extra, EXTRA_MAX_BYTES);
    answer(&call, request, (int64_t)id->valuedouble, &line);
    git_repository_free(call.repo);
    line.max = GIT_LINE_MAX_BYTES;
    int rc = git_channel_send(&line);
    buf_deinit(&call.extra);
    buf_deinit(&line);
    return rc;
}

int git_main(const char *base_dir, char *const *guards, size_t guard_count, bool landlock)
{
    struct err err;
    struct confine *confine = confine_new(base_dir, false, &err);
    bool failed = !confine;
    for (size_t i = 0; i < guard_count && !failed; i++)
        failed = confine_guard_adopt(confine, guards[i], &err) != 0;
    if (failed || git_sandbox_enter(confine_base_dir(confine), landlock, &err) != 0 || git_channel_start(&err) != 0) {
        fprintf(stderr, "abxd-helper git: %s\n", err.text);
        return 1;
    }
    int rc = 0;
    while (rc == 0) {
        cJSON *request = git_channel_next();
        rc = serve(confine, request);
        cJSON_Delete(request);
    }
    _exit(0); /* the reader's thread still uses what exit handlers would take away */
}
