/* Command lines, kept and shown; called by the process table and process_info. */
#include "prim/command_line.h"

#include "base/json.h"
#include "base/utf8.h"
#include "prim/mask.h"

#include <stdlib.h>
#include <string.h>

static int keep(struct command_line *out, const char *bytes, size_t len)
{
    out->truncated |= len > COMMAND_LINE_MAX_BYTES;
    out->len = len > COMMAND_LINE_MAX_BYTES ? COMMAND_LINE_MAX_BYTES : len;
    out->bytes = malloc(out->len + 1);
    if (out->bytes == NULL)
        return -1;
    memcpy(out->bytes, bytes, out->len);
    return 0;
}

int command_line_keep_text(struct command_line *out, const char *text, size_t len)
{
    *out = (struct command_line){.form = COMMAND_LINE_TEXT};
    return keep(out, text, len);
}

int command_line_keep_argv(struct command_line *out, char *const *argv)
{
    char words[COMMAND_LINE_MAX_BYTES + 1]; /* one more tells that it was longer */
    size_t len = 0;
    *out = (struct command_line){.form = COMMAND_LINE_ARGV};
    for (; *argv != NULL && len < sizeof(words); argv++) {
        size_t size = strlen(*argv) + 1, room = sizeof(words) - len;
        memcpy(words + len, *argv, size < room ? size : room);
        len += size < room ? size : room;
    }
    return keep(out, words, len);
}

void command_line_deinit(struct command_line *line)
{
    free(line->bytes);
    *line = (struct command_line){0};
}

/* A password in a URL ends at its '@'. Where the cut took that away, one is put there while the text is masked. */
static int mask_cut(struct buf *scratch, const char *text, size_t len, enum command_line_form form,
                    bool *secret_follows)
{
    char ended[COMMAND_LINE_MAX_BYTES + 1];
    size_t start = scratch->len;
    len = utf8_whole_len(text, len);
    memcpy(ended, text, len);
    ended[len] = '@';
    int failed = form == COMMAND_LINE_TEXT ? mask_text(scratch, ended, len + 1)
                                           : mask_word(scratch, ended, len + 1, secret_follows);
    if (failed == 0 && scratch->len > start && scratch->data[scratch->len - 1] == '@')
        scratch->len--;
    return failed;
}

/* Words come out each ended by a NUL; a NUL inside of them there is none. */
static int mask_argv(struct buf *scratch, const struct command_line *line)
{
    const char *at = line->bytes, *end = line->bytes + line->len;
    bool secret_follows = false;
    while (at < end) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        const char *word_end = nul != NULL ? nul : end;
        int failed = nul == NULL && line->truncated
                         ? mask_cut(scratch, at, (size_t)(end - at), line->form, &secret_follows)
                         : mask_word(scratch, at, (size_t)(word_end - at), &secret_follows);
        if (failed != 0 || buf_append_few(scratch, "", 1) != 0)
            return -1;
        at = word_end + 1;
    }
    return 0;
}

static int mask_line(struct buf *scratch, const struct command_line *line)
{
    buf_reset(scratch);
    switch (line->form) {
    case COMMAND_LINE_ARGV:
        return mask_argv(scratch, line);
    case COMMAND_LINE_TEXT:
        return line->truncated ? mask_cut(scratch, line->bytes, line->len, line->form, NULL)
                               : mask_text(scratch, line->bytes, line->len);
    default:
        return buf_append(scratch, line->bytes, line->len);
    }
}

static int put(struct buf *out, const char *text)
{
    return buf_append_few(out, text, strlen(text));
}

/* Words with what ends each: `before` and `after` around it, `between` two of them. */
static int write_words(struct buf *out, const char *bytes, size_t len, const char *between, const char *quote)
{
    for (size_t at = 0; at < len;) {
        size_t word_len = strlen(bytes + at);
        if ((at > 0 && put(out, between) != 0) || put(out, quote) != 0 ||
            json_write_escaped(out, bytes + at, word_len) != 0 || put(out, quote) != 0)
            return -1;
        at += word_len + 1;
    }
    return 0;
}

/* Without the empty words at the end that are left over where a program has written a title over its arguments. */
static size_t shown_len(const char *bytes, size_t len)
{
    while (len > 1 && bytes[len - 1] == '\0' && bytes[len - 2] == '\0')
        len--;
    return len;
}

int command_line_write(struct buf *out, struct buf *scratch, const struct command_line *line)
{
    if (mask_line(scratch, line) != 0 || put(out, "\"command\":\"") != 0)
        return -1;
    const char *bytes = scratch->len > 0 ? scratch->data : "";
    bool words = line->form == COMMAND_LINE_ARGV;
    if (words ? write_words(out, bytes, shown_len(bytes, scratch->len), " ", "") != 0
              : json_write_escaped(out, bytes, scratch->len) != 0)
        return -1;
    if (put(out, line->truncated ? "\",\"command_truncated\":true,\"argv\":" : "\",\"argv\":") != 0)
        return -1;
    if (line->form == COMMAND_LINE_TEXT)
        return put(out, "null");
    if (put(out, "[") != 0 || (words && write_words(out, bytes, scratch->len, ",", "\"") != 0))
        return -1;
    return put(out, "]");
}
