/* Multipart bodies: the parts must not depend on how the bytes are cut into pieces. */
#include "base/buf.h"
#include "base/multipart.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int on_part(void *ctx, const struct multipart_part *part, struct err *err)
{
    (void)err;
    return buf_printf(ctx, "<%s|%s|%s>", part->name, part->filename ? part->filename : "",
                      part->content_type ? part->content_type : "");
}

static int on_data(void *ctx, const char *bytes, size_t len, struct err *err)
{
    (void)err;
    if (len == 0)
        abort();
    return buf_append(ctx, bytes, len);
}

static int on_part_end(void *ctx, struct err *err)
{
    (void)err;
    return buf_append_text(ctx, "</>");
}

static struct buf parse_by(const char *body, size_t len, size_t step)
{
    static const struct multipart_events events = {on_part, on_data, on_part_end};
    struct err err = {0};
    struct buf seen;
    buf_init(&seen, 64 * 1024 * 1024);
    struct multipart *parser = multipart_new("multipart/form-data; boundary=B", &events, &seen, &err);
    int rc = 0;
    for (size_t at = 0; at < len && rc == 0; at += step)
        rc = multipart_feed(parser, body + at, len - at < step ? len - at : step, &err);
    if (rc == 0)
        rc = multipart_finish(parser, &err);
    if (rc < 0 && (buf_append_text(&seen, err.text) < 0 || err.code != ERR_INVALID_REQUEST))
        abort();
    multipart_free(parser);
    return seen;
}

/* The first byte chooses the size of the pieces, the rest is the body; and once more it is taken for a Content-Type. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *body = (const char *)data + 1;
    struct buf whole = parse_by(body, size - 1, size), pieces = parse_by(body, size - 1, (size_t)data[0] % 16 + 1);
    if (whole.len != pieces.len || (whole.len > 0 && memcmp(whole.data, pieces.data, whole.len) != 0))
        abort();
    buf_deinit(&whole);
    buf_deinit(&pieces);

    static const struct multipart_events none = {on_part, on_data, on_part_end};
    char *header = strndup(body, size - 1);
    struct err err;
    multipart_free(multipart_new(header, &none, NULL, &err));
    free(header);
    return 0;
}
