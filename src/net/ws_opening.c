/* A connection from accept to the answer of its handshake: refuses with a problem, or makes it a
 * session. Made by ws_listener. */
#include "base/log.h"
#include "net/ws_listener_parts.h"
#include "net/ws_session.h"
#include "prim/secret.h"
#include "request/problem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_TIMEOUT_MS = 10 * 1000,
    READ_BYTES = 4096,
    ANSWER_MAX_BYTES = 16 * 1024,
    LOGGED_PATH_MAX = 256,
    /* An answer to one who is still sending: closing at once would reset the connection before he has read it. */
    LINGER_MS = 5 * 1000,
    LINGER_MAX_BYTES = 16 * 1024 * 1024,
};

struct ws_opening {
    struct ws_listener *listener;
    struct list node;
    int fd;
    struct loop_fd *watch;
    struct loop_timer deadline;
    struct buf in;  /* the head, and what came behind it */
    struct buf out; /* the answer, once it is decided */
    size_t sent, discarded;
    bool answered;
};

static void opening_free(struct ws_opening *opening)
{
    struct ws_listener *listener = opening->listener;

    list_remove(&opening->node);
    loop_timer_stop(&opening->deadline);
    loop_fd_free(opening->watch);
    if (opening->fd >= 0) {
        close(opening->fd);
        ws_listener_one_less(listener);
    }
    if (opening->in.len > 0)
        secret_wipe(opening->in.data, opening->in.len);
    buf_deinit(&opening->in);
    buf_deinit(&opening->out);
    free(opening);
}

void ws_openings_drop(struct ws_listener *listener)
{
    LIST_EACH (&listener->openings, node) {
        opening_free(LIST_ENTRY(node, struct ws_opening, node));
    }
}

static void on_deadline(void *ctx)
{
    opening_free(ctx);
}

/* --- answers */

static void on_lingering(void *ctx, int events)
{
    struct ws_opening *opening = ctx;
    char thrown_away[READ_BYTES];
    ssize_t n = recv(opening->fd, thrown_away, sizeof(thrown_away), 0);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && (opening->discarded += (size_t)n) < LINGER_MAX_BYTES)
        return;
    opening_free(opening);
}

static void send_answer(struct ws_opening *opening)
{
    while (opening->sent < opening->out.len) {
        ssize_t n = send(opening->fd, opening->out.data + opening->sent, opening->out.len - opening->sent, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            loop_fd_set(opening->watch, LOOP_WRITABLE);
            return;
        }
        if (n < 0) {
            opening_free(opening);
            return;
        }
        opening->sent += (size_t)n;
    }
    shutdown(opening->fd, SHUT_WR);
    loop_fd_set(opening->watch, LOOP_READABLE);
}

static void request_id(const struct ws_head *head, char out[REQUEST_ID_MAX + 1])
{
    const char *given = ws_head_field(head, "X-Request-Id");

    if (given && request_id_is_valid(given))
        strcpy(out, given);
    else
        secret_random_hex(out, 8);
}

/* The path only: the query may hold a ticket. */
static void log_answer(const struct ws_head *head, const char *id, int status)
{
    struct log_context who = {.request_id = id};
    int path_len;

    if (!head->target) {
        log_write(LOG_LEVEL_INFO, "ws", &who, "malformed %d", status);
        return;
    }
    path_len = (int)strcspn(head->target, "?");
    log_write(LOG_LEVEL_INFO, "ws", &who, "%.32s %.*s %d", head->method,
              path_len < LOGGED_PATH_MAX ? path_len : LOGGED_PATH_MAX, head->target, status);
}

static int write_answer(struct buf *out, const struct response *response, const char *id, bool with_body)
{
    if (buf_printf(out, "HTTP/1.1 %d %s\r\n", response->status, problem_title(response->status)) < 0)
        return -1;
    for (size_t i = 0; i < response->header_count; i++)
        if (buf_printf(out, "%s: %s\r\n", response->headers[i].name, response->headers[i].value) < 0)
            return -1;
    if (buf_printf(out, "X-Request-Id: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", id,
                   response->bytes.len) < 0)
        return -1;
    return with_body ? buf_append(out, response->bytes.data, response->bytes.len) : 0;
}

static void refuse(struct ws_opening *opening, const struct ws_head *head, const struct ws_refusal *refusal)
{
    char id[REQUEST_ID_MAX + 1];
    struct response response;
    bool head_only = head->target && strcmp(head->method, "HEAD") == 0;
    int failed;

    request_id(head, id);
    failed = problem_response(&response, refusal->status, &refusal->err, NULL, id) < 0 ||
             (refusal->name && response_header_fixed(&response, refusal->name, refusal->value) < 0) ||
             write_answer(&opening->out, &response, id, !head_only) < 0;
    log_answer(head, id, response.status);
    response_deinit(&response);
    if (failed) {
        opening_free(opening);
        return;
    }
    opening->answered = true;
    loop_timer_start(opening->listener->own, &opening->deadline, LINGER_MS, on_deadline, opening);
    send_answer(opening);
}

