/* Log lines as they reach stderr: form, levels, secrets, and that nothing waits. */
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs fn with stderr in a file and answers what was written. */
static char *caught(void (*fn)(void))
{
    static char text[1024 * 1024];
    char path[] = "/tmp/test-log-XXXXXX";
    int fd = mkstemp(path), saved = dup(STDERR_FILENO);
    assert_true(fd >= 0 && saved >= 0);
    unlink(path);
    fcntl(fd, F_SETFL, O_APPEND);
    dup2(fd, STDERR_FILENO);
    fn();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t len = pread(fd, text, sizeof text - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    close(fd);
    return text;
}

static void write_one(void)
{
    struct log_context who = {"req-1", "core.health"};
    log_write(LOG_LEVEL_WARN, "http", &who, "a \"b\"\n%s\xFF", "c");
}

static void test_json_line(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_INFO, true);
    char *line = caught(write_one);
    int year, month, day, hour, minute, second, ms, used = 0;
    assert_int_equal(sscanf(line, "{\"ts\":\"%4d-%2d-%2dT%2d:%2d:%2d.%3dZ\"%n", &year, &month, &day, &hour, &minute,
                            &second, &ms, &used),
                     7);
    assert_string_equal(line + used,
                        ",\"level\":\"warn\",\"area\":\"http\",\"request_id\":\"req-1\",\"route\":\"core.health\","
                        "\"msg\":\"a \\\"b\\\"\\nc\xEF\xBF\xBD\"}\n");
}

static void test_text_line(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_INFO, false);
    char *line = caught(write_one);
    assert_string_equal(strchr(line, 'Z'), "Z warn http req-1 core.health a \\\"b\\\"\n    c\xEF\xBF\xBD\n");
}

static void write_traceback(void)
{
    log_error("lua", "boom\nstack traceback:\n\t[C]: in ?\n\n2026-01-01T00:00:00.000Z error forged\r\n\n");
    log_info("lua", "\n");
}

static void test_text_breaks_lines(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_INFO, false);
    char *lines = caught(write_traceback);
    const char *expected = " error lua boom\n    stack traceback:\n    [C]: in ?\n    \n"
                           "    2026-01-01T00:00:00.000Z error forged\\r\n";
    char *first = strchr(lines, 'Z') + 1;
    assert_memory_equal(first, expected, strlen(expected));
    assert_string_equal(strchr(first + strlen(expected), 'Z'), "Z info lua \n");
}

static void write_levels(void)
{
    log_write(LOG_LEVEL_DEBUG, "x", NULL, "one");
    log_info("x", "two");
    log_warn("x", "three");
    log_error("x", "four");
    log_configure(LOG_LEVEL_OFF, false);
    log_error("x", "five");
}

static void test_levels(void **state)
{
    (void)state;
    enum log_level level = LOG_LEVEL_OFF;
    assert_int_equal(log_level_parse("warn", &level), 0);
    assert_int_equal(level, LOG_LEVEL_WARN);
    assert_int_equal(log_level_parse("loud", &level), -1);
    assert_int_equal(level, LOG_LEVEL_WARN);
    log_configure(LOG_LEVEL_WARN, false);
    assert_false(log_enabled(LOG_LEVEL_INFO));
    assert_true(log_enabled(LOG_LEVEL_WARN));
    assert_false(log_enabled(LOG_LEVEL_OFF));
    char *lines = caught(write_levels);
    assert_null(strstr(lines, "one"));
    assert_null(strstr(lines, "two"));
    assert_non_null(strstr(lines, "three"));
    assert_non_null(strstr(lines, "four"));
    assert_null(strstr(lines, "five"));
}

static void write_secrets(void)
{
    struct log_context who = {"hunter2x", "r"};
    static char longer[10000];
    memset(longer, 'y', 4090);
    strcpy(longer + 4090, "hunter2x and more");
    log_info("x", "token=hunter2x, hunter2xhunter2x, abc, quo\"te");
    log_write(LOG_LEVEL_INFO, "x", &who, "m");
    log_info("x", "%s", longer);
}

static void test_secrets_are_replaced(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_INFO, true);
    log_hide("hunter2x");
    log_hide("quo\"te");
    log_hide("abc"); /* too short */
    char *lines = caught(write_secrets);
    assert_non_null(strstr(lines, "\"token=***, ******, abc, ***\""));
    assert_non_null(strstr(lines, "\"request_id\":\"***\""));
    assert_non_null(strstr(lines, "yyy*** an"));
    assert_null(strstr(lines, "hunt"));
    log_hide(NULL);
    assert_non_null(strstr(caught(write_secrets), "hunter2x"));
}

static void *write_many(void *arg)
{
    for (int i = 0; i < 500; i++)
        log_info("thread", "%s-%d", (char *)arg, i);
    return NULL;
}

static void write_from_threads(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, write_many, (void *)(i == 0 ? "aaaa" : i == 1 ? "bbbb" : "cccc"));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void test_lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_INFO, true);
    log_hide("aaaa-1");
    char *line = caught(write_from_threads);
    int count = 0;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1, count++) {
        assert_memory_equal(line, "{\"ts\":\"", 7);
        assert_memory_equal(end - 2, "\"}", 2);
        assert_null(memchr(line + 1, '{', (size_t)(end - line - 1)));
    }
    assert_int_equal(count, 1500);
    log_hide(NULL);
}

/* Would hang for ever if a write waited. */
static void test_an_unread_pipe_loses_lines_and_says_so(void **state)
{
    (void)state;
    static char text[256 * 1024];
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    for (int i = 0; i < 5000; i++)
        log_info("x", "line %d", i);
    ssize_t len = read(ends[0], text, sizeof text - 1);
    assert_true(len > 4096);
    text[len] = '\0';
    assert_non_null(strstr(text, "line 0\"}\n"));
    log_info("x", "again");
    len = read(ends[0], text, sizeof text - 1);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    assert_true(len > 0);
    text[len] = '\0';
    unsigned long lost = 0;
    const char *note = strstr(text, "\"msg\":\"");
    assert_non_null(note);
    assert_int_equal(sscanf(note, "\"msg\":\"%lu lines were lost", &lost), 1);
    assert_in_range(lost, 1, 4999);
    assert_non_null(strstr(note, "\"msg\":\"again\"}\n"));
}

static int mask_x(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (buf_append_text(out, text[i] == 'x' ? "***" : (char[]){text[i], '\0'}) != 0)
            return -1;
    return 0;
}

static int mask_nothing(struct buf *out, const char *text, size_t len)
{
    (void)out;
    (void)text;
    (void)len;
    return -1;
}

static void write_marked(void)
{
    char text[8 * 1024];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    text[0] = 'x';
    log_info("x", "%s", text);
}

static void test_messages_are_masked(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_INFO, true);
    log_mask_with(mask_x);
    assert_non_null(strstr(caught(write_marked), "\"area\":\"x\",\"msg\":\"***aaa"));
    log_mask_with(mask_nothing); /* what cannot be masked is not written */
    assert_string_equal(caught(write_marked), "");
    log_mask_with(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_line),
        cmocka_unit_test(test_text_line),
        cmocka_unit_test(test_text_breaks_lines),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_secrets_are_replaced),
        cmocka_unit_test(test_messages_are_masked),
        cmocka_unit_test(test_lines_of_threads_do_not_mix),
        cmocka_unit_test(test_an_unread_pipe_loses_lines_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
