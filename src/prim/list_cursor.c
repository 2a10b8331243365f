/* Cursors of listings, for prim/tree_list: base64url (RFC 4648, section 5) of a letter and a relative path. */
#include "prim/list_cursor.h"

#include "base/base64.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { CURSOR_TEXT_MAX = 2 * PATH_MAX };
enum { GO_BELOW = 'b', PAST_BELOW = 'p' };

int list_cursor_write(struct buf *out, const char *path, size_t len, bool past_below)
{
    struct buf bytes;
    size_t start = out->len;
    buf_init(&bytes, len + 1);
    int result = buf_append(&bytes, (char[]){past_below ? PAST_BELOW : GO_BELOW}, 1);
    if (result == 0)
        result = buf_append(&bytes, path, len);
    if (result == 0)
        result = base64_encode(out, bytes.data, bytes.len);
    buf_deinit(&bytes);
    if (result != 0)
        return -1;
    while (out->len > start && out->data[out->len - 1] == '=')
        out->len--;
    for (char *at = out->data + start; at < out->data + out->len; at++)
        *at = (char)(*at == '+' ? '-' : *at == '/' ? '_' : *at);
    return 0;
}

/* To the other alphabet, and padded. */
static int decode(const char *text, size_t len, struct buf *out)
{
    char standard[CURSOR_TEXT_MAX + 4];
    if (len == 0 || len > CURSOR_TEXT_MAX)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '+' || text[i] == '/' || text[i] == '=')
            return -1;
        standard[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    }
    while (len % 4 != 0)
        standard[len++] = '=';
    return base64_decode(out, standard, len);
}

static bool is_relative_path(const char *path, size_t len)
{
    if (len == 0 || memchr(path, '\0', len))
        return false;
    for (const char *name = path;; name++) {
        size_t name_len = strcspn(name, "/");
        if (name_len == 0 || name_len > NAME_MAX)
            return false;
        name += name_len;
        if (*name == '\0')
            return true;
    }
}

int list_cursor_read(const char *text, size_t len, struct list_cursor *out)
{
    struct buf bytes;
    buf_init(&bytes, CURSOR_TEXT_MAX);
    if (decode(text, len, &bytes) != 0 || buf_append(&bytes, "", 1) != 0) {
        buf_deinit(&bytes);
        return -1;
    }
    char letter = bytes.data[0];
    if ((letter != GO_BELOW && letter != PAST_BELOW) || !is_relative_path(bytes.data + 1, bytes.len - 2)) {
        buf_deinit(&bytes);
        return -1;
    }
    out->past_below = letter == PAST_BELOW;
    memmove(bytes.data, bytes.data + 1, bytes.len - 1);
    out->path = bytes.data;
    return 0;
}
