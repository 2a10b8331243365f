/* The checks of a terminal's handshake, for ws_opening: what REST asks of a request, and what RFC 6455 asks. */
#include "net/ws_handshake.h"

#include "base/arena.h"
#include "base/base64.h"
#include "prim/secret.h"
#include "prim/sha1.h"
#include "request/target.h"

#include <stdio.h>
#include <string.h>

#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum { ARENA_MAX_BYTES = 1024 * 1024, KEY_LEN = 24, KEY_BYTES = 16 };

struct check {
    const struct ws_gate *gate;
    const struct ws_head *head;
    struct ws_admission *out;
    struct ws_refusal *refusal;
    struct arena arena;
    struct target target;
    struct auth_headers headers;
    const char *id; /* NULL: the path is not that of a terminal */
    size_t id_len;
    struct buf offered; /* all Sec-WebSocket-Protocol, joined */
    struct ws_offer offer;
};

static void gather_headers(struct check *check)
{
    for (size_t i = 0; i < check->head->field_count; i++)
        auth_headers_note(&check->headers, check->head->fields[i].name, check->head->fields[i].value);
}

static int gather_offer(struct check *check)
{
    for (size_t i = 0; i < check->head->field_count; i++) {
        const struct header *field = &check->head->fields[i];

        if (header_is(field->name, "Sec-WebSocket-Protocol") &&
            ((check->offered.len > 0 && buf_append_text(&check->offered, ",") < 0) ||
             buf_append_text(&check->offered, field->value) < 0))
            return err_set(&check->refusal->err, ERR_INTERNAL, "out of memory");
    }
    ws_offer_parse(check->offered.data ? check->offered.data : "", check->offered.len, &check->offer);
    return 0;
}

static int check_sender(struct check *check)
{
    const struct auth_policy *policy = check->gate->policy;
    struct err *err = &check->refusal->err;

    if (target_parse(&check->target, check->head->target, &check->arena, err) < 0 ||
        auth_check_host(policy, &check->headers, check->target.authority, err) < 0)
        return -1;
    return auth_check_origin(policy, &check->headers, err);
}

static bool ticket_opens(struct check *check, bool *out_sent)
{
    char ticket[WS_QUERY_TICKET_MAX], id[WS_PATH_ID_MAX + 1];
    const char *query = check->target.query ? check->target.query : "";
    bool opens;

    ws_query_ticket(query, strlen(query), ticket);
    *out_sent = ticket[0] != '\0';
    if (!*out_sent || !check->id)
        return false;
    memcpy(id, check->id, check->id_len);
    id[check->id_len] = '\0';
    opens = terminals_ticket_matches(check->gate->terminals, ticket, strlen(ticket), id);
    secret_wipe(ticket, sizeof(ticket));
    return opens;
}

/* The header, a sub-protocol or a ticket: one that is right will do. */
static int check_credentials(struct check *check)
{
    const char *token = check->gate->policy->token;
    const struct buf *offered = &check->offer.token;
    struct ws_refusal *refusal = check->refusal;
    bool header_sent, ticket_sent;

    if (auth_check_token(check->gate->policy, &check->headers, &header_sent, &refusal->err) == 0 && token)
        return 0;
    if (token && offered->len > 0 && secret_equal(offered->data, offered->len, token, strlen(token)))
        return 0;
    check->out->by_ticket = ticket_opens(check, &ticket_sent);
    /* Where no token is asked for, a ticket still has to be good: its user would find out elsewhere that it was not. */
    if (check->out->by_ticket || (!token && !ticket_sent))
        return 0;
    refusal->name = "WWW-Authenticate";
    if (header_sent || offered->len > 0 || ticket_sent) {
        refusal->value = "Bearer realm=\"abxd\", error=\"invalid_token\"";
        return err_set(&refusal->err, ERR_UNAUTHORIZED,
                       ticket_sent ? "the ticket is not good for this terminal, was used, or is older than 30 s"
                                   : "the token is not the server's");
    }
    refusal->value = "Bearer realm=\"abxd\"";
    return err_set(&refusal->err, ERR_UNAUTHORIZED,
                   "send the server's token as Authorization: Bearer <token> or as the sub-protocol bearer.<token>, or "
                   "a ticket of POST /pty as ?ticket=");
}

