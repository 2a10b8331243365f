/* Messages of workers, cut out of their lines; see the header. A worker runs what clients send, which may write here
 * whatever it likes: so the whole line is checked by json_scan first. */
#include "prim/worker_line.h"

#include "base/json.h"
#include "base/json_member.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static bool parse_id(const struct json_span *span, uint64_t *out)
{
    uint64_t id = 0;
    if (span->text == NULL || span->len > 19)
        return false;
    for (size_t i = 0; i < span->len; i++) {
        if (span->text[i] < '0' || span->text[i] > '9')
            return false;
        id = id * 10 + (uint64_t)(span->text[i] - '0');
    }
    *out = id;
    return id > 0 && id <= INT64_MAX;
}

static int refuse(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID_JSON, "%s", what);
}

static int parse_notice(const struct json_span *method, const struct json_span *params, struct worker_line *out,
                        struct err *err)
{
    struct json_span id = {0};
    const struct json_wanted id_wanted = {"id", &id};
    if (json_span_kind(*method) != '"' || memchr(method->text, '\\', method->len) != NULL)
        return refuse(err, "a method that is no plain name");
    if (!json_members(params->text, params->len, &id_wanted, 1) || !parse_id(&id, &out->id))
        return refuse(err, "a notification without the id of a call in its params");
    out->kind = WORKER_LINE_NOTICE;
    out->method = method->text + 1;
    out->method_len = method->len - 2;
    out->body = params->text;
    out->body_len = params->len;
    return 0;
}

int worker_line_parse(const char *line, size_t len, struct worker_line *out, struct err *err)
{
    static const struct json_events no_events;
    struct json_span id = {0}, method = {0}, params = {0}, result = {0}, error = {0};
    const struct json_wanted wanted[] = {
        {"id", &id}, {"method", &method}, {"params", &params}, {"result", &result}, {"error", &error}};
    if (json_scan(line, len, &no_events, NULL, err) != 0)
        return -1;
    if (!json_members(line, len, wanted, sizeof(wanted) / sizeof(wanted[0])))
        return refuse(err, "a member that is there twice");
    *out = (struct worker_line){0};
    if (method.text != NULL) {
        if (id.text != NULL || result.text != NULL || error.text != NULL)
            return refuse(err, "a request, which no worker may make");
        return parse_notice(&method, &params, out, err);
    }
    if (!parse_id(&id, &out->id))
        return refuse(err, "an answer without the id of a call");
    if ((result.text == NULL) == (error.text == NULL) || (error.text != NULL && json_span_kind(error) != '{'))
        return refuse(err, "an answer that has not either a result or an error");
    out->kind = error.text != NULL ? WORKER_LINE_ERROR : WORKER_LINE_RESULT;
    out->body = error.text != NULL ? error.text : result.text;
    out->body_len = error.text != NULL ? error.len : result.len;
    return 0;
}

int worker_line_call(struct buf *out, uint64_t id, const char *method, const char *params, size_t params_len)
{
    size_t before = out->len;
    if (buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64 ",\"method\":\"%s\",\"params\":", id, method) != 0)
        return -1;
    size_t params_at = out->len;
    if (buf_append(out, params, params_len) != 0 || buf_append_text(out, "}\n") != 0) {
        out->len = before;
        return -1;
    }
    char *at = out->data + params_at, *end = at + params_len;
    for (char *feed = at; (feed = memchr(feed, '\n', (size_t)(end - feed))) != NULL;)
        *feed = ' ';
    return 0;
}

int worker_line_cancel(struct buf *out, uint64_t id)
{
    return buf_printf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{\"id\":%" PRIu64 "}}\n", id);
}
