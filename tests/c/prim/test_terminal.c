/* prim/terminal: its program's end, its size and signals, as real programs see them. */
#include "terminal_fixture.h"

static struct fixture fixture;
static struct test_client client, other;

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    detach(&client);
    detach(&other);
    fixture_close(&fixture);
    return 0;
}

static void short_programs_are_complete(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct fixture one;
        struct test_client reader = {0};
        fixture_open(&one);
        run(&one, "printf 'hello%.0s' {1..4096}; exit 5");
        attach(&one, &reader, TERMINAL_SINCE_ALL);
        assert_int_equal(run_to_end(&one), 5);
        loop_turn(one.loop, false);
        assert_int_equal(reader.len, 20480);
        assert_memory_equal(reader.bytes + 20475, "hello", 5);
        detach(&reader);
        fixture_close(&one);
    }
}

static void the_exit_comes_after_the_last_byte(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print(&fixture, "last", 4);
    close_slave(&fixture);
    end(&fixture, 3);
    assert_null(terminal_exit(fixture.terminal));
    assert_int_equal(fixture.drained, 0); /* never from inside the call */
    assert_int_equal(run_to_end(&fixture), 3);
    assert_string_equal(client.bytes, "last");
    detach(&client);
    attach(&fixture, &client, TERMINAL_SINCE_ALL); /* later, too */
    loop_turn(fixture.loop, false);
    assert_string_equal(client.bytes, "last");
    assert_int_equal(terminal_exit(fixture.terminal)->started_ms, 1);
}

static void half_a_character_at_the_end_is_given(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print(&fixture, "x\xE2\x82", 3);
    close_slave(&fixture);
    end(&fixture, 0);
    run_to_end(&fixture);
    loop_turn(fixture.loop, false);
    assert_string_equal(client.bytes, "x\xE2\x82");
}

static void others_that_hold_it_open_delay_nothing(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    print(&fixture, "own ", 4);
    end(&fixture, 0);
    print(&fixture, "kin", 3);
    run_to_end(&fixture);
    loop_turn(fixture.loop, false);
    assert_string_equal(client.bytes, "own kin");
    assert_int_equal(write(fixture.slave, "late", 4), -1); /* hung up on: nobody reads it any more */
    assert_int_equal(errno, EIO);
    turn_for_ms(&fixture, 20);
    assert_int_equal(terminal_offset(fixture.terminal), 7);
    assert_int_equal(fixture.drained, 1);
}

static void others_that_print_without_end_delay_nothing(void **state)
{
    (void)state;
    char bytes[4096];
    memset(bytes, 'y', sizeof(bytes));
    make_raw(&fixture);
    fcntl(fixture.slave, F_SETFL, O_NONBLOCK);
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    end(&fixture, 0);
    while (terminal_exit(fixture.terminal) == NULL) {
        (void)!write(fixture.slave, bytes, sizeof(bytes));
        loop_turn(fixture.loop, false);
    }
    assert_int_equal(fixture.drained, 1);
    assert_true(terminal_offset(fixture.terminal) <= (1 << 20) + (64 << 10));
}

static void a_slow_client_does_not_delay_the_end(void **state)
{
    (void)state;
    client.lazy = true;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    run(&fixture, "stty -opost; head -c 1060000 /dev/zero; echo tail; exit 4");
    assert_int_equal(run_to_end(&fixture), 4);
    take_all(&client);
    assert_int_equal(client.len, 1060005);
    assert_memory_equal(client.bytes + 1060000, "tail\n", 5);
}

static void a_program_may_close_its_terminal_and_open_it_again(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    run(&fixture, "exec 0<&- 1>&- 2>&-; sleep 0.3; echo again >/dev/tty; sleep 0.3; exit 6");
    await(&fixture, &client, "again");
    assert_int_equal(run_to_end(&fixture), 6);
}

static void one_that_cannot_be_watched_ends_all_the_same(void **state)
{
    (void)state;
    int drained = 0;
    struct terminal_exit exit = {.exit.exit_code = 129};
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC); /* epoll refuses it */
    struct terminal *terminal = terminal_new(file, fixture.view, count_call, &drained);
    terminal_run(terminal, fixture.loop);
    terminal_ended(terminal, &exit);
    while (drained == 0)
        loop_turn(fixture.loop, true);
    assert_int_equal(terminal_exit(terminal)->exit.exit_code, 129);
    terminal_unref(terminal);
}

static void a_new_size_reaches_the_program_and_the_others(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    attach(&fixture, &other, TERMINAL_SINCE_ALL);
    run(&fixture, "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done");
    await(&fixture, &client, "ready");
    terminal_resize(&client.client, (struct terminal_size){.cols = 132, .rows = 50});
    terminal_resize(&client.client, (struct terminal_size){.cols = 132, .rows = 50}); /* nothing new */
    await(&fixture, &client, "50 132");
    assert_int_equal(client.resized, 0);
    assert_int_equal(other.resized, 1);
    assert_int_equal(terminal_size(fixture.terminal).cols, 132);
    assert_int_equal(terminal_view_size(fixture.view).rows, 50);
    assert_int_equal(run_to_end(&fixture), 0);
}

