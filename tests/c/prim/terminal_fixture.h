/* What the tests of terminals share: a terminal whose slave end the test or a program of its own holds, clients that
 * keep what they read, and a check for leaks. */
#ifndef ABX_TEST_TERMINAL_FIXTURE_H
#define ABX_TEST_TERMINAL_FIXTURE_H

#include "prim/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

struct fixture {
    struct loop *loop;
    struct terminal *terminal;
    struct terminal_view *view;
    int slave; /* -1: closed, or the program's alone */
    pid_t program;
    bool reaped;
    int drained;      /* calls */
    uint64_t printed; /* by the test itself */
    size_t fds_before;
};

static inline size_t count_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static inline void count_call(void *ctx)
{
    ++*(int *)ctx;
}

static inline void fixture_open(struct fixture *fixture)
{
    struct terminal_size size = {.cols = 80, .rows = 24};
    loop_free(loop_new()); /* libuv opens descriptors of its own once for the whole program */
    *fixture = (struct fixture){.fds_before = count_fds(), .slave = -1};
    signal(SIGPIPE, SIG_IGN);
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_int_equal(unlockpt(master), 0);
    fixture->slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fixture->slave >= 0);
    fixture->loop = loop_new();
    fixture->view = terminal_view_new(size);
    fixture->terminal = terminal_new(master, fixture->view, count_call, &fixture->drained);
    assert_non_null(fixture->terminal);
    terminal_run(fixture->terminal, fixture->loop);
}

static inline void close_slave(struct fixture *fixture)
{
    if (fixture->slave >= 0)
        close(fixture->slave);
    fixture->slave = -1;
}

static inline void fixture_close(struct fixture *fixture)
{
    terminal_unref(fixture->terminal); /* hangs the program up */
    if (fixture->program > 0 && !fixture->reaped) {
        kill(fixture->program, SIGKILL);
        waitpid(fixture->program, NULL, 0);
    }
    assert_int_equal(atomic_load(&fixture->view->clients), 0);
    assert_int_equal(atomic_load(&fixture->view->references), 1);
    terminal_view_unref(fixture->view);
    close_slave(fixture);
    assert_int_equal(loop_handles_open(fixture->loop), 0);
    loop_free(fixture->loop);
    assert_int_equal(count_fds(), fixture->fds_before);
}

/* What a shell says to a command that gets this terminal as its controlling one. */
static inline void run(struct fixture *fixture, const char *command)
{
    fixture->program = fork();
    assert_true(fixture->program >= 0);
    if (fixture->program == 0) {
        setsid();
        ioctl(fixture->slave, TIOCSCTTY, 0);
        for (int fd = 0; fd < 3; fd++)
            dup2(fixture->slave, fd);
        execl("/bin/bash", "bash", "--norc", "--noprofile", "-c", command, NULL);
        _exit(127);
    }
    close_slave(fixture);
}

static inline void end(struct fixture *fixture, int exit_code)
{
    struct terminal_exit exit = {.exit = {.exit_code = exit_code}, .started_ms = 1};
    terminal_ended(fixture->terminal, &exit);
}

