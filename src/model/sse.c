/* Writes server-sent events into a buffer; the stream pump and `out:event` send them. */
#include "model/sse.h"

#include <stdbool.h>
#include <string.h>

static bool one_line(const char *text, size_t len)
{
    return !memchr(text, '\n', len) && !memchr(text, '\r', len);
}

static int append_field(struct buf *out, const char *name, const char *value, size_t len)
{
    return buf_append_text(out, name) || buf_append(out, value, len) || buf_append(out, "\n", 1);
}

int sse_append(struct buf *out, const char *event, const char *id, const char *json, size_t json_len)
{
    size_t len_before = out->len, id_len = id ? strlen(id) : 0, event_len = strlen(event);
    if (!json) {
        json = "{}";
        json_len = 2;
    }
    if (!one_line(event, event_len) || (id && !one_line(id, id_len)) || !one_line(json, json_len))
        return -1;
    if ((id && append_field(out, "id: ", id, id_len)) || append_field(out, "event: ", event, event_len) ||
        append_field(out, "data: ", json, json_len) || buf_append(out, "\n", 1)) {
        out->len = len_before;
        return -1;
    }
    return 0;
}

int sse_append_comment(struct buf *out)
{
    return buf_append_text(out, ": still here\n\n");
}
