/* Turns captured output into what an answer carries; called by bind_run, on the loop for little and on the pool for
 * much. */
#include "prim/capture_text.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef int (*append_fn)(struct buf *out, const char *text, size_t len, bool *out_lossy);

static int append_escaped(struct buf *out, const char *text, size_t len, bool *out_lossy)
{
    if (!utf8_valid(text, len))
        *out_lossy = true;
    return json_write_escaped(out, text, len);
}

/* The head's length need not be a multiple of three: the group across the border is encoded for itself. */
static int append_base64(struct buf *out, const struct capture_view *view)
{
    char across[3];
    size_t begun = view->head_len % 3, rest = begun > 0 ? 3 - begun : 0;
    if (rest > view->tail_len)
        rest = view->tail_len;
    memcpy(across, view->head + view->head_len - begun, begun);
    memcpy(across + begun, view->tail, rest);
    int failed = base64_encode(out, view->head, view->head_len - begun);
    failed |= base64_encode(out, across, begun + rest);
    return failed | base64_encode(out, view->tail + rest, view->tail_len - rest);
}

static int append_text(struct buf *out, const struct capture_view *view, bool running, append_fn append,
                       bool *out_lossy)
{
    uint64_t dropped = view->total_bytes - view->head_len - view->tail_len;
    const char *tail = view->tail;
    size_t head_len = utf8_whole_len(view->head, view->head_len);
    size_t skipped = utf8_skip_len(tail, view->tail_len);
    size_t tail_len = view->tail_len - skipped;
    if (view->tail_len == 0 && dropped == 0 && !running)
        head_len = view->head_len;
    else if (running && tail_len > 0)
        tail_len = utf8_whole_len(tail + skipped, tail_len); /* the rest of a character may still come */
    size_t begun = view->head_len - head_len;
    int failed = append(out, view->head, head_len, out_lossy);
    if (dropped > 0) {
        char marker[64];
        int len = snprintf(marker, sizeof(marker), "\n[… %" PRIu64 " bytes dropped …]\n", dropped + begun + skipped);
        failed |= append(out, marker, (size_t)len, out_lossy);
    } else if (view->tail_len > 0) { /* the character that lies across the border */
        char across[8];
        memcpy(across, view->head + head_len, begun);
        memcpy(across + begun, tail, skipped);
        failed |= append(out, across, begun + skipped, out_lossy);
    }
    return failed | append(out, tail + skipped, tail_len, out_lossy);
}

int capture_text_append(struct buf *out, const struct capture_view *view, const struct capture_text *how,
                        bool *out_lossy)
{
    struct capture_view whole = *view;
    /* Empty pieces have no memory of their own, and memcpy wants some. */
    whole.head = whole.head_len > 0 ? whole.head : "";
    whole.tail = whole.tail_len > 0 ? whole.tail : "";
    int failed = how->json ? buf_append(out, "\"", 1) : 0;
    if (how->base64)
        failed |= append_base64(out, &whole);
    else
        failed |= append_text(out, &whole, how->running, how->json ? append_escaped : utf8_append_scrubbed, out_lossy);
    if (how->json)
        failed |= buf_append(out, "\"", 1);
    return failed != 0 ? -1 : 0;
}
