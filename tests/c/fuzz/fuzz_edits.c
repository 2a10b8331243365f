/* Edits must do what a naive replacement does, byte by byte. The input: records of old, new and all, then the text. */
#include "prim/edits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EDITS_MAX = 8, TEXT_MAX_BYTES = 4096 };

struct text {
    char bytes[TEXT_MAX_BYTES];
    size_t len;
};

static bool starts_with(const struct text *text, size_t at, const struct edit *edit)
{
    for (size_t i = 0; i < edit->old_len; i++) {
        if (at + i >= text->len || text->bytes[at + i] != edit->old[i])
            return false;
    }
    return true;
}

static void add(struct text *text, char byte, bool *too_large)
{
    if (text->len == sizeof(text->bytes))
        *too_large = true;
    else
        text->bytes[text->len++] = byte;
}

static enum err_code naive_edit(struct text *text, const struct edit *edit)
{
    struct text out = {.len = 0};
    size_t starts = 0, at = 0;
    bool too_large = false;
    if (edit->old_len == 0)
        return ERR_INVALID_REQUEST;
    for (size_t i = 0; i < text->len; i++)
        starts += starts_with(text, i, edit);
    if (starts == 0 || (starts > 1 && !edit->all))
        return ERR_AMBIGUOUS_EDIT;
    while (at < text->len) {
        bool here = starts_with(text, at, edit);
        for (size_t i = 0; here && i < edit->new_len; i++)
            add(&out, edit->new[i], &too_large);
        if (!here)
            add(&out, text->bytes[at], &too_large);
        at += here ? edit->old_len : 1;
    }
    if (too_large)
        return ERR_PAYLOAD_TOO_LARGE;
    *text = out;
    return ERR_NONE;
}

/* A byte says how many follow, at most 15. */
static const char *take(const uint8_t **data, size_t *size, size_t *out_len)
{
    size_t len = *size > 0 ? **data & 15 : 0;
    *data += *size > 0;
    *size -= *size > 0;
    len = len < *size ? len : *size;
    const char *bytes = (const char *)*data;
    *data += len;
    *size -= len;
    *out_len = len;
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct edit edits[EDITS_MAX];
    size_t count = size > 0 ? data[0] % (EDITS_MAX + 1) : 0;
    data += size > 0;
    size -= size > 0;
    for (size_t i = 0; i < count; i++) {
        edits[i].all = size > 0 && (data[0] & 16) != 0;
        edits[i].old = take(&data, &size, &edits[i].old_len);
        edits[i].new = take(&data, &size, &edits[i].new_len);
    }
    size = size < TEXT_MAX_BYTES ? size : TEXT_MAX_BYTES;

    static struct text expected;
    enum err_code code = ERR_NONE;
    expected.len = size;
    if (size > 0)
        memcpy(expected.bytes, data, size);
    for (size_t i = 0; i < count && code == ERR_NONE; i++)
        code = naive_edit(&expected, &edits[i]);

    struct buf text;
    struct err err;
    buf_init(&text, TEXT_MAX_BYTES);
    if (buf_append(&text, data, size) != 0)
        abort();
    if (edits_apply(&text, edits, count, NULL, &err) != 0) {
        if (err.code != code)
            abort();
    } else if (code != ERR_NONE || text.len != expected.len ||
               (text.len > 0 && memcmp(text.data, expected.bytes, text.len) != 0)) {
        abort();
    }
    buf_deinit(&text);
    return 0;
}