/* One turn; the exit of the program is told as prim/terminals does. */
static inline void turn(struct fixture *fixture)
{
    int status = 0;
    loop_turn(fixture->loop, true);
    if (fixture->program > 0 && !fixture->reaped && waitpid(fixture->program, &status, WNOHANG) > 0) {
        fixture->reaped = true;
        end(fixture, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
}

static inline int run_to_end(struct fixture *fixture)
{
    while (terminal_exit(fixture->terminal) == NULL)
        turn(fixture);
    assert_int_equal(fixture->drained, 1);
    return terminal_exit(fixture->terminal)->exit.exit_code;
}

static inline void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static inline void turn_for_ms(struct fixture *fixture, unsigned ms)
{
    struct loop_timer timer = {0};
    bool over = false;
    loop_timer_start(fixture->loop, &timer, ms, set_true, &over);
    while (!over)
        turn(fixture);
}

/* --- a client that keeps what it reads */

struct test_client {
    struct terminal_client client;
    bool lazy;  /* takes nothing by itself */
    size_t max; /* of one read; 0: much */
    char *bytes;
    size_t len, cap;
    struct terminal_gap gaps[8];
    int gap_count, reads, resized, input_events;
    size_t read_lens[64];
};

static inline void take_all(struct test_client *test)
{
    struct terminal_gap gap;
    for (;;) {
        size_t max = test->max != 0 ? test->max : 256 * 1024;
        if (test->cap - test->len < max) {
            test->cap = test->cap * 2 + max;
            test->bytes = realloc(test->bytes, test->cap + 1);
        }
        size_t len = terminal_read(&test->client, test->bytes + test->len, max, &gap);
        test->bytes[test->len + len] = '\0';
        if (gap.from != gap.to) {
            assert_int_equal(len, 0);
            assert_int_equal(test->client.offset, gap.to);
            test->gaps[test->gap_count++] = gap;
            continue;
        }
        if (len == 0)
            break;
        if (test->reads < 64)
            test->read_lens[test->reads] = len;
        test->reads++;
        test->len += len;
    }
    assert_false(terminal_has_more(&test->client));
}

static inline void on_output(void *ctx)
{
    struct test_client *test = ctx;
    if (!test->lazy)
        take_all(test);
}

static inline void on_resized(void *ctx)
{
    ((struct test_client *)ctx)->resized++;
}

static inline void on_input(void *ctx)
{
    ((struct test_client *)ctx)->input_events++;
}

static inline void attach(struct fixture *fixture, struct test_client *test, int64_t since)
{
    static const struct terminal_client_events events = {on_output, on_resized, on_input};
    struct err err = {0};
    test->client.events = &events;
    test->client.ctx = test;
    if (terminal_attach(fixture->terminal, &test->client, since, &err) != 0)
        fail_msg("%s", err.text);
}

static inline void detach(struct test_client *test)
{
    terminal_detach(&test->client);
    free(test->bytes);
    *test = (struct test_client){0};
}

static inline const char *text_of(const struct test_client *test)
{
    return test->bytes != NULL ? test->bytes : "";
}

/* Turns until this text is among what came. */
static inline void await(struct fixture *fixture, struct test_client *test, const char *text)
{
    while (strstr(text_of(test), text) == NULL)
        turn(fixture);
}

static inline void type(struct test_client *test, const char *bytes, size_t len)
{
    struct err err = {0};
    if (terminal_input(&test->client, bytes, len, &err) != 0)
        fail_msg("%s", err.text);
}

static inline void type_text(struct test_client *test, const char *text)
{
    type(test, text, strlen(text));
}

/* The program's side, held by the test: bytes as they are, no echo, no signals. */
static inline void make_raw(struct fixture *fixture)
{
    struct termios modes;
    assert_int_equal(tcgetattr(fixture->slave, &modes), 0);
    cfmakeraw(&modes);
    assert_int_equal(tcsetattr(fixture->slave, TCSANOW, &modes), 0);
}

static inline void print(struct fixture *fixture, const char *bytes, size_t len)
{
    assert_int_equal(write(fixture->slave, bytes, len), (ssize_t)len);
    fixture->printed += len;
}

/* Turns until all that was printed so far has come, and the clients were told. */
static inline void await_printed(struct fixture *fixture)
{
    while (terminal_offset(fixture->terminal) < fixture->printed)
        turn(fixture);
    loop_turn(fixture->loop, false);
}

/* More than the kernel holds: the loop turns meanwhile. */
static inline void print_much(struct fixture *fixture, const char *bytes, size_t len)
{
    fcntl(fixture->slave, F_SETFL, O_NONBLOCK);
    for (size_t at = 0; at < len;) {
        ssize_t written = write(fixture->slave, bytes + at, len - at);
        if (written > 0)
            at += (size_t)written;
        loop_turn(fixture->loop, false);
    }
    fcntl(fixture->slave, F_SETFL, 0);
    fixture->printed += len;
    await_printed(fixture);
}

#endif
