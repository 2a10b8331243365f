/* Reads what a client asks for as it connects to a terminal, and the credentials that it brings along; called by
 * ws_handshake. */
#include "net/ws_query.h"

#include "base/base64.h"
#include "model/schema.h"
#include "prim/secret.h"
#include "prim/terminal.h"
#include "request/problem.h"
#include "request/target.h"

#include <string.h>

/* What decoding and checking take beside the text itself: mostly the table of fields (TARGET_QUERY_FIELDS_MAX). */
enum { ARENA_BYTES = 64 * 1024, ARENA_BYTES_PER_BYTE = 4 };

static const char *accesses[] = {"rw", "ro", NULL};
static const char *modes[] = {"json", "raw", NULL};

#define SIZE_FIELD                                                                                                     \
    {                                                                                                                  \
        .type = SCHEMA_INTEGER, .has_min = true, .has_max = true, .min = 1, .max = TERMINAL_SIZE_MAX                   \
    }
static struct schema_field fields[] = {
    {.name = "since", .schema = {.type = SCHEMA_INTEGER, .has_min = true, .min = -1}},
    {.name = "cols", .schema = SIZE_FIELD},
    {.name = "rows", .schema = SIZE_FIELD},
    {.name = "access", .schema = {.type = SCHEMA_STRING, .choices = accesses}},
    {.name = "mode", .schema = {.type = SCHEMA_STRING, .choices = modes}},
    {.name = "ticket",
     .schema = {.type = SCHEMA_STRING, .has_min = true, .has_max = true, .min = 1, .max = WS_QUERY_TICKET_MAX - 1}},
};
static const struct schema parameters = {
    .type = SCHEMA_OBJECT, .fields = fields, .field_count = sizeof(fields) / sizeof(fields[0])};

/* --- the query */

static int no_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory for this request");
}

/* As one object of typed values, to be checked. */
static int to_object(const struct query_field *given, size_t count, struct arena *arena, struct value *out,
                     struct err *err)
{
    struct value_member *members = arena_alloc(arena, (count + 1) * sizeof(*members));
    if (!members)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct slice *name = &given[i].name, *value = &given[i].value;
        const struct schema_field *field = schema_field_find(&parameters, name->text, name->len);
        if (name->len == 0)
            return err_set(err, ERR_INVALID_REQUEST, "the query holds a parameter without a name");
        members[i] = (struct value_member){.name = name->text, .name_len = name->len};
        members[i].value = field ? schema_from_text(&field->schema, value->text, value->len)
                                 : (struct value){.type = VALUE_STRING, .as.string = {value->text, value->len}};
    }
    *out = (struct value){.type = VALUE_OBJECT, .as.object = {members, count}};
    return 0;
}

static const struct value *find(const struct value *object, const char *name)
{
    return value_member(object, name, strlen(name));
}

static int64_t integer_or(const struct value *object, const char *name, int64_t otherwise)
{
    const struct value *value = find(object, name);
    return value ? value->as.integer : otherwise;
}

static bool is_text(const struct value *object, const char *name, const char *text)
{
    const struct value *value = find(object, name);
    return value && strcmp(value->as.string.text, text) == 0; /* a choice: holds no NUL */
}

static int take_ticket(const struct value *checked, struct ws_query *query, struct err *err)
{
    const struct value *ticket = find(checked, "ticket");
    if (!ticket)
        return 0;
    if (memchr(ticket->as.string.text, '\0', ticket->as.string.len)) {
        err_set(err, ERR_INVALID_REQUEST, "ticket: must not hold NUL");
        return err_field(err, "ticket");
    }
    memcpy(query->ticket, ticket->as.string.text, ticket->as.string.len + 1);
    return 0;
}

static int take_query(const struct value *checked, struct ws_query *out, struct err *err)
{
    int64_t since = integer_or(checked, "since", TERMINAL_SINCE_ALL);
    struct ws_query query = {
        .since = since == -1 ? TERMINAL_SINCE_NONE : since,
        .has_cols = find(checked, "cols") != NULL,
        .has_rows = find(checked, "rows") != NULL,
        .size = {(unsigned)integer_or(checked, "cols", 0), (unsigned)integer_or(checked, "rows", 0)},
        .read_only = is_text(checked, "access", "ro"),
        .raw = is_text(checked, "mode", "raw"),
    };
    if (take_ticket(checked, &query, err) < 0)
        return -1;
    *out = query;
    return 0;
}

static int parse(const char *text, size_t len, struct arena *arena, struct ws_query *out, struct err *err)
{
    struct field_errors errors = {0};
    struct query_field *given;
    struct value object, checked;
    size_t count;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return err_set(err, ERR_INVALID_REQUEST, "the query holds a byte that must be %%-encoded");
    const char *copy = arena_strndup(arena, text, len);
    if (!copy)
        return no_memory(err);
    if (target_query(copy, arena, &given, &count, err) < 0 || to_object(given, count, arena, &object, err) < 0)
        return -1;
    if (schema_check(&parameters, &object, NULL, arena, &checked, &errors) < 0) {
        errors.count = 1; /* the answer has no list of them */
        return problem_from_fields(err, &errors);
    }
    return take_query(&checked, out, err);
}

int ws_query_parse(const char *text, size_t len, struct ws_query *out, struct err *err)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES + len * ARENA_BYTES_PER_BYTE);
    int rc = parse(text, text ? len : 0, &arena, out, err);
    arena_deinit(&arena);
    return rc;
}

