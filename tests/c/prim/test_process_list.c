/* prim/process_list with what it stands on: command lines, looks into /proc, copies of the table. */
#include "process_fixture.h"

#include "prim/process_list.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ANSWER_MAX_BYTES = 16 << 20 };

static struct fixture fixture;
static struct buf answer;

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture, 512);
    buf_init(&answer, ANSWER_MAX_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&answer);
    fixture_close(&fixture);
    return 0;
}

static const char *text(void)
{
    assert_int_equal(buf_append(&answer, "", 1), 0);
    answer.len--;
    return answer.data;
}

/* --- command lines */

static const char *shown(const struct command_line *line)
{
    struct buf scratch;
    buf_reset(&answer);
    buf_init(&scratch, 1 << 20);
    assert_int_equal(command_line_write(&answer, &scratch, line), 0);
    buf_deinit(&scratch);
    return text();
}

static void expect_argv(const char *expected, const char *bytes, size_t len)
{
    struct command_line line = {.bytes = (char *)bytes, .len = len};
    assert_string_equal(shown(&line), expected);
}

static void command_lines(void **state)
{
    (void)state;
    expect_argv("\"command\":\"a b c\",\"argv\":[\"a\",\"b c\"]", "a\0b c\0", 6);
    expect_argv("\"command\":\"a b\",\"argv\":[\"a\",\"b\"]", "a\0b", 3);
    expect_argv("\"command\":\"a  b\",\"argv\":[\"a\",\"\",\"b\",\"\",\"\"]", "a\0\0b\0\0\0", 7);
    expect_argv("\"command\":\"\",\"argv\":[\"\"]", "\0", 1);
    expect_argv("\"command\":\"\",\"argv\":[]", "", 0);
    expect_argv("\"command\":\"\\n\\\" \xef\xbf\xbd\",\"argv\":[\"\\n\\\"\",\"\xef\xbf\xbd\"]", "\n\"\0\xff\0", 5);
    expect_argv("\"command\":\"x --password *** y\",\"argv\":[\"x\",\"--password\",\"***\",\"y\"]",
                "x\0--password\0pw\0y\0", 18);
    expect_argv("\"command\":\"http://u:***@h\",\"argv\":[\"http://u:***@h\"]", "http://u:pw@h\0", 14);
    struct command_line name = {.bytes = "[kthreadd]", .len = 10, .form = COMMAND_LINE_NAME};
    assert_string_equal(shown(&name), "\"command\":\"[kthreadd]\",\"argv\":[]");
}

static void keeps_what_was_given(void **state)
{
    (void)state;
    struct command_line line;
    char *argv[] = {"echo", "", "a b", NULL};
    assert_int_equal(command_line_keep_argv(&line, argv), 0);
    assert_string_equal(shown(&line), "\"command\":\"echo  a b\",\"argv\":[\"echo\",\"\",\"a b\"]");
    command_line_deinit(&line);
    assert_int_equal(command_line_keep_text(&line, "X_TOKEN=1 y", 11), 0);
    assert_string_equal(shown(&line), "\"command\":\"X_TOKEN=*** y\",\"argv\":null");
    command_line_deinit(&line);
    assert_int_equal(command_line_keep_text(&line, "", 0), 0);
    assert_string_equal(shown(&line), "\"command\":\"\",\"argv\":null");
    command_line_deinit(&line);
}

