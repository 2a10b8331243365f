/* Parameters, bodies and the lives of requests in the pipeline. */
#include "pipeline_fixture.h"

static void json_bodies(void **state)
{
    (void)state;
    assert_int_equal(call("POST", "/echo", json, "{\"text\":\"a\",\"count\":3}"), 200);
    assert_non_null(strstr(body_text(), "text=a;"));
    assert_non_null(strstr(body_text(), "count=3;"));
    assert_int_equal(call("POST", "/echo", json, "{\"count\":\"x\",\"other\":1}"), 400);
    assert_code("invalid_request");
    assert_non_null(strstr(body_text(), "{\"field\":\"count\""));
    assert_non_null(strstr(body_text(), "{\"field\":\"other\""));
    assert_non_null(strstr(body_text(), "{\"field\":\"text\""));
    assert_int_equal(call("POST", "/echo", json, "{\"text\":"), 400);
    assert_code("invalid_json");
    assert_int_equal(call("POST", "/echo", json, "[]"), 400);
    assert_code("invalid_request");
    assert_int_equal(call("POST", "/echo", json, NULL), 400); /* counts as {} */
    assert_non_null(strstr(body_text(), "\"field\":\"text\""));
    assert_int_equal(call("POST", "/echo", plain, "{\"text\":\"a\"}"), 415);
    assert_code("unsupported_media_type");
    assert_int_equal(call("POST", "/echo?text=a", json, "{\"text\":\"a\"}"), 400);
}

static void queries(void **state)
{
    (void)state;
    assert_int_equal(call("GET", "/echo?text=a+b&count=7", plain, NULL), 200);
    assert_non_null(strstr(body_text(), "text=a b;"));
    assert_non_null(strstr(body_text(), "count=7;"));
    assert_int_equal(call("GET", "/echo?text=a&text=b", plain, NULL), 400);
    assert_non_null(strstr(body_text(), "\"field\":\"text\""));
    assert_int_equal(call("GET", "/echo?text=%ff", plain, NULL), 400);
    assert_int_equal(call("GET", "/echo?text=%zz", plain, NULL), 400);
    assert_int_equal(call("GET", "/echo?text=a&nope=1", plain, NULL), 400);
    assert_non_null(strstr(body_text(), "\"field\":\"nope\""));
    assert_int_equal(call("GET", "/file?path=%ff", plain, NULL), 200);
    assert_int_equal(call("GET", "/file?path=a%00b", plain, NULL), 400);
    assert_code("invalid_path");
    assert_int_equal(call("GET", "/echo?text=a", plain, "thrown away"), 200);
}

static void arguments_may_bear_a_path_parameters_name(void **state)
{
    (void)state;
    assert_int_equal(call("POST", "/run/tidy%2Fup", json, "{\"a\":1,\"name\":\"x\"}"), 200);
    assert_non_null(strstr(body_text(), "name=tidy/up;"));
    assert_non_null(strstr(body_text(), "arguments=a=1;name=x;;"));
    assert_int_equal(call("POST", "/run/a", json, "{\"name\":\"x\"}"), 200);
    assert_non_null(strstr(body_text(), "arguments=name=x;;"));
}

static void limits_of_bodies(void **state)
{
    struct exchange *exchange = begin("POST", "/echo", json);
    char piece[65536];

    (void)state;
    assert_int_equal(exchange_head(exchange, true, (1 << 20) + 1), EXCHANGE_BODY_DISCARD);
    assert_int_equal(got.response.status, 413);
    assert_non_null(strstr(body_text(), "1048576"));
    exchange_free(exchange, true);
    memset(piece, ' ', sizeof(piece));
    exchange = begin("POST", "/echo", json);
    assert_int_equal(exchange_head(exchange, true, -1), EXCHANGE_BODY_PUSH);
    for (int i = 0; i < 16; i++)
        assert_int_equal(exchange_push(exchange, piece, sizeof(piece)), sizeof(piece));
    assert_int_equal(got.count, 0);
    assert_int_equal(exchange_push(exchange, piece, 1), 1);
    assert_int_equal(got.response.status, 413);
    exchange_free(exchange, true);
}

