/* Takes multipart/form-data apart while it arrives; prim/upload feeds it. */
#include "base/multipart.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum state {
    PREAMBLE,          /* before the first delimiter; thrown away */
    AFTER_DELIMITER,   /* "--" closes; padding and CRLF open a part */
    AFTER_DASH,        /* one '-' of the two came */
    PADDING,           /* white space between delimiter and CRLF */
    DELIMITER_NEWLINE, /* the CR came */
    HEADERS,
    DATA,
    EPILOGUE, /* behind the closing delimiter; thrown away */
};

struct multipart {
    struct multipart_events events;
    void *ctx;
    enum state state;
    bool failed;
    struct err failure;
    /* CRLF "--" boundary. A CR stands only at its start, so a match that fails can begin anew only at the byte that
     * broke it. */
    char delimiter[4 + MULTIPART_BOUNDARY_MAX];
    size_t delimiter_len;
    size_t matched; /* this many bytes of the delimiter ended the last feed */
    size_t unsent;  /* of those, so many at the front are no data of the part */
    char headers[MULTIPART_HEADERS_MAX_BYTES + 1];
    size_t headers_len;
};

static int refuse(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID_REQUEST, "malformed multipart body: %s", what);
}

/* --- header values: `first; name=value; name="value"`, taken apart in place */

static char *skip_blank(char *at)
{
    return at + strspn(at, " \t");
}

/* A quoted-string: only \" and \\ are escapes, because browsers send C:\dir\file as it is. Moves the bytes down and
 * ends them; NULL where the quote is never closed. */
static char *take_quoted(char **at)
{
    char *from = *at + 1, *value = from, *to = from;
    for (; *from && *from != '"'; from++) {
        if (*from == '\\' && (from[1] == '"' || from[1] == '\\'))
            from++;
        *to++ = *from;
    }
    if (!*from)
        return NULL;
    *at = from + 1;
    *to = '\0';
    return value;
}

/* The next parameter: 1, 0 at the end, -1 where the text is no parameter. */
static int next_param(char **at, char **out_name, char **out_value)
{
    char *here = skip_blank(*at);
    while (*here == ';')
        here = skip_blank(here + 1);
    if (!*here)
        return 0;
    char *name = here;
    here += strcspn(here, "=; \t\"");
    char *name_end = here;
    here = skip_blank(here);
    if (*here != '=' || name_end == name)
        return -1;
    *name_end = '\0';
    here = skip_blank(here + 1);

    char *value = here;
    bool quoted = *here == '"';
    if (quoted) {
        value = take_quoted(&here);
        if (!value)
            return -1;
    } else {
        here += strcspn(here, "; \t\"");
    }
    char *value_end = here;
    here = skip_blank(here);
    if (*here && *here != ';')
        return -1;
    *at = *here ? here + 1 : here;
    if (!quoted)
        *value_end = '\0';
    *out_name = name;
    *out_value = value;
    return 1;
}

/* Cuts the first word off; *at is what follows it. NULL where something else than a parameter does. */
static char *take_first(char **at)
{
    char *first = skip_blank(*at), *end = first + strcspn(first, "; \t"), *rest = skip_blank(end);
    if (*rest && *rest != ';')
        return NULL;
    *at = *rest ? rest + 1 : rest;
    *end = '\0';
    return first;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* UTF-8'language'percent-encoded (RFC 8187), decoded in place; NULL where it is not that. */
static char *decode_extended(char *value)
{
    if (strncasecmp(value, "UTF-8'", 6) != 0)
        return NULL;
    char *from = strchr(value + 6, '\'');
    if (!from)
        return NULL;
    char *start = ++from, *to = start;
    for (; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0 || high * 16 + low == 0)
            return NULL;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return utf8_valid(start, (size_t)(to - start)) ? start : NULL;
}

static int parse_disposition(char *value, struct multipart_part *part, struct err *err)
{
    char *first = take_first(&value), *name, *text;
    const char *extended = NULL;
    if (!first || strcasecmp(first, "form-data") != 0)
        return refuse(err, "a part is not form-data");
    int rc;
    while ((rc = next_param(&value, &name, &text)) > 0) {
        const char **slot = strcasecmp(name, "name") == 0        ? &part->name
                            : strcasecmp(name, "filename") == 0  ? &part->filename
                            : strcasecmp(name, "filename*") == 0 ? &extended
                                                                 : NULL;
        if (!slot)
            continue;
        if (*slot)
            return refuse(err, "a part names itself twice");
        /* Plain values are not decoded, but whoever decodes them later must not be cut short by this. */
        if (strstr(text, "%00"))
            return refuse(err, "NUL in a name");
        *slot = slot == &extended ? decode_extended(text) : text;
        if (!*slot)
            return refuse(err, "bad filename*");
    }
    if (rc < 0)
        return refuse(err, "bad Content-Disposition");
    if (extended)
        part->filename = extended;
    if (!part->name)
        return refuse(err, "a part without a name");
    return 0;
}

static int parse_line(char *line, struct multipart_part *part, bool *disposed, struct err *err)
{
    char *colon = strchr(line, ':');
    if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line))
        return refuse(err, "bad header line in a part");
    *colon = '\0';
    char *value = skip_blank(colon + 1);
    if (strcasecmp(line, "Content-Disposition") == 0) {
        if (*disposed)
            return refuse(err, "two Content-Dispositions in a part");
        *disposed = true;
        return parse_disposition(value, part, err);
    }
    if (strcasecmp(line, "Content-Type") == 0)
        part->content_type = value;
    /* Deprecated by RFC 7578; taking encoded bytes for the file's would be worse than a refusal. */
    if (strcasecmp(line, "Content-Transfer-Encoding") == 0 &&
        (strncasecmp(value, "base64", 6) == 0 || strncasecmp(value, "quoted-printable", 16) == 0))
        return refuse(err, "Content-Transfer-Encoding is not supported");
    return 0;
}

