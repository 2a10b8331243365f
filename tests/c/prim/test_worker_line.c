/* prim/worker_line: what is a message of a worker and what is none, and what its parts are. */
#include "prim/worker_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* From memory that ends with the line: a read past it is seen. */
static int parse(const char *text, char **copy, struct worker_line *out)
{
    size_t len = strlen(text);
    struct err err = {0};
    *copy = malloc(len > 0 ? len : 1);
    memcpy(*copy, text, len);
    int failed = worker_line_parse(*copy, len, out, &err);
    if (failed != 0)
        assert_int_equal(err.code, ERR_INVALID_JSON);
    return failed;
}

static void expect(const char *text, int kind, uint64_t id, const char *body)
{
    char *copy;
    struct worker_line line;
    if (parse(text, &copy, &line) != 0)
        fail_msg("refused: %s", text);
    assert_int_equal(line.kind, kind);
    assert_int_equal(line.id, id);
    assert_int_equal(line.body_len, strlen(body));
    assert_memory_equal(line.body, body, line.body_len);
    free(copy);
}

static void cuts_answers(void **state)
{
    (void)state;
    expect("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}", WORKER_LINE_RESULT, 7, "null");
    expect("{\"id\":1,\"result\":-1.5e3}", WORKER_LINE_RESULT, 1, "-1.5e3");
    expect("{\"result\":[1,{\"a\":\"}]\\\"\"},[]],\"id\":9223372036854775807}", WORKER_LINE_RESULT, INT64_MAX,
           "[1,{\"a\":\"}]\\\"\"},[]]");
    expect(" { \"id\" :\t2 , \"result\" : \"\\\\\" } \r", WORKER_LINE_RESULT, 2, "\"\\\\\"");
    expect("{\"id\":3,\"result\":{\"id\":4,\"error\":{}}}", WORKER_LINE_RESULT, 3, "{\"id\":4,\"error\":{}}");
    expect("{\"id\":3,\"error\":{\"code\":-32000}}", WORKER_LINE_ERROR, 3, "{\"code\":-32000}");
    expect("{\"x\":{\"result\":1},\"\\u0069d\":9,\"id\":3,\"result\":true,\"x\":2}", WORKER_LINE_RESULT, 3, "true");
}

static void cuts_notices(void **state)
{
    (void)state;
    struct worker_line line;
    char *copy;
    expect("{\"method\":\"result\",\"params\":{\"id\":5,\"data\":{}}}", WORKER_LINE_NOTICE, 5,
           "{\"id\":5,\"data\":{}}");
    assert_int_equal(parse("{\"params\":{\"data\":{\"id\":9},\"id\":5},\"method\":\"a b\"}", &copy, &line), 0);
    assert_int_equal(line.id, 5);
    assert_int_equal(line.method_len, 3);
    assert_memory_equal(line.method, "a b", 3);
    free(copy);
}

static void refuses_all_else(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "x",
        "1",
        "null",
        "[]",
        "\"{}\"",
        "{}",
        "{\"id\":1}",
        "{\"result\":1}",
        "{\"id\":1,\"result\":1",
        "{\"id\":1,\"result\":1}}",
        "{\"id\":1,\"result\":1} x",
        "{\"id\":1,\"result\":1}{\"id\":2,\"result\":1}",
        "{\"id\":0,\"result\":1}",
        "{\"id\":-1,\"result\":1}",
        "{\"id\":1.0,\"result\":1}",
        "{\"id\":1e0,\"result\":1}",
        "{\"id\":\"1\",\"result\":1}",
        "{\"id\":null,\"error\":{}}",
        "{\"id\":9223372036854775808,\"result\":1}",
        "{\"id\":99999999999999999999,\"result\":1}",
        "{\"id\":1,\"id\":2,\"result\":1}",
        "{\"id\":1,\"result\":1,\"result\":2}",
        "{\"id\":1,\"result\":1,\"error\":{}}",
        "{\"id\":1,\"error\":\"no object\"}",
        "{\"id\":1,\"error\":null}",
        "{\"id\":1,\"method\":\"execute\",\"params\":{\"id\":1}}",
        "{\"method\":\"result\"}",
        "{\"method\":\"result\",\"params\":[1]}",
        "{\"method\":\"result\",\"params\":{}}",
        "{\"method\":\"result\",\"params\":{\"id\":\"1\"}}",
        "{\"method\":\"result\",\"params\":{\"id\":1,\"id\":1}}",
        "{\"method\":\"re\\u0073ult\",\"params\":{\"id\":1}}",
        "{\"method\":1,\"params\":{\"id\":1}}",
        "{\"method\":\"result\",\"result\":1,\"params\":{\"id\":1}}",
        "{\"id\":1,\"result\":\"\xff\"}",
        "{\"id\":1,\"result\":NaN}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct worker_line line;
        char *copy;
        if (parse(bad[i], &copy, &line) == 0)
            fail_msg("taken: %s", bad[i]);
        free(copy);
    }
    struct err err;
    struct worker_line line;
    assert_int_equal(worker_line_parse("{\"id\":1,\"result\":\"\0\"}", 19, &line, &err), -1);
}

static void writes_lines(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 200);
    assert_int_equal(worker_line_call(&out, 12, "execute", "{\n\"a\":\r\n\"\\n\"}", 13), 0);
    assert_int_equal(worker_line_cancel(&out, 12), 0);
    static const char expected[] =
        "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"execute\",\"params\":{ \"a\":\r \"\\n\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{\"id\":12}}\n";
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.len);
    size_t before = out.len;
    char large[128];
    memset(large, '1', sizeof(large));
    assert_int_equal(worker_line_call(&out, 13, "execute", large, sizeof(large)), -1);
    assert_int_equal(out.len, before);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_answers),
        cmocka_unit_test(cuts_notices),
        cmocka_unit_test(refuses_all_else),
        cmocka_unit_test(writes_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