/* The cut may take the '@' that tells a password, or half of a character. */
static void cuts_at_8_kib(void **state)
{
    (void)state;
    static char long_text[COMMAND_LINE_MAX_BYTES + 20];
    struct command_line line;
    memset(long_text, 'x', sizeof(long_text));
    assert_int_equal(command_line_keep_text(&line, long_text, COMMAND_LINE_MAX_BYTES), 0);
    assert_false(line.truncated);
    command_line_deinit(&line);
    memcpy(long_text + COMMAND_LINE_MAX_BYTES - 20, " http://u:secretsecretsecret@host", 33);
    assert_int_equal(command_line_keep_text(&line, long_text, sizeof(long_text)), 0);
    assert_true(line.truncated);
    assert_non_null(strstr(shown(&line), "x http://u:***\",\"command_truncated\":true,\"argv\":null"));
    command_line_deinit(&line);
    memcpy(long_text + COMMAND_LINE_MAX_BYTES - 20, "0123456789012345678\xe2\x82\xac", 22);
    char *argv[] = {long_text + COMMAND_LINE_MAX_BYTES - 20, NULL};
    long_text[sizeof(long_text) - 1] = '\0';
    assert_int_equal(command_line_keep_argv(&line, argv), 0);
    assert_false(line.truncated);
    command_line_deinit(&line);
    argv[0] = long_text;
    assert_int_equal(command_line_keep_argv(&line, argv), 0);
    assert_true(line.truncated);
    assert_int_equal(line.len, COMMAND_LINE_MAX_BYTES);
    assert_non_null(strstr(shown(&line), "x0123456789012345678\",\"command_truncated\":true,\"argv\":[\"x"));
    assert_null(strstr(text(), "\xef\xbf\xbd"));
    command_line_deinit(&line);
    char *many[] = {long_text + 10, "another", NULL};
    long_text[10 + COMMAND_LINE_MAX_BYTES - 1] = '\0'; /* the first word fills it exactly, with its end */
    assert_int_equal(command_line_keep_argv(&line, many), 0);
    assert_true(line.truncated);
    command_line_deinit(&line);
}

/* --- lists */

static const char *list(struct process_filter filter)
{
    struct process_rows rows;
    struct err err = {0};
    const atomic_bool cancelled = false;
    buf_reset(&answer);
    if (filter.strangers)
        usleep(30000); /* a child of this same tick counts as started after the rows were taken */
    struct process_list *writer = process_list_open(&err);
    assert_non_null(writer);
    assert_int_equal(process_rows_take(&rows, fixture.table), 0);
    assert_int_equal(process_list_write(writer, &answer, &rows, &filter, &cancelled, &err), 0);
    process_rows_free(&rows);
    process_list_close(writer);
    return text();
}

/* The element whose "pid" is that; NULL where there is none. Good until the next call. */
static const char *element(const char *all, pid_t pid)
{
    static char found[64 << 10];
    char key[32];
    snprintf(key, sizeof(key), "\"pid\":%d,", (int)pid);
    const char *at = strstr(all, key);
    if (at == NULL)
        return NULL;
    const char *end = strstr(at, ",{\"id\":");
    snprintf(found, sizeof(found), "%.*s", (int)(end != NULL ? end - at : (long)strlen(at)), at);
    return found;
}

static void shows_managed(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "sleep 100");
    spec.tag = "mine \"x\"";
    spec.kind = PROCESS_PROCESS;
    struct process *first = start(&fixture, &spec);
    char *argv[] = {"sh", "-c", "exit 3", NULL};
    spec = spec_of(&fixture, NULL);
    spec.argv = argv;
    spec.cwd = "/t\xff";
    struct process *second = start(&fixture, &spec);
    spec = spec_of(&fixture, "sleep 101");
    spec.kind = PROCESS_HELPER;
    struct process *helper = start(&fixture, &spec);
    run_to_end(&fixture, second);

    const char *all = list((struct process_filter){.running = true, .exited = true});
    char expected[256];
    snprintf(expected, sizeof(expected),
             "[{\"id\":\"%s\",\"pid\":%d,\"kind\":\"process\",\"tag\":\"mine \\\"x\\\"\",\"command\":\"sleep "
             "100\",\"argv\":null,\"cwd\":\"/tmp\",\"user\":",
             process_id(first), (int)process_pid(first));
    assert_memory_equal(all, expected, strlen(expected));
    snprintf(expected, sizeof(expected), ",\"state\":\"running\",\"ppid\":%d,\"cpu_percent\":", (int)getpid());
    assert_non_null(strstr(element(all, process_pid(first)), expected));
    assert_non_null(strstr(element(all, process_pid(first)),
                           ",\"exit_code\":null,\"signal\":null,\"timed_out\":false,\"started_at\":\"2"));
    const char *ended = element(all, process_pid(second));
    assert_non_null(strstr(ended,
                           "\"kind\":\"shell\",\"tag\":null,\"command\":\"sh -c exit 3\",\"argv\":[\"sh\",\"-c\","
                           "\"exit 3\"],\"cwd\":\"/t\xef\xbf\xbd\",\"cwd_base64\":\"L3T/\",\"user\":"));
    assert_non_null(strstr(ended, ",\"state\":\"exited\",\"ppid\":null,\"cpu_percent\":null,\"rss_bytes\":null,"
                                  "\"exit_code\":3,\"signal\":null,\"timed_out\":false,"));
    assert_null(element(all, process_pid(helper)));

    all = list((struct process_filter){.exited = true});
    assert_null(element(all, process_pid(first)));
    assert_non_null(element(all, process_pid(second)));
    all = list((struct process_filter){.running = true});
    assert_non_null(element(all, process_pid(first)));
    assert_null(element(all, process_pid(second)));
    all = list((struct process_filter){.running = true, .strangers = true, .parent = getpid()});
    assert_int_equal(strncmp(all, "[{\"id\":\"p-", 10), 0);
    assert_non_null(strstr(element(all, process_pid(helper)), "\"kind\":null"));
    all = list((struct process_filter){0});
    assert_string_equal(all, "[]");
    process_unref(first);
    process_unref(second);
    process_unref(helper);
}

