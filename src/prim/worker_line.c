/* Messages of workers, cut out of their lines; see the header. A worker runs what clients send, which may write here
 * whatever it likes: so the whole line is checked by json_scan first, and what walks it then can rely on its grammar.
 */
#include "prim/worker_line.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

struct span {
    const char *text; /* NULL: not there */
    size_t len;
};

struct member {
    const char *name;
    struct span *value;
};

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

/* Behind the string whose opening quote is at `at`. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at + 1;
}

/* Behind the value at `at`, which stands inside of an object. */
static const char *skip_value(const char *at)
{
    size_t depth = 0;
    for (;;) {
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (depth > 0) {
            at++;
            continue;
        } else {
            return at + strcspn(at, ",}] \t\n\r");
        }
        if (depth == 0)
            return at;
    }
}

/* Finds the members of the valid object at `at`; -1 where one of them is there twice. A name that is written with
 * escapes is another one. */
static int find_members(const char *at, const struct member *members, size_t count)
{
    at = skip_space(at + 1);
    while (*at != '}') {
        const char *name = at + 1, *name_end = skip_string(at);
        size_t name_len = (size_t)(name_end - 1 - name);
        const char *value = skip_space(skip_space(name_end) + 1), *value_end = skip_value(value);
        for (size_t i = 0; i < count; i++) {
            if (strlen(members[i].name) != name_len || memcmp(members[i].name, name, name_len) != 0)
                continue;
            if (members[i].value->text != NULL)
                return -1;
            *members[i].value = (struct span){value, (size_t)(value_end - value)};
        }
        at = skip_space(value_end);
        if (*at == ',')
            at = skip_space(at + 1);
    }
    return 0;
}

static bool is_object(const struct span *span)
{
    return span->text != NULL && span->text[0] == '{';
}

static bool parse_id(const struct span *span, uint64_t *out)
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

static int parse_notice(const struct span *method, const struct span *params, struct worker_line *out, struct err *err)
{
    struct span id = {0};
    const struct member members[] = {{"id", &id}};
    if (method->text[0] != '"' || memchr(method->text, '\\', method->len) != NULL)
        return refuse(err, "a method that is no plain name");
    if (!is_object(params) || find_members(params->text, members, 1) != 0 || !parse_id(&id, &out->id))
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
    struct span id = {0}, method = {0}, params = {0}, result = {0}, error = {0};
    const struct member members[] = {
        {"id", &id}, {"method", &method}, {"params", &params}, {"result", &result}, {"error", &error}};
    if (json_scan(line, len, &no_events, NULL, err) != 0)
        return -1;
    line = skip_space(line);
    if (*line != '{')
        return refuse(err, "no object");
    if (find_members(line, members, sizeof(members) / sizeof(members[0])) != 0)
        return refuse(err, "a member that is there twice");
    *out = (struct worker_line){0};
    if (method.text != NULL) {
        if (id.text != NULL || result.text != NULL || error.text != NULL)
            return refuse(err, "a request, which no worker may make");
        return parse_notice(&method, &params, out, err);
    }
    if (!parse_id(&id, &out->id))
        return refuse(err, "an answer without the id of a call");
    if ((result.text == NULL) == (error.text == NULL) || (error.text != NULL && !is_object(&error)))
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
