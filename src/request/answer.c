/* Completes every answer on its way out, called by exchange_answer only. */
#include "request/answer.h"

#include "base/log.h"
#include "request/conditional.h"
#include "request/problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char EXPOSED_HEADERS[] = "X-Request-Id, ETag, Last-Modified, Content-Disposition, Content-Range, "
                                      "Accept-Ranges, Retry-After, WWW-Authenticate, Allow";

int answer_text(struct response *response, int status, const char *content_type, const char *text)
{
    response_init(response);
    response->kind = RESPONSE_BYTES;
    response->status = status;
    buf_init(&response->bytes, RESPONSE_BODY_MAX_BYTES);
    if ((text && buf_append_text(&response->bytes, text) < 0) ||
        (content_type && response_header_fixed(response, "Content-Type", content_type) < 0)) {
        response_deinit(response);
        response_init(response);
        response->status = 500;
        return -1;
    }
    return 0;
}

/* All values of that header as one list; NULL where there is none. */
static const char *joined_header(struct request *request, const char *name)
{
    const char *joined = NULL;

    for (size_t i = 0; i < request->header_count; i++) {
        const struct header *header = &request->headers[i];
        size_t len;
        char *longer;

        if (!header_is(header->name, name))
            continue;
        if (!joined) {
            joined = header->value;
            continue;
        }
        len = strlen(joined) + strlen(header->value) + 2;
        longer = arena_alloc(&request->arena, len + 1);
        if (!longer)
            return joined;
        snprintf(longer, len + 1, "%s, %s", joined, header->value);
        joined = longer;
    }
    return joined;
}

static void drop_file(struct response *response)
{
    if (response->file.fd >= 0)
        close(response->file.fd);
    response->file.fd = -1;
    response->kind = RESPONSE_BYTES;
}

/* A problem instead of the file; keeps nothing of what the handler said about the file but its ETag. */
static int file_problem(struct exchange *exchange, struct response *response, int status, enum err_code code,
                        const char *detail)
{
    char etag[sizeof(response->file.etag)];
    struct err err;

    memcpy(etag, response->file.etag, sizeof(etag));
    response_deinit(response);
    err_set(&err, code, "%s", detail);
    if (problem_response(response, status, &err, NULL, exchange->request.id) < 0)
        return -1;
    return response_header(response, "ETag", etag);
}

static int complete_file(struct exchange *exchange, struct response *response)
{
    struct response_file *file = &response->file;
    struct request *request = &exchange->request;
    struct conditional_headers headers = {
        .if_match = joined_header(request, "If-Match"),
        .if_none_match = joined_header(request, "If-None-Match"),
        .if_modified_since = request_header(request, "If-Modified-Since"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
        .if_range = request_header(request, "If-Range"),
        .range = request->head ? NULL : request_header(request, "Range"), /* ranges are defined for GET alone */
    };
    char date[CONDITIONAL_DATE_LEN + 1], range[80];
    uint64_t size = file->size;

    conditional_date_format(date, file->modified_at.tv_sec);
    file->first = 0;
    file->length = size;
    if (file->etag[0] == '\0')
        return 0;
    if (response_header(response, "ETag", file->etag) < 0 || response_header(response, "Last-Modified", date) < 0 ||
        response_header_fixed(response, "Accept-Ranges", "bytes") < 0)
        return -1;
    if (response->status != 200)
        return 0;
    switch (conditional_check(&headers, file->etag, file->modified_at.tv_sec, size, &file->first, &file->length)) {
    case CONDITIONAL_WHOLE:
        return 0;
    case CONDITIONAL_PART:
        response->status = 206;
        snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, file->first,
                 file->first + file->length - 1, size);
        return response_header(response, "Content-Range", range);
    case CONDITIONAL_NOT_MODIFIED:
        response->status = 304;
        drop_file(response);
        return 0;
    case CONDITIONAL_FAILED:
        return file_problem(exchange, response, 412, ERR_STALE_WRITE,
                            "the file is not the one that the condition names");
    case CONDITIONAL_UNSATISFIABLE:
        break;
    }
    if (file_problem(exchange, response, 0, ERR_RANGE_NOT_SATISFIABLE, "the range begins behind the end of the file") <
        0)
        return -1;
    snprintf(range, sizeof(range), "bytes */%" PRIu64, size);
    return response_header(response, "Content-Range", range);
}

static int add_cors(struct exchange *exchange, struct response *response)
{
    const char *vary = response_header_find(response, "Vary");
    char merged[256];

    if (!exchange->cors_origin)
        return 0;
    snprintf(merged, sizeof(merged), "%s%sOrigin", vary ? vary : "", vary ? ", " : "");
    if (response_header(response, "Access-Control-Allow-Origin", exchange->cors_origin) < 0 ||
        response_header(response, "Vary", merged) < 0)
        return -1;
    return response_header_fixed(response, "Access-Control-Expose-Headers", EXPOSED_HEADERS);
}

static int add_common(struct exchange *exchange, struct response *response)
{
    const char *type = response_header_find(response, "Content-Type");

    if (response_header_fixed(response, "X-Request-Id", exchange->request.id) < 0 ||
        response_header_fixed(response, "X-Content-Type-Options", "nosniff") < 0)
        return -1;
    if (type && (strncmp(type, "application/json", 16) == 0 || strncmp(type, "application/problem+json", 24) == 0) &&
        !response_header_find(response, "Cache-Control") &&
        response_header_fixed(response, "Cache-Control", "no-store") < 0)
        return -1;
    return add_cors(exchange, response);
}

void answer_complete(struct exchange *exchange, struct response *response)
{
    if ((response->kind == RESPONSE_FILE && complete_file(exchange, response) < 0) ||
        add_common(exchange, response) < 0) {
        struct err err;

        log_error("pipeline", "an answer has more headers than it can hold, or memory is out");
        response_deinit(response);
        err_set(&err, ERR_INTERNAL, "the answer could not be made");
        problem_response(response, 0, &err, NULL, exchange->request.id);
    }
}
