/* Refuses ambiguous heads (request smuggling) before anything else looks at a request; called by http_connection. */
#include "net/http_framing.h"

#include <string.h>
#include <strings.h>

struct head {
    const char *next; /* where the next header has to begin, or NULL where that is not known */
    size_t lengths, encodings, hosts;
    bool http_1_0;
    const char *problem;
    struct http_framing *out;
};

static bool is_token(const char *text, size_t len)
{
    static const char symbols[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c != '\0' && strchr(symbols, c))))
            return false;
    }
    return len > 0;
}

static bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return true;
    }
    return false;
}

static const char *read_length(struct head *head, const char *value, size_t len)
{
    uint64_t length = 0;

    if (++head->lengths > 1)
        return "the request has more than one Content-Length";
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return "Content-Length is not a plain number";
        if (__builtin_mul_overflow(length, 10, &length) ||
            __builtin_add_overflow(length, (uint64_t)(value[i] - '0'), &length) || length > INT64_MAX)
            return "Content-Length is too large";
    }
    if (len == 0)
        return "Content-Length is not a plain number";
    head->out->body_length = (int64_t)length;
    head->out->has_body = length > 0;
    return NULL;
}

static const char *read_encoding(struct head *head, const char *value)
{
    if (++head->encodings > 1 || strcasecmp(value, "chunked") != 0)
        return "the only Transfer-Encoding that is understood is chunked, once";
    if (head->http_1_0)
        return "Transfer-Encoding has no meaning in HTTP/1.0";
    return NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *name_problem(const char *name, size_t len)
{
    if (len > 0 && is_blank(name[0]))
        return "a line of the head begins with a blank";
    if (len > 0 && is_blank(name[len - 1]))
        return "a header has a blank before its colon";
    return "a header's name is empty or holds a character that is not allowed in it";
}

static const char *read_header(struct head *head, const char *name, size_t name_len, const char *value, size_t len)
{
    if (!is_token(name, name_len))
        return name_problem(name, name_len);
    if (has_control(value, len))
        return "a header's value holds control characters";
    if (name_len == 14 && strcasecmp(name, "Content-Length") == 0)
        return read_length(head, value, len);
    if (name_len == 17 && strcasecmp(name, "Transfer-Encoding") == 0)
        return read_encoding(head, value);
    if (name_len == 4 && strcasecmp(name, "Host") == 0)
        head->hosts++;
    if (name_len == 6 && strcasecmp(name, "Expect") == 0)
        head->out->expects_continue = strcasecmp(value, "100-continue") == 0;
    return NULL;
}

/* 0.9.75 parses in place and writes zeros over the line ends, so the pieces tell what stood between them: after each
 * value exactly two zeros (a CRLF), then the next name. One zero was a bare LF; any other gap is a NUL that cut the
 * value short, or a folded line. */
static bool follows(const struct head *head, const char *name)
{
    return !head->next || head->next == name;
}

static const char *line_end(const char *text, size_t len)
{
    return text[len] == '\0' && text[len + 1] == '\0' ? text + len + 2 : NULL;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                 const char *value, size_t value_len)
{
    struct head *head = cls;

    (void)kind;
    if (!value)
        value = "";
    if (!follows(head, name)) /* a continued line is put together elsewhere, and its text goes to the name */
        head->problem = "a header is folded over two lines, or holds a NUL byte";
    else
        head->problem = read_header(head, name, name_len, value, value_len);
    if (!head->problem && head->next && !(head->next = line_end(value, value_len)))
        head->problem = "a line of the head does not end with CRLF, or holds a NUL byte";
    return head->problem ? MHD_NO : MHD_YES;
}

static bool parses_in_place(void)
{
    return strcmp(MHD_get_version(), "0.9.75") == 0;
}

void http_framing_hide_query(const char *target)
{
    char *query = parses_in_place() ? strchr(target, '?') : NULL;

    /* The callback's pointer is const, but the buffer is the connection's own, which unescapes the path in it next. */
    if (query && query[1] != '\0')
        query[1] = '\0';
}

int http_framing_check(struct MHD_Connection *connection, const char *method, const char *target, size_t target_len,
                       const char *version, struct http_framing *out, struct err *err)
{
    struct head head = {.http_1_0 = strcmp(version, "HTTP/1.1") != 0, .out = out};
    const union MHD_ConnectionInfo *size = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    *out = (struct http_framing){0};
    if (parses_in_place()) {
        head.next = line_end(version, strlen(version));
        if (target != method + strlen(method) + 1 || version != target + target_len + 1 || !head.next)
            head.problem = "the request line is malformed";
    }
    if (!head.problem)
        MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, &head);
    /* The empty line that ends the head. */
    if (!head.problem && head.next && size && head.next + 2 != method + size->header_size)
        head.problem = "a line of the head does not end with CRLF, or holds a NUL byte";
    if (!head.problem && head.lengths > 0 && head.encodings > 0)
        head.problem = "the request has both Content-Length and Transfer-Encoding";
    if (!head.problem && head.hosts != 1 && (head.hosts > 1 || !head.http_1_0))
        head.problem = "the request must have exactly one Host header";
    if (head.problem)
        return err_set(err, ERR_INVALID_REQUEST, "%s", head.problem);
    if (head.encodings > 0) {
        out->has_body = true;
        out->body_length = -1;
    }
    return 0;
}
