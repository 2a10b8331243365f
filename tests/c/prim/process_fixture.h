/* What the tests of processes and sessions share: a loop with a table, runs to their end, and a check for leaks. */
#ifndef ABX_TEST_PROCESS_FIXTURE_H
#define ABX_TEST_PROCESS_FIXTURE_H

#include "prim/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct fixture {
    struct loop *loop;
    struct process_table *table;
    struct env_block env;
    int cwd_fd;
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

static inline void fixture_open(struct fixture *fixture, size_t living_max)
{
    struct process_limits limits = {.living_max = living_max,
                                    .terminals_max = living_max,
                                    .ended_processes_max = 256,
                                    .ended_shells_max = 64,
                                    .ended_output_max_bytes = 64 << 20};
    struct err err;
    loop_free(loop_new()); /* libuv opens descriptors of its own once for the whole program */
    *fixture = (struct fixture){.fds_before = count_fds()};
    signal(SIGPIPE, SIG_IGN);
    fixture->loop = loop_new();
    fixture->table = process_table_new(fixture->loop, &limits, environ, &err);
    assert_non_null(fixture->table);
    env_block_init(&fixture->env);
    char *path[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    assert_int_equal(env_block_inherit(&fixture->env, path), 0);
    fixture->cwd_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void fixture_close(struct fixture *fixture)
{
    process_table_free(fixture->table);
    assert_int_equal(loop_handles_open(fixture->loop), 0);
    loop_free(fixture->loop);
    env_block_deinit(&fixture->env);
    close(fixture->cwd_fd);
    assert_int_equal(count_fds(), fixture->fds_before);
}

static inline struct process_spec spec_of(struct fixture *fixture, const char *command)
{
    return (struct process_spec){.kind = PROCESS_SHELL,
                                 .command = command,
                                 .command_len = command != NULL ? strlen(command) : 0,
                                 .cwd_fd = fixture->cwd_fd,
                                 .cwd = "/tmp",
                                 .env = &fixture->env,
                                 .stdin_fd = -1,
                                 .capture_bytes = 1 << 20};
}

static inline struct process *start(struct fixture *fixture, const struct process_spec *spec)
{
    struct err err = {0};
    struct process *process = process_start(fixture->table, spec, &err);
    if (process == NULL)
        fail_msg("%s", err.text);
    return process_ref(process);
}

static inline void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

/* Turns the loop until the process is PROCESS_DRAINED. */
static inline struct process_exit run_to_end(struct fixture *fixture, struct process *process)
{
    struct process_wait wait = {0};
    struct process_exit exit;
    bool ended = false;
    process_wait_start(process, &wait, set_true, &ended);
    while (!ended)
        loop_turn(fixture->loop, true);
    assert_int_equal(process_state(process), PROCESS_DRAINED);
    assert_int_equal(process_exit(process, &exit), 0);
    return exit;
}

static inline void turn_for_ms(struct fixture *fixture, unsigned ms)
{
    struct loop_timer timer = {0};
    bool over = false;
    loop_timer_start(fixture->loop, &timer, ms, set_true, &over);
    while (!over)
        loop_turn(fixture->loop, true);
}

/* Head and tail joined and terminated; the caller frees it. */
static inline char *captured(struct process *process, enum process_stream stream)
{
    struct capture_view view;
    process_captured(process, stream, &view);
    char *text = malloc(view.head_len + view.tail_len + 1);
    if (view.head_len > 0)
        memcpy(text, view.head, view.head_len);
    if (view.tail_len > 0)
        memcpy(text + view.head_len, view.tail, view.tail_len);
    text[view.head_len + view.tail_len] = '\0';
    return text;
}

static inline void expect_output(struct process *process, enum process_stream stream, const char *expected)
{
    char *text = captured(process, stream);
    assert_string_equal(text, expected);
    free(text);
}

/* Runs a command to its end and checks what it said and answered. */
static inline void expect_run(struct fixture *fixture, const char *command, int exit_code, const char *expected)
{
    struct process_spec spec = spec_of(fixture, command);
    struct process *process = start(fixture, &spec);
    struct process_exit exit = run_to_end(fixture, process);
    expect_output(process, PROCESS_STDOUT, expected);
    assert_int_equal(exit.exit_code, exit_code);
    process_unref(process);
}

static inline size_t count_zombies(void)
{
    size_t count = 0;
    char command[64], line[64];
    snprintf(command, sizeof(command), "ps -o stat= --ppid %d", (int)getpid());
    FILE *ps = popen(command, "r");
    while (fgets(line, sizeof(line), ps) != NULL)
        count += line[0] == 'Z';
    pclose(ps);
    return count;
}

#endif
