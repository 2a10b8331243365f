/* What a capture says, as text for answers: plain memory work that may be done on the pool; bind_run uses it. */
#ifndef ABX_PRIM_CAPTURE_TEXT_H
#define ABX_PRIM_CAPTURE_TEXT_H

#include "base/buf.h"
#include "prim/capture.h"

#include <stdbool.h>

struct capture_text {
    bool base64;  /* head and tail byte for byte; else text, with a marker where the middle was dropped */
    bool json;    /* a JSON string with its quotes, else the bare text */
    bool running; /* more may come: a character that is cut at the end is left out */
};

/* Appends it. In text, each ill-formed part becomes U+FFFD, and *out_lossy true (else it is left alone); characters
 * that the dropped middle cut go with it, and are counted in the marker. -1 when the buffer is full. */
int capture_text_append(struct buf *out, const struct capture_view *view, const struct capture_text *how,
                        bool *out_lossy) ABX_MUST_USE;

#endif
