/* Decodes the request target once, for the pipeline; what it refuses never reaches the router. */
#include "request/target.h"

#include "base/utf8.h"

#include <string.h>
#include <strings.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

enum decoded { DECODED, DECODED_BAD, DECODED_NO_MEMORY };

static enum decoded decode(const char *text, size_t len, bool plus_is_space, struct arena *arena, struct slice *out)
{
    char *to = arena_alloc(arena, len + 1);
    size_t n = 0;

    if (!to)
        return DECODED_NO_MEMORY;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '%') {
            if (len - i < 3 || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0)
                return DECODED_BAD;
            to[n++] = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            to[n++] = text[i] == '+' && plus_is_space ? ' ' : text[i];
        }
    }
    to[n] = '\0';
    *out = (struct slice){.text = to, .len = n};
    return DECODED;
}

static int no_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory for this request");
}

static int split_path(struct target *target, const char *path, struct arena *arena, struct err *err)
{
    size_t count = 0;

    for (const char *p = path; *p; p++)
        count += *p == '/';
    target->segments = arena_alloc(arena, count * sizeof(*target->segments));
    if (!target->segments)
        return no_memory(err);
    for (const char *p = path; *p == '/';) {
        const char *end = strchrnul(p + 1, '/');
        struct slice *segment = &target->segments[target->segment_count];

        switch (decode(p + 1, (size_t)(end - p - 1), false, arena, segment)) {
        case DECODED_BAD:
            return err_set(err, ERR_INVALID_REQUEST, "the path holds a bad %%-escape");
        case DECODED_NO_MEMORY:
            return no_memory(err);
        case DECODED:
            break;
        }
        if (memchr(segment->text, '\0', segment->len))
            return err_set(err, ERR_INVALID_REQUEST, "the path holds a NUL byte");
        target->segment_count++;
        p = end;
    }
    return 0;
}

int target_parse(struct target *target, const char *raw, struct arena *arena, struct err *err)
{
    const char *question = strchr(raw, '?');
    size_t path_len = question ? (size_t)(question - raw) : strlen(raw);
    const char *path;

    *target = (struct target){.query = question ? question + 1 : NULL, .path = ""};
    path = arena_strndup(arena, raw, path_len);
    if (!path)
        return no_memory(err);
    target->path = path;
    for (const char *p = raw; *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return err_set(err, ERR_INVALID_REQUEST, "the request target holds a byte that must be %%-encoded");
    }
    if (strcmp(raw, "*") == 0) {
        target->asterisk = true;
        return 0;
    }
    if (strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0) {
        const char *authority = strchr(path, ':') + 3;
        const char *slash = strchrnul(authority, '/');

        target->authority = arena_strndup(arena, authority, (size_t)(slash - authority));
        if (!target->authority)
            return no_memory(err);
        path = *slash ? slash : "/";
        target->path = path;
    }
    if (*path != '/')
        return err_set(err, ERR_INVALID_REQUEST, "the request target must be a path that begins with /");
    return split_path(target, path, arena, err);
}

static int query_name_is_new(const struct query_field *fields, size_t count, struct err *err)
{
    const struct slice *name = &fields[count].name;

    for (size_t i = 0; i < count; i++) {
        if (fields[i].name.len == name->len && memcmp(fields[i].name.text, name->text, name->len) == 0) {
            err_set(err, ERR_INVALID_REQUEST, "the parameter %s is given more than once", name->text);
            return err_field(err, name->text);
        }
    }
    return 0;
}

static int query_piece(const char *piece, size_t len, struct arena *arena, struct query_field *fields, size_t count,
                       struct err *err)
{
    const char *equals = memchr(piece, '=', len);
    size_t name_len = equals ? (size_t)(equals - piece) : len;
    struct query_field *field = &fields[count];
    enum decoded name = decode(piece, name_len, true, arena, &field->name);
    enum decoded value = decode(equals ? equals + 1 : "", equals ? len - name_len - 1 : 0, true, arena, &field->value);

    if (name == DECODED_NO_MEMORY || value == DECODED_NO_MEMORY)
        return no_memory(err);
    if (name == DECODED_BAD || !utf8_valid(field->name.text, field->name.len) ||
        memchr(field->name.text, '\0', field->name.len))
        return err_set(err, ERR_INVALID_REQUEST, "a parameter's name in the query is not properly %%-encoded UTF-8");
    if (value == DECODED_BAD) {
        err_set(err, ERR_INVALID_REQUEST, "the parameter %s holds a bad %%-escape", field->name.text);
        return err_field(err, field->name.text);
    }
    return query_name_is_new(fields, count, err);
}

int target_query(const char *query, struct arena *arena, struct query_field **out_fields, size_t *out_count,
                 struct err *err)
{
    struct query_field *fields;
    size_t pieces = 1, count = 0;

    for (const char *p = query ? query : ""; *p; p++)
        pieces += *p == '&';
    if (pieces > TARGET_QUERY_FIELDS_MAX)
        return err_set(err, ERR_INVALID_REQUEST, "the query has more than %d parameters", TARGET_QUERY_FIELDS_MAX);
    fields = arena_alloc(arena, pieces * sizeof(*fields));
    if (!fields)
        return no_memory(err);
    for (const char *p = query ? query : ""; *p;) {
        const char *end = strchrnul(p, '&');

        if (end > p) {
            if (query_piece(p, (size_t)(end - p), arena, fields, count, err) < 0)
                return -1;
            count++;
        }
        p = *end ? end + 1 : end;
    }
    *out_fields = fields;
    *out_count = count;
    return 0;
}