static bool is_key(const char *key)
{
    struct buf bytes;
    bool good;

    if (!key || strlen(key) != KEY_LEN)
        return false;
    buf_init(&bytes, 2 * KEY_BYTES);
    good = base64_decode(&bytes, key, KEY_LEN) == 0 && bytes.len == KEY_BYTES;
    buf_deinit(&bytes);
    return good;
}

static int check_upgrade(struct check *check)
{
    const struct ws_head *head = check->head;
    struct ws_refusal *refusal = check->refusal;
    const char *version = ws_head_field(head, "Sec-WebSocket-Version");

    if (strcmp(head->method, "GET") != 0 || !head->http_1_1 || !ws_head_lists(head, "Connection", "upgrade") ||
        !ws_head_lists(head, "Upgrade", "websocket"))
        return err_set(&refusal->err, ERR_NOT_FOUND, "this port has WebSockets only: GET /pty/{id} with Upgrade");
    if (ws_head_field(head, "Transfer-Encoding") || ws_head_field(head, "Content-Length"))
        return err_set(&refusal->err, ERR_INVALID_REQUEST, "a handshake has no body");
    if (!check->id)
        return err_set(&refusal->err, ERR_NOT_FOUND, "there is nothing but /pty/{id} on this port");
    if (!version || strcmp(version, "13") != 0) {
        refusal->status = 426;
        refusal->name = "Sec-WebSocket-Version";
        refusal->value = "13";
        return err_set(&refusal->err, ERR_INVALID_REQUEST, "Sec-WebSocket-Version must be 13");
    }
    check->out->key = ws_head_field(head, "Sec-WebSocket-Key");
    if (!is_key(check->out->key))
        return err_set(&refusal->err, ERR_INVALID_REQUEST, "Sec-WebSocket-Key must be 16 bytes in base64");
    if (check->offer.any && !check->offer.known)
        return err_set(&refusal->err, ERR_INVALID_REQUEST,
                       "of the sub-protocols in Sec-WebSocket-Protocol one must be " WS_SUBPROTOCOL);
    check->out->named = check->offer.any;
    return 0;
}

static int check_all(struct check *check)
{
    const char *query;

    if (gather_offer(check) < 0 || check_sender(check) < 0)
        return -1;
    check->id = ws_path_id(check->target.path, strlen(check->target.path), &check->id_len);
    if (check->id_len > WS_PATH_ID_MAX)
        check->id = NULL;
    if (check_credentials(check) < 0 || check_upgrade(check) < 0)
        return -1;
    query = check->target.query ? check->target.query : "";
    if (ws_query_parse(query, strlen(query), &check->out->query, &check->refusal->err) < 0)
        return -1;
    if (check->gate->draining)
        return err_set(&check->refusal->err, ERR_SHUTTING_DOWN, "the server is shutting down");
    memcpy(check->out->id, check->id, check->id_len);
    check->out->terminal = terminals_lookup(check->gate->terminals, check->out->id, check->id_len);
    return 0;
}

int ws_handshake_check(const struct ws_gate *gate, const struct ws_head *head, struct ws_admission *out,
                       struct ws_refusal *out_refusal)
{
    struct check check = {.gate = gate, .head = head, .out = out, .refusal = out_refusal};
    int status;

    *out = (struct ws_admission){0};
    *out_refusal = (struct ws_refusal){0};
    arena_init(&check.arena, ARENA_MAX_BYTES);
    buf_init(&check.offered, WS_HEAD_MAX_BYTES);
    gather_headers(&check);
    status = check_all(&check);
    if (check.offered.len > 0)
        secret_wipe(check.offered.data, check.offered.len);
    if (check.offer.token.len > 0)
        secret_wipe(check.offer.token.data, check.offer.token.len);
    ws_offer_deinit(&check.offer);
    buf_deinit(&check.offered);
    arena_deinit(&check.arena);
    return status;
}

void ws_handshake_done(const struct ws_gate *gate, const struct ws_admission *admission)
{
    const char *ticket = admission->query.ticket;

    if (admission->by_ticket)
        terminals_ticket_take(gate->terminals, ticket, strlen(ticket), admission->id);
}

int ws_handshake_accept(struct buf *out, const char *key)
{
    char text[KEY_LEN + sizeof(ACCEPT_GUID)];
    uint8_t digest[SHA1_BYTES];

    snprintf(text, sizeof(text), "%.*s%s", KEY_LEN, key, ACCEPT_GUID);
    sha1_of(text, strlen(text), digest);
    return base64_encode(out, digest, sizeof(digest));
}
