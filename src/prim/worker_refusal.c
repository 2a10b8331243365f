/* Reads refusals of workers; see the header. Called by the contexts and bind_code. */
#include "prim/worker_refusal.h"

#include "base/json.h"
#include "base/json_member.h"

#include <stdio.h>

struct text_out {
    char *text;
    size_t size;
};

static int on_string(void *ctx, const char *text, size_t len, struct err *err)
{
    const struct text_out *out = ctx;
    (void)err;
    snprintf(out->text, out->size, "%.*s", (int)(len < out->size ? len : out->size), text);
    return 0;
}

/* "" where the member is no string. */
static void read_text(struct json_span object, const char *name, char *text, size_t size)
{
    static const struct json_events events = {.on_string = on_string};
    struct text_out out = {text, size};
    struct err err;
    struct json_span span = json_member(object.text, object.len, name);
    text[0] = '\0';
    if (json_span_kind(span) == '"' && json_scan(span.text, span.len, &events, &out, &err) != 0)
        text[0] = '\0';
}

void worker_refusal_read(const char *answer, size_t len, struct err *err)
{
    char code[32], field[32], message[200];
    struct json_span error = {answer, len}, data = json_member(answer, len, "data");
    read_text(data, "code", code, sizeof(code));
    read_text(data, "field", field, sizeof(field));
    read_text(error, "message", message, sizeof(message));
    enum err_code found = err_code_find(code);
    err_set(err, found != ERR_NONE ? found : ERR_INTERNAL, "%s",
            message[0] != '\0' ? message : "a worker refused a call");
    err_field(err, field);
}
