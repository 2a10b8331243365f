/* Makes problem replies for the pipeline, and for streams that fail after their first event. */
#include "request/problem.h"

#include "base/json.h"
#include "prim/mask.h"

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
    {426, "Upgrade Required"},
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

/* The object has begun: out is not empty. */
static int write_member(struct buf *out, const char *name, const char *text)
{
    const char *start = out->data[out->len - 1] == '{' ? "\"" : ",\"";

    if (buf_append_text(out, start) < 0 || buf_append_text(out, name) < 0 || buf_append_text(out, "\":") < 0)
        return -1;
    return json_write_string(out, text, strlen(text));
}

/* For text that may quote what a client sent, cut to fit. */
static int write_masked(struct buf *out, const char *name, const char *text)
{
    size_t len = strlen(text);
    struct buf masked;

    if (!mask_may_change(text, len))
        return write_member(out, name, text);
    buf_init(&masked, PROBLEM_MAX_BYTES);
    int failed =
        mask_cut_text(&masked, text, len) || buf_append(&masked, "", 1) || write_member(out, name, masked.data);
    buf_deinit(&masked);
    return failed ? -1 : 0;
}

static int write_errors(struct buf *out, const struct field_errors *errors)
{
    if (buf_append_text(out, ",\"errors\":[") < 0)
        return -1;
    for (size_t i = 0; i < errors->count; i++) {
        const struct field_error *fault = &errors->list[i];

        if (buf_append_text(out, i ? ",{" : "{") < 0 || write_masked(out, "field", fault->field) < 0 ||
            write_masked(out, "problem", fault->problem) < 0 || buf_append_text(out, "}") < 0)
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
        write_member(out, "code", err_code_name(err->code)) < 0 || write_masked(out, "detail", err->text) < 0)
        return -1;
    if (err->field[0] && write_masked(out, "field", err->field) < 0)
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

/* Masked before the sentence cuts it. */
static const char *shown_field(struct buf *masked, const struct field_error *fault)
{
    buf_init(masked, PROBLEM_MAX_BYTES);
    return mask_cut_text(masked, fault->field, strlen(fault->field)) || buf_append(masked, "", 1) ? "" : masked->data;
}

int problem_from_fields(struct err *err, const struct field_errors *errors)
{
    const struct field_error *first = &errors->list[0];
    struct buf masked;
    const char *field = shown_field(&masked, first);

    if (errors->count == 1)
        err_set(err, errors->code, "%.90s: %.150s", field, first->problem);
    else
        err_set(err, errors->code, "%zu fields are not valid, see errors; the first: %.60s: %.120s", errors->count,
                field, first->problem);
    buf_deinit(&masked);
    return err_field(err, first->field);
}
