/* Answers that come later or bit by bit, and clients that leave meanwhile. */
#include "http_fixture.h"

#include "net/http_connection.h"

static void answers_that_come_later(void **state)
{
    int fd = dial();

    (void)state;
    send_text(fd, "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\nGET /marker HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(fd, "HTTP", 300);
    assert_int_equal(inbox_len, 0);
    fake_reply(waiting, 200, "text/plain", "later");
    receive(fd, "MARKER", 1000);
    assert_non_null(strstr(inbox, "later"));
    assert_int_equal(count_of(inbox, "HTTP/1.1 200"), 2);
    settle(fd);
}

static void streams_flow_and_end(void **state)
{
    char text[200];
    int fd = dial();

    (void)state;
    send_text(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(fd, "\r\n\r\n", 1000);
    assert_int_equal(status_of(inbox), 200);
    assert_non_null(strstr(inbox, "Transfer-Encoding: chunked"));
    for (int i = 0; i < 3; i++) {
        uint64_t began = loop_clock_ns();

        snprintf(text, sizeof(text), "data: %d\n\n", i);
        assert_int_equal(sink_write(waiting->sink, text, strlen(text)), SINK_OK);
        receive(fd, text, 1000);
        assert_non_null(strstr(inbox, text));
        assert_true(loop_clock_ns() - began < 50000000);
    }
    sink_end(waiting->sink, true);
    fake_end(waiting);
    receive(fd, "0\r\n\r\n", 1000);
    assert_string_equal(inbox, "0\r\n\r\n");
    send_text(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(fd, "\r\n\r\n", 1000);
    sink_end(waiting->sink, false);
    fake_end(waiting);
    receive(fd, NULL, 1000);
    assert_true(inbox_closed);
    assert_null(strstr(inbox, "0\r\n\r\n")); /* cut, so that nobody takes it for whole */
    settle(fd);
}

static void head_of_a_stream_ends_it(void **state)
{
    int fd = dial(), cancelled = fake_cancelled;

    (void)state;
    send_text(fd, "HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\nGET /marker HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(fd, NULL, 1000);
    assert_non_null(strstr(inbox, "text/event-stream"));
    assert_non_null(strstr(inbox, "Connection: close"));
    assert_true(inbox_closed);
    assert_string_equal(strstr(inbox, "\r\n\r\n"), "\r\n\r\n"); /* and no chunk behind it */
    assert_int_equal(fake_cancelled, cancelled + 1);
    assert_int_equal(fake_living, 0);
    settle(fd);
}

static void slow_readers_hold_the_producer(void **state)
{
    static char piece[65536];
    enum sink_write written = SINK_OK;
    int fd = dial();

    (void)state;
    send_text(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive(fd, "\r\n\r\n", 1000);
    for (int i = 0; i < 1000 && written == SINK_OK; i++) {
        written = sink_write(waiting->sink, piece, sizeof(piece));
        for (int j = 0; j < 20 && written == SINK_FULL && i < 300; j++) {
            turn();
            if (sink_room(waiting->sink) > 0)
                written = SINK_OK;
        }
    }
    assert_int_equal(written, SINK_FULL);
    settle(fd);
    assert_int_equal(fake_living, 0);
}

static void clients_that_leave_are_noticed(void **state)
{
    int fds[50], cancelled = fake_cancelled;

    (void)state;
    for (int i = 0; i < 50; i++) {
        fds[i] = dial();
        send_text(fds[i], i % 2 ? "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
                                : "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    receive(fds[1], "\r\n\r\n", 1000);
    for (int i = 0; i < 50; i++) {
        if (i % 3 == 0)
            setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        close(fds[i]);
    }
    for (int i = 0; i < 2000 && fake_living > 0; i++)
        turn();
    assert_int_equal(fake_living, 0);
    assert_int_equal(fake_cancelled, cancelled + 50);
    settle(dial());
}

static void uploads_cut_off_are_noticed(void **state)
{
    int fd = dial(), cancelled = fake_cancelled;

    (void)state;
    send_text(fd, "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    settle(fd);
    assert_int_equal(fake_cancelled, cancelled + 1);
    fd = dial();
    send_text(fd, "POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    settle(fd);
    assert_int_equal(fake_cancelled, cancelled + 2);
}

static void half_closed_clients_get_quick_answers(void **state)
{
    int fd = dial();

    (void)state;
    send_text(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    shutdown(fd, SHUT_WR);
    assert_int_equal(status_of(receive(fd, NULL, 1000)), 200);
    assert_true(inbox_closed);
    settle(fd);
}

/* Neither an answer that is late nor a stream goes on for one that closed its side. */
static void half_closed_clients_that_wait_count_as_gone(void **state)
{
    static const char *const requests[] = {"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                           "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                           "HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int fd = dial(), cancelled = fake_cancelled;

        send_text(fd, requests[i]);
        shutdown(fd, SHUT_WR);
        receive(fd, NULL, HTTP_WATCH_AFTER_MS * 10);
        assert_true(inbox_closed);
        assert_null(strstr(inbox, "0\r\n\r\n"));
        assert_int_equal(fake_cancelled, cancelled + 1);
        assert_int_equal(fake_living, 0);
        settle(fd);
    }
    for (int late = 0; late < 2; late++) { /* an answer before that time is delivered */
        int fd = dial();

        send_text(fd, late ? requests[1] : requests[0]);
        shutdown(fd, SHUT_WR);
        receive(fd, late ? "\r\n\r\n" : "HTTP", HTTP_WATCH_AFTER_MS / 4);
        if (late) {
            assert_int_equal(sink_write(waiting->sink, "tail", 4), SINK_OK);
            sink_end(waiting->sink, true);
            fake_end(waiting);
        } else {
            fake_reply(waiting, 200, "text/plain", "tail");
        }
        receive(fd, NULL, 1000);
        assert_non_null(strstr(inbox, "tail"));
        assert_true(inbox_closed);
        settle(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_that_come_later),
        TEST(streams_flow_and_end),
        TEST(head_of_a_stream_ends_it),
        TEST(slow_readers_hold_the_producer),
        TEST(clients_that_leave_are_noticed),
        TEST(uploads_cut_off_are_noticed),
        TEST(half_closed_clients_get_quick_answers),
        TEST(half_closed_clients_that_wait_count_as_gone),
    };

    before_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
