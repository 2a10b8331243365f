/* Cuts members out of valid JSON; used for what workers answer. It relies on the grammar and still never leaves the
 * text. */
#include "base/json_member.h"

#include <string.h>

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* Behind the string that begins at `at`. By its quotes, as it may be an image of many MiB. */
static const char *skip_string(const char *at, const char *end)
{
    while (++at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *escape = at;
        while (escape[-1] == '\\')
            escape--;
        if ((at - escape) % 2 == 0)
            return at + 1;
    }
    return end;
}

/* Behind the value that begins at `at`. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return at; /* a number or a word came right before */
            depth--;
            at++;
        } else if (depth == 0 && strchr(", \t\n\r", *at) != NULL) {
            return at;
        } else {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return end;
}

bool json_members(const char *text, size_t len, const struct json_wanted wanted[], size_t count)
{
    bool once = true;
    if (len == 0)
        return true; /* text may be NULL */
    const char *end = text + len, *at = skip_space(text, end);
    if (at == end || *at != '{')
        return true;
    at = skip_space(at + 1, end);
    while (at < end && *at == '"') {
        const char *key = at + 1, *key_end = skip_string(at, end), *colon = skip_space(key_end, end);
        const char *value = colon < end ? skip_space(colon + 1, end) : end, *value_end = skip_value(value, end);
        size_t key_len = (size_t)(key_end - 1 - key);
        for (size_t i = 0; i < count && value < end; i++) {
            if (strlen(wanted[i].name) != key_len || memcmp(key, wanted[i].name, key_len) != 0)
                continue;
            if (wanted[i].value->text == NULL)
                *wanted[i].value = (struct json_span){value, (size_t)(value_end - value)};
            else
                once = false;
        }
        at = skip_space(value_end, end);
        if (at < end && *at == ',')
            at = skip_space(at + 1, end);
    }
    return once;
}

struct json_span json_member(const char *text, size_t len, const char *name)
{
    struct json_span value = {0};
    json_members(text, len, &(const struct json_wanted){name, &value}, 1);
    return value;
}

bool json_span_is(struct json_span span, const char *text)
{
    return span.text != NULL && span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

char json_span_kind(struct json_span span)
{
    return span.text != NULL && span.len > 0 ? span.text[0] : '\0';
}
