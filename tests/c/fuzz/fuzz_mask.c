/* Any text is masked without a read past it, and keeps its characters whole. */
#include "base/utf8.h"
#include "prim/mask.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 64 * 1024 };

static void need(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void words(const char *text, size_t len)
{
    struct buf out;
    buf_init(&out, 8 * INPUT_MAX);
    bool secret_follows = false;
    for (size_t at = 0; at <= len;) {
        const char *nul = memchr(text + at, '\0', len - at);
        size_t end = nul ? (size_t)(nul - text) : len;
        bool valid = utf8_valid(text + at, end - at);
        buf_reset(&out);
        need(mask_word(&out, text + at, end - at, &secret_follows) == 0, "a word was refused");
        need(!valid || out.len == 0 || utf8_valid(out.data, out.len), "a character of a word was cut");
        at = end + 1;
    }
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (size > INPUT_MAX)
        return 0;
    struct buf once, urls;
    buf_init(&once, 8 * INPUT_MAX);
    buf_init(&urls, 8 * INPUT_MAX);
    mask_is_secret_name(text, size);
    need(mask_text(&once, text, size) == 0, "a text was refused");
    need(mask_urls(&urls, text, size) == 0, "a text was refused");
    if (utf8_valid(text, size))
        need(utf8_valid(once.data, once.len) && utf8_valid(urls.data, urls.len), "a character was cut");
    if (!mask_may_change(text, size))
        need(once.len == size && (size == 0 || memcmp(once.data, text, size) == 0), "what may not change did");
    words(text, size);
    buf_reset(&once);
    need(mask_cut_text(&once, text, size) == 0, "a text was refused");
    need(!utf8_valid(text, size) || utf8_valid(once.data, once.len), "a character was cut");
    buf_deinit(&once);
    buf_deinit(&urls);
    return 0;
}