static void signals_reach_the_foreground(void **state)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGHUP};
    struct err err = {0};
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    run(&fixture, "for s in INT QUIT TERM USR1 HUP; do trap \"echo got-$s\" $s; done; echo ready;"
                  "while :; do sleep 0.02; done");
    await(&fixture, &client, "ready");
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        char expected[32];
        snprintf(expected, sizeof(expected), "got-%s", sigabbrev_np(signals[i]));
        assert_int_equal(terminal_signal(&client.client, signals[i], &err), 0);
        await(&fixture, &client, expected);
    }
    assert_int_equal(terminal_signal(&client.client, SIGKILL, &err), 0);
    assert_int_equal(run_to_end(&fixture), 128 + SIGKILL);
    assert_int_equal(terminal_signal(&client.client, SIGINT, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
    err = (struct err){0};
    assert_int_equal(terminal_input(&client.client, "x", 1, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
}

static void a_terminal_without_a_foreground_takes_no_signal(void **state)
{
    struct err err = {0};
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL); /* nobody's controlling terminal: no group is in front */
    assert_int_equal(terminal_signal(&client.client, SIGTERM, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
}

/* Leads a session on the terminal, in whose foreground it leaves a group that has ended; tells the number. */
_Noreturn static void lead_a_dead_foreground(int slave, int out)
{
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    signal(SIGTTOU, SIG_IGN);
    pid_t group = fork();
    if (group == 0)
        for (;;)
            pause();
    setpgid(group, group);
    tcsetpgrp(slave, group);
    kill(group, SIGKILL);
    waitpid(group, NULL, 0);
    if (write(out, &group, sizeof(group)) != sizeof(group))
        _exit(1);
    for (;;)
        pause();
}

/* A process of that number, in a session of its own; -1 where this machine does not let us choose. */
static pid_t take_number(pid_t wanted)
{
    for (int tries = 0; tries < 200; tries++) {
        int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || dprintf(fd, "%d", (int)wanted - 1) < 0)
            return -1;
        close(fd);
        pid_t newcomer = fork();
        if (newcomer == 0) {
            setsid();
            for (;;)
                pause();
        }
        if (newcomer == wanted)
            return newcomer;
        kill(newcomer, SIGKILL);
        waitpid(newcomer, NULL, 0);
    }
    return -1;
}

static void a_group_that_has_ended_is_no_foreground(void **state)
{
    struct err err = {0};
    int told[2];
    pid_t group = 0;
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    fixture.program = fork();
    if (fixture.program == 0)
        lead_a_dead_foreground(fixture.slave, told[1]);
    assert_int_equal(read(told[0], &group, sizeof(group)), sizeof(group));
    close(told[0]);
    close(told[1]);
    close_slave(&fixture);
    assert_int_equal(terminal_signal(&client.client, SIGTERM, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
    pid_t newcomer = take_number(group);
    if (newcomer < 0) {
        printf("NOT RUN: a recycled foreground group: this machine refuses ns_last_pid\n");
        return;
    }
    assert_int_equal(terminal_signal(&client.client, SIGTERM, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXITED);
    turn_for_ms(&fixture, 50);
    assert_int_equal(waitpid(newcomer, NULL, WNOHANG), 0); /* it lives */
    kill(newcomer, SIGKILL);
    waitpid(newcomer, NULL, 0);
}

static void keys_interrupt_and_suspend(void **state)
{
    (void)state;
    attach(&fixture, &client, TERMINAL_SINCE_ALL);
    run(&fixture, "set -m; PS1='$ ' exec bash --norc --noprofile -i");
    await(&fixture, &client, "$ ");
    type_text(&client, "sleep 100\n");
    await(&fixture, &client, "sleep 100\r\n");
    turn_for_ms(&fixture, 100);
    type_text(&client, "\x1A");
    await(&fixture, &client, "Stopped");
    type_text(&client, "fg\n");
    await(&fixture, &client, "fg\r\n");
    turn_for_ms(&fixture, 100);
    type_text(&client, "\x03");
    type_text(&client, "echo status-$?\n");
    await(&fixture, &client, "status-130");
    type_text(&client, "exit 9\n");
    assert_int_equal(run_to_end(&fixture), 9);
}

static void the_last_reference_hangs_the_program_up(void **state)
{
    (void)state;
    struct fixture one;
    int status = 0;
    fixture_open(&one);
    run(&one, "exec sleep 100");
    turn_for_ms(&one, 20);
    terminal_unref(one.terminal);
    assert_int_equal(waitpid(one.program, &status, 0), one.program);
    assert_int_equal(WTERMSIG(status), SIGHUP);
    terminal_view_unref(one.view);
    loop_free(one.loop);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_programs_are_complete),
        TEST(the_exit_comes_after_the_last_byte),
        TEST(half_a_character_at_the_end_is_given),
        TEST(others_that_hold_it_open_delay_nothing),
        TEST(others_that_print_without_end_delay_nothing),
        TEST(a_slow_client_does_not_delay_the_end),
        TEST(a_program_may_close_its_terminal_and_open_it_again),
        TEST(one_that_cannot_be_watched_ends_all_the_same),
        TEST(a_new_size_reaches_the_program_and_the_others),
        TEST(signals_reach_the_foreground),
        TEST(a_terminal_without_a_foreground_takes_no_signal),
        TEST(a_group_that_has_ended_is_no_foreground),
        TEST(keys_interrupt_and_suspend),
        cmocka_unit_test(the_last_reference_hangs_the_program_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
