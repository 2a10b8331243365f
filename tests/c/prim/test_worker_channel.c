/* prim/worker_channel: how much a line and what waits may be, and the ways it ends, with the other end in our hands. */
#include "prim/worker_channel.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 100 * 1024, OUT_MAX_BYTES = 2 * 1024 * 1024 };

static struct {
    struct loop *loop;
    struct worker_channel channel;
    int theirs;
    size_t lines, last_len;
    int closed;
    const char *why;
} at;

static void on_line(void *ctx, const char *line, size_t len)
{
    (void)ctx;
    (void)line;
    at.lines++;
    at.last_len = len;
}

static void on_closed(void *ctx, const char *why)
{
    (void)ctx;
    at.closed++;
    at.why = why;
}

static int set_up(void **state)
{
    struct err err;
    (void)state;
    memset(&at, 0, sizeof(at));
    at.loop = loop_new();
    assert_int_equal(worker_channel_open(&at.channel, at.loop, LINE_MAX_BYTES, OUT_MAX_BYTES, &at.theirs, &err), 0);
    at.channel.on_line = on_line;
    at.channel.on_closed = on_closed;
    worker_channel_send(&at.channel);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    worker_channel_deinit(&at.channel);
    if (at.theirs >= 0)
        close(at.theirs);
    assert_int_equal(loop_handles_open(at.loop), 0);
    loop_free(at.loop);
    return 0;
}

static void say_line(size_t len)
{
    char *line = malloc(len + 1);
    memset(line, 'x', len);
    line[len] = '\n';
    for (size_t sent = 0; sent < len + 1;) {
        ssize_t got = send(at.theirs, line + sent, len + 1 - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got > 0)
            sent += (size_t)got;
        else if (at.closed)
            break;
        loop_turn(at.loop, false);
    }
    free(line);
}

static void takes_lines_up_to_the_bound(void **state)
{
    (void)state;
    say_line(0);
    say_line(LINE_MAX_BYTES);
    say_line(LINE_MAX_BYTES);
    while (at.lines < 3)
        loop_turn(at.loop, true);
    assert_int_equal(at.last_len, LINE_MAX_BYTES);
    assert_int_equal(at.closed, 0);
    say_line(LINE_MAX_BYTES + 1);
    while (at.closed == 0)
        loop_turn(at.loop, true);
    assert_int_equal(at.lines, 3);
    assert_string_equal(at.why, "it sent a line that is too long");
    assert_int_equal(at.channel.fd, -1);
}

/* Who reads all the time, but always a bit behind, gets everything. */
static void room_comes_back_while_some_waits(void **state)
{
    (void)state;
    enum { CHUNK_BYTES = 64 * 1024 };
    static char chunk[CHUNK_BYTES];
    while (at.channel.sent == at.channel.out.len) { /* until its socket is full */
        assert_int_equal(buf_append(&at.channel.out, chunk, sizeof(chunk)), 0);
        worker_channel_send(&at.channel);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(recv(at.theirs, chunk, sizeof(chunk), MSG_WAITALL), CHUNK_BYTES);
        assert_int_equal(buf_append(&at.channel.out, chunk, sizeof(chunk)), 0);
        worker_channel_send(&at.channel);
        assert_true(at.channel.out.len > 0);
    }
}

static void hears_the_last_words_of_who_is_gone(void **state)
{
    (void)state;
    say_line(7);
    close(at.theirs);
    at.theirs = -1;
    assert_int_equal(buf_append_text(&at.channel.out, "too late\n"), 0);
    worker_channel_send(&at.channel);
    while (at.closed == 0)
        loop_turn(at.loop, true);
    assert_null(at.why);
    assert_int_equal(at.lines, 1);
    assert_int_equal(at.last_len, 7);
}

static void ends_who_does_not_read(void **state)
{
    (void)state;
    shutdown(at.theirs, SHUT_RD);
    say_line(5);
    loop_turn(at.loop, false);
    assert_int_equal(at.closed, 0); /* nothing was to be sent */
    say_line(6);
    assert_int_equal(buf_append_text(&at.channel.out, "hello\n"), 0);
    worker_channel_send(&at.channel);
    assert_int_equal(at.closed, 0); /* not from inside */
    for (int i = 0; i < 10 && at.closed == 0; i++)
        loop_turn(at.loop, true);
    assert_int_equal(at.closed, 1);
    assert_string_equal(at.why, "it does not read its channel");
    assert_int_equal(at.lines, 2);
    assert_int_equal(at.last_len, 6);
}

#define CHANNEL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHANNEL_TEST(takes_lines_up_to_the_bound),
        CHANNEL_TEST(room_comes_back_while_some_waits),
        CHANNEL_TEST(hears_the_last_words_of_who_is_gone),
        CHANNEL_TEST(ends_who_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
