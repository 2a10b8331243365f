/* Finds where values end, as words of a shell or strings of JSON; called by mask. */
#include "prim/mask_value.h"

#include "prim/mask_chars.h"

enum { NESTED_MAX = 64 };

size_t mask_value_skip_quote(const char *text, size_t len, size_t at)
{
    size_t quote = at < len && text[at] == '\\' ? at + 1 : at;
    return quote < len && is_quote(text[quote]) ? quote + 1 : at;
}

/* Within \"...\" a backslash is \\, and so \\\" is no end. */
static size_t escaped_string_end(const char *text, size_t len, size_t at, char quote)
{
    while (at + 1 < len) {
        bool escape = text[at] == '\\' && text[at + 1] == '\\';
        if (text[at] == '\\' && text[at + 1] == quote)
            return at;
        at += escape ? 2 : 1;
        if (escape && at < len)
            at += text[at] == '\\' ? 2 : 1;
    }
    return len;
}

size_t mask_value_string_end(const char *text, size_t len, size_t at)
{
    char quote = text[at - 1];
    if (at > 1 && text[at - 2] == '\\')
        return escaped_string_end(text, len, at, quote);
    while (at < len && text[at] != quote)
        at += text[at] == '\\' ? 2 : 1;
    return at < len ? at : len;
}

/* What closes that which `c` opens, within what `within` closes (0: nothing) and behind `before`; 0: it opens nothing.
 */
static char closer_of(char c, char within, char before)
{
    if (within == '\'' || (within == '"' && c != '`' && before != '$'))
        return '\0';
    switch (c) {
    case '(':
        return ')';
    case '[':
        return ']';
    case '{':
        return '}';
    case '`':
        return '`';
    default:
        return is_quote(c) && within != '"' ? c : '\0';
    }
}

size_t mask_value_enclosed_end(const char *text, size_t len, size_t at)
{
    char closers[NESTED_MAX];
    size_t depth = 0;
    /* Of $'...' a backslash is the escape, of '...' it is none. */
    bool escapes = at > 0 && text[at - 1] == '$';
    do {
        char c = text[at], within = depth > 0 ? closers[depth - 1] : '\0';
        char closer = c != within ? closer_of(c, within, at > 0 ? text[at - 1] : '\0') : '\0';
        if (closer != '\0' && depth == NESTED_MAX)
            return len;
        if (closer != '\0')
            closers[depth++] = closer;
        else if (c == within)
            depth--;
        at += c == '\\' && (within != '\'' || escapes) ? 2 : 1;
    } while (depth > 0 && at < len);
    return at < len ? at : len;
}

/* Past \"...\" at `at`, as in a quoted text within a quoted text. 0: it is not so. */
static size_t escaped_quoted_end(const struct mask_value *value, size_t at)
{
    size_t within = mask_value_skip_quote(value->text, value->len, at);
    if (within != at + 2)
        return 0;
    size_t end = mask_value_string_end(value->text, value->len, within);
    return end < value->len ? end + 2 : 0;
}

static bool ends_word(const struct mask_value *value, char c)
{
    return is_blank(c) || c == ';' || c == '&' || c == '|' || (c == value->quote && c != '\0') ||
           (c == '`' && value->backtick);
}

size_t mask_value_word_end(const struct mask_value *value, size_t at)
{
    const char *text = value->text;
    size_t end = escaped_quoted_end(value, at);
    if (end != 0)
        return end;
    while (at < value->len && !ends_word(value, text[at])) {
        char c = text[at];
        if (is_quote(c) || c == '`' || c == '(' || (c == '{' && text[at - 1] == '$'))
            at = mask_value_enclosed_end(text, value->len, at);
        else
            at += c == '\\' ? 2 : 1;
    }
    return at < value->len ? at : value->len;
}