static void large_bodies_are_parsed_on_the_pool(void **state)
{
    size_t len = 600000;
    char *text = malloc(len + 32);
    struct exchange *exchange;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', len);
    strcpy(text + len, "{\"text\":\"late\"}");
    assert_int_equal(call("POST", "/echo", json, text), 200);
    assert_non_null(strstr(body_text(), "text=late;"));
    strcpy(text + len, "{\"text\":7}");
    assert_int_equal(call("POST", "/echo", json, text), 400);
    assert_non_null(strstr(body_text(), "\"field\":\"text\""));
    /* its client leaves meanwhile */
    exchange = begin("POST", "/echo", json);
    exchange_head(exchange, true, -1);
    assert_int_equal(exchange_push(exchange, text, strlen(text)), strlen(text));
    exchange_end(exchange);
    exchange_free(exchange, false);
    while (loop_jobs_running(loop) > 0)
        loop_turn(loop, true);
    assert_int_equal(got.count, 0);
    free(text);
}

static void streamed_bodies_wait_for_their_reader(void **state)
{
    struct exchange *exchange = begin("POST", "/upload?path=x", plain);

    (void)state;
    uploaded_len = 0;
    assert_int_equal(exchange_head(exchange, true, 10), EXCHANGE_BODY_PUSH);
    loop_turn(loop, false);
    assert_int_equal(got.wakes, 1);
    assert_int_equal(exchange_push(exchange, "0123456789", 10), 4);
    assert_int_equal(exchange_push(exchange, "456789", 6), 4);
    assert_int_equal(exchange_push(exchange, "89", 2), 2);
    exchange_end(exchange);
    loop_turn(loop, false);
    assert_int_equal(got.response.status, 201);
    assert_memory_equal(uploaded, "0123456789", 10);
    exchange_free(exchange, true);
    assert_int_equal(call("POST", "/upload?nope=x", plain, "data"), 400);
}

static void who_leaves_is_cancelled(void **state)
{
    struct exchange *exchange = begin("GET", "/wait", plain);
    int cancelled = fake_cancelled;

    (void)state;
    assert_int_equal(exchange_head(exchange, false, 0), EXCHANGE_BODY_PUSH);
    assert_int_equal(pipeline_running(pipeline), 1);
    exchange_free(exchange, false);
    assert_int_equal(fake_cancelled, cancelled + 1);
    assert_int_equal(pipeline_running(pipeline), 0);
    assert_int_equal(got.count, 0);
}

static void too_many_requests(void **state)
{
    struct exchange *first = begin("GET", "/wait", plain), *second;

    (void)state;
    exchange_head(first, false, 0);
    second = begin("GET", "/wait", plain);
    exchange_head(second, false, 0);
    assert_int_equal(call("GET", "/echo?text=a", plain, NULL), 429);
    assert_code("too_many_requests");
    assert_string_equal(header("Retry-After"), "1");
    assert_int_equal(call("GET", "/health", anonymous, NULL), 200);
    exchange_free(first, false);
    assert_int_equal(call("GET", "/echo?text=a", plain, NULL), 200);
    exchange_free(second, false);
}

static void a_generation_lives_as_long_as_its_requests(void **state)
{
    struct generation next = {.references = 1};
    struct exchange *exchange = begin("GET", "/wait", plain);
    int references = generation.references;

    (void)state;
    exchange_head(exchange, false, 0);
    pipeline_use(pipeline, &next);
    assert_int_equal(next.references, 2);
    assert_int_equal(generation.references, references);
    assert_int_equal(call("GET", "/health", plain, NULL), 404);
    fake_reply(waiting, 200, "text/plain", "old");
    assert_int_equal(got.response.status, 200);
    assert_string_equal(body_text(), "old");
    exchange_free(exchange, true);
    assert_int_equal(generation.references, references - 1);
    pipeline_use(pipeline, &generation);
    assert_int_equal(next.references, 1);
}

static void draining_and_cancelling(void **state)
{
    struct exchange *exchange = begin("GET", "/wait", plain);

    (void)state;
    exchange_head(exchange, false, 0);
    pipeline_drain(pipeline);
    assert_true(pipeline_draining(pipeline));
    assert_int_equal(call("GET", "/health", anonymous, NULL), 503);
    assert_string_equal(body_text(), "{\"status\":\"shutting_down\"}");
    assert_int_equal(call("GET", "/echo", plain, NULL), 503);
    assert_code("shutting_down");
    response_deinit(&got.response);
    memset(&got, 0, sizeof(got));
    pipeline_cancel_all(pipeline);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.response.status, 503);
    assert_int_equal(fake_living, 0);
    exchange_free(exchange, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_bodies),
        TEST(queries),
        TEST(arguments_may_bear_a_path_parameters_name),
        TEST(limits_of_bodies),
        TEST(large_bodies_are_parsed_on_the_pool),
        TEST(streamed_bodies_wait_for_their_reader),
        TEST(who_leaves_is_cancelled),
        TEST(too_many_requests),
        TEST(a_generation_lives_as_long_as_its_requests),
        TEST(draining_and_cancelling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
