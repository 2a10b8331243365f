/* Makes problem replies for the pipeline, and for streams that fail after their first event. */
#include "request/problem.h"

#include "base/json.h"

#include <string.h>

enum { PROBLEM_MAX_BYTES = 64 * 1024 };

static const struct {
    int status;
    const char *title;
} titles[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {507, "Insufficient Storage"},
};

const char *problem_title(int status)
{
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (titles[i].status == status)
            return titles[i].title;
    }
    return "Error";
}

static int write_member(struct buf *out, const char *name, const char *text)
{
    if (buf_printf(out, ",\"%s\":", name) < 0)
        return -1;
    return json_write_string(out, text, strlen(text));
}

static int write_errors(struct buf *out, const struct field_errors *errors)
{
    if (buf_append_text(out, ",\"errors\":[") < 0)
        return -1;
    for (size_t i = 0; i < errors->count; i++) {
        const struct field_error *fault = &errors->list[i];

        if (buf_append_text(out, i ? ",{\"field\":" : "{\"field\":") < 0 ||
            json_write_string(out, fault->field, strlen(fault->field)) < 0 ||
            write_member(out, "problem", fault->problem) < 0 || buf_append_text(out, "}") < 0)
            return -1;
    }
    return buf_append_text(out, "]");
}

int problem_write(struct buf *out, int status, const struct err *err, const struct field_errors *errors,
                  const char *request_id)
{
    if (status == 0)
        status = err_code_status(err->code);
    if (buf_printf(out, "{\"status\":%d", status) < 0 || write_member(out, "title", problem_title(status)) < 0 ||
        write_member(out, "code", err_code_name(err->code)) < 0 || write_member(out, "detail", err->text) < 0)
        return -1;
    if (err->field[0] && write_member(out, "field", err->field) < 0)
        return -1;
    if (write_member(out, "request_id", request_id) < 0)
        return -1;
    if (errors && errors->count > 0 && write_errors(out, errors) < 0)
        return -1;
    return buf_append_text(out, "}");
}

int problem_response(struct response *response, int status, const struct err *err, const struct field_errors *errors,
                     const char *request_id)
{
    response_init(response);
    response->kind = RESPONSE_BYTES;
    response->status = status ? status : err_code_status(err->code);
    buf_init(&response->bytes, PROBLEM_MAX_BYTES);
    if (problem_write(&response->bytes, status, err, errors, request_id) < 0 ||
        response_header_fixed(response, "Content-Type", "application/problem+json") < 0 ||
        (response->status == 429 && response_header_fixed(response, "Retry-After", "1") < 0)) {
        response_deinit(response);
        response_init(response);
        response->status = 500;
        return -1;
    }
    return 0;
}

int problem_from_fields(struct err *err, const struct field_errors *errors)
{
    const struct field_error *first = &errors->list[0];

    if (errors->count == 1)
        err_set(err, errors->code, "%.90s: %.150s", first->field, first->problem);
    else
        err_set(err, errors->code, "%zu fields are not valid, see errors; the first: %.60s: %.120s", errors->count,
                first->field, first->problem);
    return err_field(err, first->field);
}
