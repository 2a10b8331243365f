/* A listener on a port of its own, with C functions in the place of Lua handlers, and a client to go with it. */
#ifndef ABX_TESTS_HTTP_FIXTURE_H
#define ABX_TESTS_HTTP_FIXTURE_H

#include "net/http_listener.h"

#include "../fake_script.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { HEALTH, MARKER, WAIT, STREAM, UPLOAD, FILE_ANSWER, JSON, EARLY, BIG, SHRUNK };
enum { FILE_BYTES = 3 * 1024 * 1024, BIG_BYTES = 4 * 1024 * 1024, HEAD_MS = 400, BODY_MS = 400 };

static const struct group on = {.name = "core", .enabled = true};
#define OPEN(at, what)                                                                                                 \
    {                                                                                                                  \
        .path = at, .name = at, .group = &on, .params = {.type = SCHEMA_OBJECT}, .handler_ref = what                   \
    }
#define POST_TO(at, what, how, limit)                                                                                  \
    {                                                                                                                  \
        .path = at, .name = at, .group = &on, .params = {.type = SCHEMA_OBJECT}, .handler_ref = what, .body = how,     \
        .method = METHOD_POST, .body_limit_bytes = limit                                                               \
    }
static struct route routes[] = {
    OPEN("/health", HEALTH),
    OPEN("/marker", MARKER),
    OPEN("/wait", WAIT),
    OPEN("/stream", STREAM),
    OPEN("/file", FILE_ANSWER),
    OPEN("/big", BIG),
    OPEN("/shrunk", SHRUNK),
    POST_TO("/json", JSON, ROUTE_BODY_JSON, 65536),
    POST_TO("/upload", UPLOAD, ROUTE_BODY_STREAM, 0),
    POST_TO("/early", EARLY, ROUTE_BODY_STREAM, 0),
    {.path = "/secret",
     .name = "secret",
     .group = &on,
     .auth_required = true,
     .params = {.type = SCHEMA_OBJECT},
     .method = METHOD_POST,
     .body = ROUTE_BODY_JSON,
     .handler_ref = JSON},
};
static struct generation generation = {.references = 1, .routes = routes, .count = sizeof(routes) / sizeof(routes[0])};

static struct loop *loop;
static struct pipeline *pipeline;
static struct http_listener *listener;
static struct task *waiting;
static int markers;
static uint64_t upload_bytes, upload_sum;
static bool upload_paused;

static inline void health(struct task *task)
{
    fake_reply(task, 200, "application/json", "{\"status\":\"ok\"}");
}

static inline void marker(struct task *task)
{
    markers++;
    fake_reply(task, 200, "text/plain", "MARKER");
}

static inline void hang(struct task *task)
{
    waiting = task;
}

static inline void stream(struct task *task)
{
    waiting = task;
    fake_stream(task, "text/event-stream");
}

static inline size_t on_data(void *ctx, const char *bytes, size_t len)
{
    (void)ctx;
    if (upload_paused)
        return 0;
    for (size_t i = 0; i < len; i++)
        upload_sum += (unsigned char)bytes[i];
    upload_bytes += len;
    return len;
}

static inline void on_end(void *ctx, bool complete)
{
    fake_reply(ctx, complete ? 201 : 500, "text/plain", "stored");
}

static inline void upload(struct task *task)
{
    waiting = task;
    upload_bytes = upload_sum = 0;
    body_read(task->request->body, on_data, on_end, task);
}

static inline void early(struct task *task)
{
    struct err err;

    err_set(&err, ERR_NO_SPACE, "the disk is full");
    task->events->on_error(task->ctx, &err);
    fake_end(task);
}

static inline void file_answer(struct task *task)
{
    struct response response;

    response_init(&response);
    response.kind = RESPONSE_FILE;
    response.file =
        (struct response_file){.fd = memfd_create("file", MFD_CLOEXEC), .size = FILE_BYTES, .etag = "\"e\""};
    assert_int_equal(ftruncate(response.file.fd, FILE_BYTES - 3), 0);
    assert_int_equal(pwrite(response.file.fd, "end", 3, FILE_BYTES - 3), 3);
    task->events->on_response(task->ctx, &response);
    response_deinit(&response);
    fake_end(task);
}

