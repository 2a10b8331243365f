/* Heads and bodies that could be read in two ways, are too large or too slow: refused or closed, nothing smuggled. */
#include "http_fixture.h"

static void ambiguous_framing_closes(void **state)
{
    static const char *const heads[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length : 5\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Transfer-Encoding: \vchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "X: a\r\n Transfer-Encoding: chunked\r\n",
        "X: a\r\n\tb\r\n",
        "X y: a\r\n",
        ": a\r\n",
        "no colon\r\n",
        "X: a\nY: b\r\n",
        "X: a\rY: b\r\n",
        "X: a\x01\r\n",
        "Host: localhost\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        int fd = dial(), status;
        char request[1024];

        markers = 0;
        snprintf(request, sizeof(request),
                 "POST /upload HTTP/1.1\r\nHost: localhost\r\n%s\r\n0\r\n\r\nGET /marker HTTP/1.1\r\nHost: "
                 "localhost\r\n\r\n",
                 heads[i]);
        send_text(fd, request);
        status = status_of(receive(fd, NULL, 2000));
        if ((status != 400 && status != 413) || !inbox_closed || markers)
            fail_msg("%s: status %d, closed %d, markers %d", heads[i], status, inbox_closed, markers);
        settle(fd);
    }
}

static void malformed_heads_close(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } requests[] = {
#define RAW(text) {text, sizeof(text) - 1}
        RAW("GET /health HTTP/1.1\nHost: localhost\r\n\r\n"),
        RAW("GET /health HTTP/1.1\r\nHost: localhost\n\r\n"),
        RAW("GET /health HTTP/1.1\r\nHost: localhost\r\n\n"),
        RAW("GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"),
        RAW("GET /health HTTP/1.1\r\nHost: localhost\0.evil\r\n\r\n"),
        RAW("GET /health\0x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RAW("GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RAW("GET /health  HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RAW("GET /health x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RAW("GET /health HTTP/1.1\r\n\r\n"),
        RAW("GET /health HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n"),
        RAW("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        RAW("POST /upload HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        RAW("GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n"),
        RAW("GET /health\r\nHost: localhost\r\n\r\n"),
        RAW("\x16\x03\x01\x02\x00\x01\r\n\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int fd = dial(), status;

        markers = 0;
        send_bytes(fd, requests[i].bytes, requests[i].len);
        status = status_of(receive(fd, "\r\n\r\n", 700));
        if (status == 200 || (status == 0 && !inbox_closed))
            fail_msg("request %zu: status %d closed %d: %s", i, status, inbox_closed, inbox);
        settle(fd);
    }
}

static void malformed_chunks_close(void **state)
{
    static const char *const bodies[] = {"0x5\r\nhello\r\n0\r\n\r\n",
                                         "00000000000000005x\r\nhello\r\n0\r\n\r\n",
                                         "12345678901234567\r\nhello\r\n0\r\n\r\n",
                                         "5\r\nhelloX0\r\n\r\n",
                                         " 5\r\nhello\r\n0\r\n\r\n",
                                         "-5\r\nhello\r\n0\r\n\r\n",
                                         "\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        int fd = dial(), status;

        markers = 0;
        send_text(fd, "POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        send_text(fd, bodies[i]);
        send_text(fd, "GET /marker HTTP/1.1\r\nHost: localhost\r\n\r\n");
        status = status_of(receive(fd, NULL, 2000));
        if ((status != 400 && status != 413) || !inbox_closed || markers)
            fail_msg("body %zu: status %d, closed %d, markers %d", i, status, inbox_closed, markers);
        settle(fd);
    }
}

static void oversized_heads(void **state)
{
    char *head = malloc(100 * 1024);
    int fd = dial();

    (void)state;
    memset(head, 'a', 100 * 1024);
    send_text(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
    send_bytes(fd, head, 100 * 1024);
    assert_int_equal(status_of(receive(fd, NULL, 2000)), 431);
    assert_true(inbox_closed);
    settle(fd);
    fd = dial();
    send_text(fd, "GET /");
    send_bytes(fd, head, 100 * 1024);
    assert_int_equal(status_of(receive(fd, NULL, 2000)), 414);
    settle(fd);
    free(head);
}

/* libmicrohttpd must not parse them: its memory for a connection ends at some 480. */
static void many_arguments(void **state)
{
    static const int counts[] = {1, 400, 480, 500, 1000, 5000};
    static const char *const argument[] = {"a=b&", "a&", "&", "?", "a=%00&"};
    static char request[64 * 1024];

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t j = 0; j < sizeof(argument) / sizeof(argument[0]); j++) {
            int fd = dial(), status;
            size_t len = (size_t)sprintf(request, "GET /health?");

            for (int k = 0; k < counts[i]; k++)
                len += (size_t)sprintf(request + len, "%s", argument[j]);
            sprintf(request + len, "c HTTP/1.1\r\nHost: localhost\r\n\r\n");
            send_text(fd, request);
            send_text(fd, "GET /marker HTTP/1.1\r\nHost: localhost\r\n\r\n");
            status = status_of(receive(fd, "MARKER", HEAD_MS / 2));
            if (status == 414 || (status == 400 && inbox_closed)) /* at once, too */
                assert_int_equal(count_of(inbox, "MARKER"), 0);
            else if ((status != 200 && status != 400) || count_of(inbox, "MARKER") != 1)
                fail_msg("%d of %s: status %d, closed %d: %.200s", counts[i], argument[j], status, inbox_closed, inbox);
            settle(fd);
        }
    }
}

/* What is wrong is said, where we say it. */
static void details_of_malformed_heads(void **state)
{
    static const struct {
        const char *head, *detail;
    } cases[] = {
        {"Transfer-Encoding : x\r\n", "a header has a blank before its colon"},
        {"X(A: b\r\n", "holds a character that is not allowed"},
        {"X y: b\r\n", "holds a character that is not allowed"},
        {" X: b\r\n", "a header is folded over two lines"},
        {"X: a\r\n b\r\n", "a header is folded over two lines"},
        {"X: a\r\n b: c\r\nY: d\r\n", "a header is folded over two lines"},
        {"X: a\nY: b\r\n", "does not end with CRLF"},
        {"X: a\x01\r\n", "control characters"},
        {"Transfer-Encoding: gzip\r\n", "the only Transfer-Encoding"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = dial();
        char request[1024];

        snprintf(request, sizeof(request), "GET /health HTTP/1.1\r\nHost: localhost\r\n%s\r\n", cases[i].head);
        send_text(fd, request);
        receive(fd, NULL, 2000);
        if (status_of(inbox) != 400 || !inbox_closed || !strstr(inbox, cases[i].detail))
            fail_msg("%s: %s", cases[i].head, inbox);
        settle(fd);
    }
}

static void chunked_bodies_with_trailers(void **state)
{
    int fd = dial();

    (void)state;
    upload_paused = false;
    send_text(fd, "POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n");
    send_text(fd, "A;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /marker HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(fd, "MARKER", 2000);
    assert_int_equal(status_of(inbox), 201);
    assert_int_equal(upload_bytes, 15);
    settle(fd);
}

static void slow_clients_are_closed(void **state)
{
    int fds[200], next;
    size_t sent = 0;
    uint64_t began = loop_clock_ns();

    (void)state;
    for (int i = 0; i < 200; i++) {
        fds[i] = dial();
        send_text(fds[i], i % 3 == 0 ? "G" : i % 3 == 1 ? "GET /health HTTP/1.1\r\nHost: loc" : "");
    }
    next = dial();
    send_text(next, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(status_of(receive(next, "\"ok\"}", 1000)), 200);
    close(next);
    /* dripping does not help */
    while (loop_clock_ns() - began < 3000000000 && http_listener_connections(listener) > 0) {
        if (send(fds[0], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
            sent++;
        for (int i = 0; i < 20; i++)
            turn();
    }
    assert_int_equal(http_listener_connections(listener), 0);
    assert_true(sent > 0);
    for (int i = 0; i < 200; i++)
        close(fds[i]);
    fds[0] = dial();
    send_text(fds[0], "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    receive(fds[0], NULL, 2000);
    assert_true(inbox_closed);
    assert_int_equal(fake_living, 0);
    settle(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ambiguous_framing_closes),     TEST(malformed_heads_close),
        TEST(malformed_chunks_close),       TEST(many_arguments),
        TEST(details_of_malformed_heads),   TEST(oversized_heads),
        TEST(chunked_bodies_with_trailers), TEST(slow_clients_are_closed),
    };

    before_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
