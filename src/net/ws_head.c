/* Reads the head of a handshake for ws_opening. */
#include "net/ws_head.h"

#include <string.h>
#include <strings.h>

size_t ws_head_len(const char *bytes, size_t len)
{
    const char *end = bytes + len;

    for (const char *p = bytes; (p = memchr(p, '\n', (size_t)(end - p))) != NULL;) {
        p++;
        if (p < end && *p == '\n')
            return (size_t)(p + 1 - bytes);
        if (end - p >= 2 && p[0] == '\r' && p[1] == '\n')
            return (size_t)(p + 2 - bytes);
    }
    return 0;
}

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static size_t token_len(const char *text)
{
    size_t len = 0;

    while (is_token_char(text[len]))
        len++;
    return len;
}

static int malformed(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID_REQUEST, "the request is malformed: %s", what);
}

/* Ends the line with a NUL and gives the next one; NULL where it does not end with CR LF, or holds a control. */
static char *end_line(char *line)
{
    char *p = line;

    while (((unsigned char)*p >= ' ' && *p != 0x7f) || *p == '\t')
        p++;
    if (p[0] != '\r' || p[1] != '\n')
        return NULL;
    *p = '\0';
    return p + 2;
}

static int parse_request_line(struct ws_head *head, char *line, struct err *err)
{
    size_t method_len = token_len(line);
    char *target = line + method_len + 1, *version;

    if (method_len == 0 || line[method_len] != ' ')
        return malformed(err, "it does not begin with a method");
    line[method_len] = '\0';
    version = strchr(target, ' ');
    if (!version || version == target)
        return malformed(err, "there is no target");
    *version++ = '\0';
    if (strncmp(version, "HTTP/1.", 7) != 0 || version[7] < '0' || version[7] > '9' || version[8] != '\0')
        return malformed(err, "the version is not HTTP/1.1");
    head->method = line;
    head->target = target;
    head->http_1_1 = version[7] != '0';
    return 0;
}

static int parse_field(struct ws_head *head, char *line, struct err *err)
{
    size_t name_len = token_len(line), len;
    char *value = line + name_len + 1;

    if (name_len == 0 || line[name_len] != ':')
        return malformed(err, "a header line is not a name and a colon");
    if (head->field_count == WS_HEAD_FIELDS_MAX)
        return err_set(err, ERR_HEADERS_TOO_LARGE, "the request has more than %d headers", WS_HEAD_FIELDS_MAX);
    line[name_len] = '\0';
    value += strspn(value, " \t");
    for (len = strlen(value); len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t');)
        value[--len] = '\0';
    head->fields[head->field_count++] = (struct header){.name = line, .value = value};
    return 0;
}

int ws_head_parse(struct ws_head *out, char *bytes, size_t len, struct err *err)
{
    char *line = bytes, *next;

    out->field_count = 0;
    /* It ends with a line feed, so every line below has an end. */
    if (len == 0 || bytes[len - 1] != '\n')
        return malformed(err, "it has no end");
    if (!(next = end_line(line)))
        return malformed(err, "a line holds a control character or does not end with CR LF");
    if (parse_request_line(out, line, err) < 0)
        return -1;
    while (line = next, line < bytes + len) {
        if (!(next = end_line(line)))
            return malformed(err, "a line holds a control character or does not end with CR LF");
        if (next == bytes + len && *line == '\0')
            return 0;
        if (parse_field(out, line, err) < 0)
            return -1;
    }
    return malformed(err, "it has no end");
}

const char *ws_head_field(const struct ws_head *head, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < head->field_count; i++) {
        if (!header_is(head->fields[i].name, name))
            continue;
        if (value)
            return NULL;
        value = head->fields[i].value;
    }
    return value;
}

static bool value_lists(const char *value, const char *word)
{
    size_t word_len = strlen(word);

    while (*value) {
        size_t len;

        value += strspn(value, ", \t");
        len = strcspn(value, ", \t");
        if (len == word_len && strncasecmp(value, word, len) == 0)
            return true;
        value += len;
    }
    return false;
}

bool ws_head_lists(const struct ws_head *head, const char *name, const char *word)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (header_is(head->fields[i].name, name) && value_lists(head->fields[i].value, word))
            return true;
    return false;
}