/* parser->headers holds whole lines, the empty one included. */
static int parse_headers(struct multipart *parser, struct err *err)
{
    struct multipart_part part = {0};
    bool disposed = false;
    char *text = parser->headers;
    text[parser->headers_len] = '\0';
    /* Folded lines become one. */
    for (char *fold = text; (fold = strstr(fold, "\r\n"));) {
        if (fold[2] == ' ' || fold[2] == '\t')
            memset(fold, ' ', 2);
        fold += 2;
    }
    for (char *line = text, *end; (end = strstr(line, "\r\n")) != line; line = end + 2) {
        *end = '\0';
        if (parse_line(line, &part, &disposed, err) < 0)
            return -1;
    }
    if (!disposed)
        return refuse(err, "a part without Content-Disposition");
    return parser->events.on_part(parser->ctx, &part, err);
}

/* --- the pieces, each taking some of the bytes */

static int take_headers(struct multipart *parser, const char **at, const char *end, struct err *err)
{
    while (*at < end) {
        char byte = *(*at)++, previous = parser->headers_len ? parser->headers[parser->headers_len - 1] : '\0';
        if (byte == '\0')
            return refuse(err, "NUL in a header");
        if ((byte == '\n') != (previous == '\r'))
            return refuse(err, "a header line must end in CRLF");
        if (parser->headers_len == MULTIPART_HEADERS_MAX_BYTES)
            return refuse(err, "headers of a part over 8 KiB");
        parser->headers[parser->headers_len++] = byte;

        size_t len = parser->headers_len;
        if (byte == '\n' && (len == 2 || (len >= 4 && memcmp(parser->headers + len - 4, "\r\n\r\n", 4) == 0))) {
            /* The empty line may be the CRLF of the next delimiter already, where a part has no body at all. */
            parser->state = DATA;
            parser->matched = parser->unsent = 2;
            return parse_headers(parser, err);
        }
    }
    return 0;
}

static int send_data(struct multipart *parser, const char *bytes, size_t len, struct err *err)
{
    if (parser->state != DATA || len == 0)
        return 0;
    return parser->events.on_data(parser->ctx, bytes, len, err);
}

static int delimiter_found(struct multipart *parser, struct err *err)
{
    bool in_part = parser->state == DATA;
    parser->state = AFTER_DELIMITER;
    parser->matched = parser->unsent = 0;
    return in_part ? parser->events.on_part_end(parser->ctx, err) : 0;
}

/* Goes on with a match that the last bytes began. */
static int continue_match(struct multipart *parser, const char **at, const char *end, struct err *err)
{
    while (*at < end && parser->matched < parser->delimiter_len && **at == parser->delimiter[parser->matched]) {
        parser->matched++;
        (*at)++;
    }
    if (parser->matched == parser->delimiter_len)
        return delimiter_found(parser, err);
    if (*at == end)
        return 0;
    size_t matched = parser->matched, unsent = parser->unsent;
    parser->matched = parser->unsent = 0;
    return send_data(parser, parser->delimiter + unsent, matched - unsent, err);
}