static void refuse_malformed(struct ws_opening *opening, const struct err *err)
{
    struct ws_head none = {0};
    struct ws_refusal refusal = {.err = *err};

    refuse(opening, &none, &refusal);
}

/* --- handshakes */

/* Gathered, not sent: what the session has to say at once goes with it. */
static int write_acceptance(struct buf *out, const struct ws_admission *admission, const char *id)
{
    if (buf_append_text(out, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Accept: ") < 0 ||
        ws_handshake_accept(out, admission->key) < 0)
        return -1;
    return buf_printf(out, "\r\n%sX-Request-Id: %s\r\n\r\n",
                      admission->named ? "Sec-WebSocket-Protocol: " WS_SUBPROTOCOL "\r\n" : "", id);
}

static void hand_over(struct ws_opening *opening, const struct ws_head *head, size_t head_len,
                      const struct ws_admission *admission, struct ws_session *session)
{
    char id[REQUEST_ID_MAX + 1];
    int fd = opening->fd;

    request_id(head, id);
    if (write_acceptance(&opening->listener->out, admission, id) < 0) {
        buf_reset(&opening->listener->out);
        ws_session_free(session);
        opening_free(opening);
        return;
    }
    log_answer(head, id, 101);
    loop_fd_free(opening->watch);
    opening->watch = NULL;
    opening->fd = -1; /* still counted, until the session ends */
    ws_session_begin(session, fd, opening->in.data + head_len, opening->in.len - head_len);
    opening_free(opening);
}

static void decide(struct ws_opening *opening, size_t head_len)
{
    struct ws_listener *listener = opening->listener;
    struct ws_gate gate = {
        .policy = listener->policy, .terminals = listener->terminals, .draining = atomic_load(&listener->draining)};
    struct ws_head head;
    struct ws_admission admission;
    struct ws_refusal refusal;
    struct ws_session *session;

    if (ws_head_parse(&head, opening->in.data, head_len, &refusal.err) < 0) {
        refuse_malformed(opening, &refusal.err);
        return;
    }
    if (ws_handshake_check(&gate, &head, &admission, &refusal) < 0) {
        refuse(opening, &head, &refusal);
        return;
    }
    session = ws_session_new(listener, &admission, &refusal.err);
    if (!session) {
        refuse(opening, &head, &refusal);
        return;
    }
    ws_handshake_done(&gate, &admission);
    hand_over(opening, &head, head_len, &admission, session);
}

static void look(struct ws_opening *opening, size_t before)
{
    size_t from = before > 3 ? before - 3 : 0; /* the end may have begun before */
    size_t len = ws_head_len(opening->in.data + from, opening->in.len - from);
    struct err err;

    if (len > 0 && from + len <= WS_HEAD_MAX_BYTES) {
        decide(opening, from + len);
        return;
    }
    if (len == 0 && opening->in.len < WS_HEAD_MAX_BYTES)
        return;
    err_set(&err, ERR_HEADERS_TOO_LARGE, "the head of a request may have %d bytes", WS_HEAD_MAX_BYTES);
    refuse_malformed(opening, &err);
}

static void on_readable(void *ctx, int events)
{
    struct ws_opening *opening = ctx;
    size_t before = opening->in.len;
    ssize_t n;

    if (opening->answered) {
        if (events & LOOP_WRITABLE)
            send_answer(opening);
        else
            on_lingering(opening, events);
        return;
    }
    if (buf_reserve(&opening->in, READ_BYTES) < 0) {
        opening_free(opening);
        return;
    }
    n = recv(opening->fd, opening->in.data + before, READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        opening_free(opening);
        return;
    }
    opening->in.len += (size_t)n;
    look(opening, before);
}

void ws_opening_new(struct ws_listener *listener, int fd)
{
    struct ws_opening *opening = calloc(1, sizeof(*opening));

    listener->connections++;
    if (opening)
        opening->watch = loop_fd_new(listener->own, fd, LOOP_READABLE, on_readable, opening);
    if (!opening || !opening->watch) {
        free(opening);
        close(fd);
        ws_listener_one_less(listener);
        return;
    }
    opening->listener = listener;
    opening->fd = fd;
    buf_init(&opening->in, WS_HEAD_MAX_BYTES + READ_BYTES);
    buf_init(&opening->out, ANSWER_MAX_BYTES);
    list_append(&listener->openings, &opening->node);
    loop_timer_start(listener->own, &opening->deadline, HEAD_TIMEOUT_MS, on_deadline, opening);
}