/* Rows hold what they show, whatever becomes of the table. */
static void rows_outlive_the_table(void **state)
{
    (void)state;
    struct process_spec spec = spec_of(&fixture, "sleep 100");
    struct process *process = start(&fixture, &spec);
    struct process_rows rows;
    process_unref(process);
    assert_int_equal(process_rows_take(&rows, fixture.table), 0);
    process_table_free(fixture.table);
    turn_for_ms(&fixture, 50); /* the end of what was killed concerns nobody */
    assert_int_equal(rows.count, 1);
    assert_memory_equal(rows.rows[0].info.line.bytes, "sleep 100", 9);
    process_rows_free(&rows);
    struct err err;
    const struct process_limits limits = {.living_max = 512};
    fixture.table = process_table_new(fixture.loop, &limits, environ, &err);
}

static void *write_often(void *ctx)
{
    const struct process_rows *rows = ctx;
    const struct process_filter filter = {.running = true, .exited = true, .strangers = true};
    const atomic_bool cancelled = false;
    struct buf out;
    struct err err;
    buf_init(&out, ANSWER_MAX_BYTES);
    int failed = 0;
    for (int i = 0; i < 20 && failed == 0; i++) {
        struct process_list *writer = process_list_open(&err);
        failed = process_list_write(writer, &out, rows, &filter, &cancelled, &err);
        process_list_close(writer);
        buf_reset(&out);
    }
    buf_deinit(&out);
    return failed == 0 ? NULL : ctx;
}

/* For the thread sanitizer: entries end and are dropped while a thread writes what was copied of them. */
static void threads_may_write(void **state)
{
    (void)state;
    struct process_rows rows;
    struct process *processes[8];
    pthread_t thread;
    void *failed;
    for (int i = 0; i < 8; i++) {
        struct process_spec spec = spec_of(&fixture, "echo x; sleep 0.05; exit 3");
        spec.kind = i < 4 ? PROCESS_SHELL : PROCESS_CODE; /* what is no longer listed, too */
        processes[i] = start(&fixture, &spec);
    }
    assert_int_equal(process_rows_take(&rows, fixture.table), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_often, &rows), 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(run_to_end(&fixture, processes[i]).exit_code, 3);
        process_unref(processes[i]);
    }
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    process_rows_free(&rows);
}

/* A child that the table does not know, with a name of its own; forked with its ready pipe closed. */
static pid_t fork_named(const char *name, bool leave_zombie)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        if (chdir("/usr") != 0 || (leave_zombie && fork() == 0))
            _exit(0);
        siginfo_t info;
        if (leave_zombie)
            waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static pid_t parent_of_element(const char *text, pid_t pid)
{
    const char *ppid = strstr(element(text, pid), "\"ppid\":");
    return ppid != NULL ? atoi(ppid + strlen("\"ppid\":")) : -1;
}