static int take_data(struct multipart *parser, const char **at, const char *end, struct err *err)
{
    if (parser->matched > 0)
        return continue_match(parser, at, end, err);

    const char *start = *at, *found = memmem(start, (size_t)(end - start), parser->delimiter, parser->delimiter_len);
    if (found) {
        *at = found + parser->delimiter_len;
        return send_data(parser, start, (size_t)(found - start), err) < 0 ? -1 : delimiter_found(parser, err);
    }
    /* Only the last CR can begin a delimiter that goes on in the next bytes. */
    size_t len = (size_t)(end - start), tail_max = parser->delimiter_len - 1,
           tail_len = len < tail_max ? len : tail_max;
    const char *tail = memrchr(end - tail_len, '\r', tail_len);
    if (tail && memcmp(tail, parser->delimiter, (size_t)(end - tail)) == 0)
        parser->matched = (size_t)(end - tail);
    *at = end;
    return send_data(parser, start, len - parser->matched, err);
}

/* What follows a delimiter on its line, byte by byte. */
static int take_delimiter_line(struct multipart *parser, char byte, struct err *err)
{
    switch (parser->state) {
    case AFTER_DASH:
        if (byte == '-') {
            parser->state = EPILOGUE;
            return 0;
        }
        break;
    case DELIMITER_NEWLINE:
        if (byte == '\n') {
            parser->state = HEADERS;
            parser->headers_len = 0;
            return 0;
        }
        break;
    default:
        if (byte == '-' && parser->state == AFTER_DELIMITER) {
            parser->state = AFTER_DASH;
            return 0;
        }
        if (byte == '\r' || byte == ' ' || byte == '\t') {
            parser->state = byte == '\r' ? DELIMITER_NEWLINE : PADDING;
            return 0;
        }
        break;
    }
    return refuse(err, "a boundary must be followed by CRLF or \"--\"");
}

static int feed(struct multipart *parser, const char *at, const char *end, struct err *err)
{
    int rc = 0;
    while (at < end && rc == 0) {
        switch (parser->state) {
        case PREAMBLE:
        case DATA:
            rc = take_data(parser, &at, end, err);
            break;
        case HEADERS:
            rc = take_headers(parser, &at, end, err);
            break;
        case EPILOGUE:
            return 0;
        default:
            rc = take_delimiter_line(parser, *at++, err);
        }
    }
    return rc;
}

/* --- the interface */

/* The value of the one `boundary` parameter, or NULL. */
static const char *find_boundary(char *params)
{
    char *name, *value, *boundary = NULL;
    int rc;
    while ((rc = next_param(&params, &name, &value)) > 0) {
        if (strcasecmp(name, "boundary") != 0)
            continue;
        if (boundary)
            return NULL;
        boundary = value;
    }
    size_t len = boundary ? strlen(boundary) : 0;
    if (rc < 0 || len == 0 || len > MULTIPART_BOUNDARY_MAX || boundary[len - 1] == ' ')
        return NULL;
    for (const char *at = boundary; *at; at++)
        if (*at < 0x20 || *at > 0x7E)
            return NULL;
    return boundary;
}

struct multipart *multipart_new(const char *content_type, const struct multipart_events *events, void *ctx,
                                struct err *err)
{
    struct multipart *parser = calloc(1, sizeof *parser);
    char *copy = content_type ? strdup(content_type) : strdup("");
    if (!parser || !copy) {
        err_set(err, ERR_INTERNAL, "out of memory");
        goto failed;
    }
    char *params = copy, *type = take_first(&params);
    if (!type || strcasecmp(type, "multipart/form-data") != 0) {
        err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE, "the body is not multipart/form-data");
        goto failed;
    }
    const char *boundary = find_boundary(params);
    if (!boundary) {
        err_set(err, ERR_INVALID_REQUEST, "multipart/form-data needs one boundary of 1 to %d characters",
                MULTIPART_BOUNDARY_MAX);
        goto failed;
    }
    parser->events = *events;
    parser->ctx = ctx;
    memcpy(parser->delimiter, "\r\n--", 4);
    memcpy(parser->delimiter + 4, boundary, strlen(boundary));
    parser->delimiter_len = 4 + strlen(boundary);
    parser->matched = 2; /* the first delimiter may stand at the very start, without its CRLF */
    free(copy);
    return parser;
failed:
    free(copy);
    free(parser);
    return NULL;
}

void multipart_free(struct multipart *parser)
{
    free(parser);
}

int multipart_feed(struct multipart *parser, const char *bytes, size_t len, struct err *err)
{
    if (!parser->failed && len > 0 && feed(parser, bytes, bytes + len, &parser->failure) < 0)
        parser->failed = true;
    if (parser->failed)
        *err = parser->failure;
    return parser->failed ? -1 : 0;
}

int multipart_finish(struct multipart *parser, struct err *err)
{
    if (!parser->failed && parser->state != EPILOGUE) {
        parser->failed = true;
        refuse(&parser->failure, "it ends before the closing boundary");
    }
    if (parser->failed)
        *err = parser->failure;
    return parser->failed ? -1 : 0;
}