/* Whether this parameter is called ticket; *out_ticket is its value, without text where that is none. */
static bool ticket_of(const char *piece, size_t len, struct arena *arena, struct slice *out_ticket)
{
    struct query_field *given;
    struct err err;
    size_t count;
    *out_ticket = (struct slice){0};
    const char *copy = memchr(piece, '\0', len) ? NULL : arena_strndup(arena, piece, len);
    if (!copy)
        return false;
    if (target_query(copy, arena, &given, &count, &err) < 0)
        return strcmp(err.field, "ticket") == 0;
    if (count == 0 || strcmp(given[0].name.text, "ticket") != 0)
        return false;
    if (given[0].value.len < WS_QUERY_TICKET_MAX && !memchr(given[0].value.text, '\0', given[0].value.len))
        *out_ticket = given[0].value;
    return true;
}

void ws_query_ticket(const char *text, size_t len, char out[WS_QUERY_TICKET_MAX])
{
    struct arena arena;
    size_t found = 0;
    out[0] = '\0';
    arena_init(&arena, ARENA_BYTES + len * ARENA_BYTES_PER_BYTE);
    /* One parameter at a time, so that the others may be as they like. */
    for (const char *piece = text, *end = text ? text + len : NULL; piece < end;) {
        const char *next = memchr(piece, '&', (size_t)(end - piece));
        size_t piece_len = (size_t)((next ? next : end) - piece);
        struct slice ticket;
        if (ticket_of(piece, piece_len, &arena, &ticket)) {
            found++;
            memcpy(out, ticket.text ? ticket.text : "", ticket.len + 1);
        }
        arena_reset(&arena);
        piece += piece_len + (next != NULL);
    }
    if (found > 1)
        out[0] = '\0';
    arena_deinit(&arena);
}

/* --- sub-protocols */

/* No token holds it (prim/secret and the configuration see to that), so it equals none. */
static const char wrong_token[] = "\x7f";

static bool may_be_token(const struct buf *token)
{
    for (size_t i = 0; i < token->len; i++)
        if (token->data[i] < 0x21 || token->data[i] > 0x7e)
            return false;
    return token->len > 0;
}

/* All of its memory: a decoding that failed leaves bytes behind len. */
static void wipe(struct buf *secret)
{
    if (secret->data)
        secret_wipe(secret->data, secret->cap);
    buf_reset(secret);
}

/* base64url (RFC 4648, section 5). Padding may be left out, and is where the header's grammar is kept: '=' may not
 * stand in the name of a sub-protocol. */
static int append_base64url(struct buf *out, const char *text, size_t len)
{
    struct buf standard;
    buf_init(&standard, len + 3);
    int rc = buf_reserve(&standard, len + 3); /* at once: a buffer that moves leaves the secret behind */
    for (size_t i = 0; rc == 0 && i < len; i++) {
        if (text[i] == '+' || text[i] == '/')
            rc = -1;
        else
            rc = buf_append(&standard, text[i] == '-' ? "+" : text[i] == '_' ? "/" : &text[i], 1);
    }
    while (rc == 0 && standard.len % 4 != 0 && !memchr(text, '=', len))
        rc = buf_append(&standard, "=", 1);
    if (rc == 0)
        rc = base64_decode(out, standard.data, standard.len);
    wipe(&standard);
    buf_deinit(&standard);
    return rc;
}

static void take_token(struct ws_offer *offer, const char *text, size_t len, bool base64url)
{
    bool first = offer->token.len == 0;
    if (first && (base64url ? append_base64url(&offer->token, text, len) : buf_append(&offer->token, text, len)) == 0 &&
        may_be_token(&offer->token))
        return;
    wipe(&offer->token);
    if (buf_append_text(&offer->token, wrong_token) < 0)
        buf_reset(&offer->token); /* out of memory: none opens no more than a wrong one */
}

static bool begins_with(const char *text, size_t len, const char *prefix)
{
    return len >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

static void take_name(struct ws_offer *offer, const char *name, size_t len)
{
    static const char bearer[] = "bearer.", bearer64[] = "bearer64.";
    offer->any = true;
    if (len == strlen(WS_SUBPROTOCOL) && begins_with(name, len, WS_SUBPROTOCOL))
        offer->known = true;
    else if (begins_with(name, len, bearer))
        take_token(offer, name + strlen(bearer), len - strlen(bearer), false);
    else if (begins_with(name, len, bearer64))
        take_token(offer, name + strlen(bearer64), len - strlen(bearer64), true);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

void ws_offer_parse(const char *header, size_t len, struct ws_offer *out)
{
    *out = (struct ws_offer){0};
    buf_init(&out->token, len);
    for (const char *name = header, *end = header ? header + len : NULL; name < end;) {
        const char *comma = memchr(name, ',', (size_t)(end - name));
        const char *first = name, *last = comma ? comma : end;
        while (first < last && is_blank(*first))
            first++;
        while (last > first && is_blank(last[-1]))
            last--;
        if (last > first) /* a list may hold empty elements (RFC 9110, section 5.6.1) */
            take_name(out, first, (size_t)(last - first));
        name = comma ? comma + 1 : end;
    }
}

void ws_offer_deinit(struct ws_offer *offer)
{
    wipe(&offer->token);
    buf_deinit(&offer->token);
}

/* --- the path */

const char *ws_path_id(const char *path, size_t len, size_t *out_len)
{
    static const char prefix[] = "/pty/";
    if (!begins_with(path, len, prefix))
        return NULL;
    const char *id = path + strlen(prefix);
    size_t id_len = len - strlen(prefix);
    if (id_len == 0 || id_len > WS_PATH_ID_MAX || memchr(id, '/', id_len))
        return NULL;
    *out_len = id_len;
    return id;
}