static void names_may_be_odd(void **state)
{
    (void)state;
    static const char *const names[] = {"a b", ") R 1 (", "((", "x\ny", "\xff\xfe", "0 (0) S 1"};
    pid_t pids[6];
    for (int i = 0; i < 6; i++)
        pids[i] = fork_named(names[i], false);
    const char *all = list((struct process_filter){.running = true, .strangers = true});
    for (int i = 0; i < 6; i++) {
        assert_int_equal(parent_of_element(all, pids[i]), getpid());
        assert_non_null(strstr(element(all, pids[i]), "\"cwd\":\"/usr\""));
        assert_non_null(strstr(element(all, pids[i]), "\"exit_code\":null,\"signal\":null"));
    }
    assert_int_equal(parent_of_element(all, getpid()), getppid());
    for (int i = 0; i < 6; i++)
        end_child(pids[i]);
    all = list((struct process_filter){.running = true, .strangers = true});
    for (int i = 0; i < 6; i++)
        assert_null(element(all, pids[i]));
}

static pid_t child_of(pid_t parent)
{
    int proc_fd = proc_open();
    pid_t *pids, found = 0;
    size_t count;
    struct proc_stat stat;
    assert_int_equal(proc_pids(proc_fd, &pids, &count), 0);
    for (size_t i = 0; i < count; i++)
        if (proc_stat_read(proc_fd, pids[i], &stat) == 0 && stat.parent == parent)
            found = pids[i];
    free(pids);
    close(proc_fd);
    return found;
}

static void zombies_have_exited(void **state)
{
    (void)state;
    pid_t parent = fork_named("un)dead \xff", true), zombie = child_of(parent);
    assert_true(zombie > 0);
    const char *found = element(list((struct process_filter){.exited = true, .strangers = true}), zombie);
    assert_non_null(found);
    assert_non_null(strstr(found,
                           "\"kind\":null,\"tag\":null,\"command\":\"[un)dead \xef\xbf\xbd] <defunct>\",\"argv\":[],"
                           "\"user\":"));
    assert_non_null(strstr(found, "\"state\":\"exited\",\"ppid\":null,\"cpu_percent\":null,\"rss_bytes\":null,"
                                  "\"exit_code\":null,\"signal\":null"));
    assert_null(element(list((struct process_filter){.running = true, .strangers = true}), zombie));
    assert_string_equal(list((struct process_filter){.running = true, .strangers = true, .parent = parent}), "[]");
    end_child(parent);
}

static void looks_at_what_has_no_words(void **state)
{
    (void)state;
    static struct process_look look;
    struct process_clock clock;
    struct process_info info;
    process_clock_read(&clock);
    look.stat = (struct proc_stat){.pid = 2, .state = 'S', .start_ticks = clock.now_ticks - 10 * clock.hertz};
    look.stat.user_ticks = look.stat.system_ticks = clock.hertz; /* two seconds of ten */
    strcpy(look.stat.name, "kthreadd");
    process_look_info(&look, &clock, &info);
    assert_string_equal(shown(&info.line), "\"command\":\"[kthreadd]\",\"argv\":[]");
    assert_int_equal(info.cpu_tenths, 200);
    assert_int_equal(info.exit.duration_ms, 10000);
    look.stat.start_ticks = clock.now_ticks; /* started just now */
    process_look_info(&look, &clock, &info);
    assert_int_equal(info.cpu_tenths, 0);
    int proc_fd = proc_open();
    assert_int_equal(process_look_at(&look, proc_fd, 0x7fffffff), -1);
    assert_int_equal(process_look_at(&look, proc_fd, getpid()), 0);
    close(proc_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(command_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_what_was_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cuts_at_8_kib, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shows_managed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_outlive_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_may_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_may_be_odd, set_up, tear_down),
        cmocka_unit_test_setup_teardown(zombies_have_exited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(looks_at_what_has_no_words, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
