/* Cuts members out of valid JSON; used for what workers answer. It relies on the grammar and still never leaves the
 * text. */
#include "base/json_member.h"

#include <string.h>

const char *json_skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* Behind the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
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

struct json_span json_member(const char *text, size_t len, const char *name)
{
    const char *end = text + len, *at = json_skip_space(text, end);
    size_t name_len = strlen(name);
    if (at == end || *at != '{')
        return (struct json_span){0};
    at = json_skip_space(at + 1, end);
    while (at < end && *at == '"') {
        const char *key = at + 1, *key_end = skip_string(at, end);
        const char *value = json_skip_space(json_skip_space(key_end, end) + 1, end); /* + 1: the colon */
        if (value >= end)
            break;
        const char *value_end = skip_value(value, end);
        if ((size_t)(key_end - 1 - key) == name_len && memcmp(key, name, name_len) == 0)
            return (struct json_span){value, (size_t)(value_end - value)};
        at = json_skip_space(value_end, end);
        if (at < end && *at == ',')
            at = json_skip_space(at + 1, end);
    }
    return (struct json_span){0};
}

bool json_span_is(struct json_span span, const char *text)
{
    return span.text != NULL && span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

char json_span_kind(struct json_span span)
{
    return span.text != NULL && span.len > 0 ? span.text[0] : '\0';
}