/* Says more than there is, as for a file that was cut meanwhile. */
static inline void shrunk(struct task *task)
{
    struct response response;

    response_init(&response);
    response.kind = RESPONSE_FILE;
    response.file = (struct response_file){.fd = memfd_create("file", MFD_CLOEXEC), .size = 1000, .etag = "\"e\""};
    assert_int_equal(pwrite(response.file.fd, "short", 5, 0), 5);
    assert_int_equal(response_header(&response, "Content-Length", "7"), 0); /* not a handler's to say: left out */
    task->events->on_response(task->ctx, &response);
    response_deinit(&response);
    fake_end(task);
}

static inline void json(struct task *task)
{
    fake_reply(task, 200, "application/json", "{}");
}

static inline void big(struct task *task)
{
    char *text = calloc(1, BIG_BYTES + 1);

    memset(text, 'x', BIG_BYTES);
    fake_reply(task, 200, "text/plain", text);
    free(text);
}

static fake_handler handlers[] = {health, marker, hang, stream, upload, file_answer, json, early, big, shrunk};

/* The client's side */

static inline int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)http_listener_port(listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void turn(void)
{
    loop_turn(loop, false);
    usleep(200);
}

/* Sends all of it, letting the server run meanwhile; stops where the server has closed. */
static inline void send_bytes(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return;
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        }
        turn();
    }
}

static inline void send_text(int fd, const char *text)
{
    send_bytes(fd, text, strlen(text));
}

static char *inbox;
static size_t inbox_len;
static bool inbox_closed;

/* Reads until `until` was seen (NULL: until the end of the connection) or time is up. */
static inline const char *receive(int fd, const char *until, unsigned limit_ms)
{
    size_t cap = 16 * 1024 * 1024;
    uint64_t end_ns = loop_clock_ns() + (uint64_t)limit_ms * 1000000;

    if (!inbox)
        inbox = malloc(cap);
    inbox_len = 0;
    inbox_closed = false;
    inbox[0] = '\0';
    while (loop_clock_ns() < end_ns && !(until && strstr(inbox, until))) {
        ssize_t got = recv(fd, inbox + inbox_len, cap - 1 - inbox_len, MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            inbox_closed = true;
            break;
        }
        if (got > 0) {
            inbox_len += (size_t)got;
            inbox[inbox_len] = '\0';
        }
        turn();
    }
    return inbox;
}

static inline int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

static inline size_t count_of(const char *text, const char *what)
{
    size_t count = 0;

    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        count++;
    return count;
}

/* Runs until the server has let go of everything of the test's connections. */
static inline void settle(int fd)
{
    close(fd);
    for (int i = 0; i < 3000 && http_listener_connections(listener) > 0; i++)
        turn();
    assert_int_equal(http_listener_connections(listener), 0);
}

static inline int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static int descriptors_before;

static inline int set_up(void **state)
{
    static struct auth_policy policy = {.token = "token", .loopback = true};
    struct pipeline_options options = {.policy = &policy, .requests_max = 512};
    struct http_options http = {.host = "127.0.0.1",
                                .connections_max = 1000,
                                .idle_timeout_s = 10,
                                .head_timeout_ms = HEAD_MS,
                                .body_timeout_ms = BODY_MS};
    struct err err;

    (void)state;
    log_configure(LOG_LEVEL_OFF, true);
    fake_handlers = handlers;
    upload_paused = false;
    descriptors_before = open_descriptors();
    loop = options.loop = loop_new();
    pipeline = pipeline_new(&options, &err);
    listener = http_listener_new(loop, pipeline, &http, &err);
    if (!listener)
        return -1;
    policy.rest_port = http_listener_port(listener);
    pipeline_use(pipeline, &generation);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    http_listener_free(listener);
    pipeline_free(pipeline);
    loop_free(loop);
    free(inbox);
    inbox = NULL;
    return generation.references == 1 && fake_living == 0 && open_descriptors() == descriptors_before ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static inline void before_all(void)
{
    loop_free(loop_new()); /* libuv keeps a pipe for signals from its first loop on */
}

#endif
