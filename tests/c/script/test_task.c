/* Tasks: what handlers get and answer, waiting, streams, deadlines, cancelling, and that nothing is left over. */
#include "script_fixture.h"

#include "base/log.h"
#include "script/bindings.h"
#include "script/vm.h"

static struct fixture fixture;

static int probe_open(lua_State *L);
static const struct script_binding bindings[] = {{"abx.json", bind_json_open},
                                                 {"abx.time", bind_time_open},
                                                 {"abx.text", bind_text_open},
                                                 {"abx.probe", probe_open},
                                                 {NULL, NULL}};

/* A module that keeps things from one request to the next. */
#define KEPT "local t = {} return {get = function(k) return t[k] end, set = function(k, v) t[k] = v end}"

static int setup(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_OFF, false);
    fixture_open(&fixture);
    fixture.options.bindings = bindings;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static void check(const char *routes, const char *expected)
{
    const char *answer = run_handler(&fixture, routes);
    if (strcmp(answer, expected) != 0)
        fail_msg("%s\n  answered %s\n  instead of %s", routes, answer, expected);
}

static void test_answers(void **state)
{
    (void)state;
    check(ROUTE("return {}"), "{}");
    check(ROUTE("return json.array {}"), "[]");
    check(ROUTE("return {1, 2.5, 'x\\0\"', true, json.null}"), "[1,2.5,\"x\\u0000\\\"\",true,null]");
    check(ROUTE("return {a = {b = {json.array{}, {}}}}"), "{\"a\":{\"b\":[[],{}]}}");
    check(ROUTE("return {b = 1, a = 2, aa = 3, [''] = 4}"), "{\"\":4,\"a\":2,\"aa\":3,\"b\":1}");
    check(ROUTE("local t = {} for i = 1, 60 do t['k' .. i] = i end local back = json.decode(json.encode(t)) "
                "for i = 1, 60 do assert(back['k' .. i] == i) end return {ok = true}"),
          "{\"ok\":true}");
    check(ROUTE("return {math.mininteger, 1e300, 0/0, 1/0}"), "[-9223372036854775808,1e+300,null,null]");
    check(ROUTE("return reply{status = 201, json = {1}}"), "[1]");
    check(ROUTE("return reply{bytes = 'a\\0b'}"), "a");
    check(ROUTE("return reply{json = 'text'}"), "\"text\"");
    check(ROUTE("return {json.decode('[1,{\"a\":[]},null]')[2]}"), "[{\"a\":[]}]");
    check(ROUTE("local v, code = json.decode('[1') return {v == nil, code}"), "[true,\"invalid_json\"]");
    check(ROUTE("return {json.encode(json.array{1, {}})}"), "[\"[1,{}]\"]");
    check(ROUTE("return {text.base64_encode('a\\0b'), text.base64_decode('YQBi') == 'a\\0b', "
                "select(2, text.base64_decode('YQB')), text.utf8_scrub('a\\xff')}"),
          "[\"YQBi\",true,\"invalid_request\",\"a\xef\xbf\xbd\",true]");
}

static void test_request(void **state)
{
    (void)state;
    check(ROUTE("return {req.method, req.path, req.id, req.accepts_sse, req.body == nil}"),
          "[\"GET\",\"/t\",\"rq-1\",true,true]");
    check(ROUTE("return {req.headers['x-two'], req.headers.accept, req.headers == req.headers}"),
          "[\"1, 2\",\"text/event-stream\",true]");
    check(
        ROUTE(
            "return {req.params.n, req.params.list, req.params.big, req.params.none == nil, req.params == req.params}"),
        "[1,[],9007199254740993,true,true]");
    check(ROUTE("local kept = require('kept') local old = kept.get(1) kept.set(1, req) "
                "return {old == nil or not pcall(function() return old.params end)}"),
          "internal_error: the handler failed; the log has the details under this request id");
}

static void test_coded_failures(void **state)
{
    (void)state;
    check(ROUTE("fail('file_not_found', 'no such file', 'path')"), "file_not_found: no such file");
    check(ROUTE("return {try(1, 2, 3)}"), "[1,2,3]");
    check(ROUTE("try(nil, 'busy', 'later')"), "busy: later");
    check(ROUTE("try(json.decode('{'))"), "invalid_json: unexpected end at byte 1");
    check(ROUTE("local ok, e = pcall(fail, 'busy', 'later', 'f') return {ok, e.code, e.message, e.field, tostring(e)}"),
          "[false,\"busy\",\"later\",\"f\",\"busy: later\"]");
    check(ROUTE("local ok, e = pcall(fail, 'busy', 'later') error(e)"), "busy: later");
    check(ROUTE("coroutine.wrap(function() fail('busy', 'later') end)()"), "busy: later");
}

static void test_waiting(void **state)
{
    (void)state;
    check(ROUTE("local a = time.now_ms() time.sleep(30) time.sleep(0) return {time.now_ms() - a >= 30}"), "[true]");
    check(ROUTE("local ok = pcall(time.sleep, 1) return {ok}"), "[true]");
    check(ROUTE("for i = 1, 300 do time.sleep(0) end return {1}"), "[1]");
    check("local time = require('abx.time') return {group='core', {method='GET', path='/t', name='t', summary='s', "
          "deadline_ms=40,"
          "handler=function() for i = 1, 1000 do pcall(time.sleep, 10) end end}}",
          "handler_timeout: the handler was ended: it waited beyond its deadline of 40 ms");
}

/* ---- what a binding may do ---- */

static int owned_now, owned_released;
static char release_order[16];

struct thing {
    struct task_owned owned;
    char name;
};

static void on_task_end(struct task_owned *owned)
{
    struct thing *thing = (struct thing *)owned;
    release_order[owned_released++] = thing->name;
    owned_now--;
}

static int thing_close(lua_State *L)
{
    struct thing *thing = lua_touserdata(L, 1);
    if (list_empty(&thing->owned.node))
        return 0;
    task_disown(&thing->owned);
    owned_now--;
    return 0;
}

/* probe.thing(name) -> something that the task owns */
static int probe_thing(lua_State *L)
{
    struct thing *thing = lua_newuserdatauv(L, sizeof(*thing), 0);
    *thing = (struct thing){.name = luaL_checkstring(L, 1)[0]};
    static const luaL_Reg meta[] = {{"__close", thing_close}, {"__gc", thing_close}, {NULL, NULL}};
    if (luaL_newmetatable(L, "thing"))
        luaL_setfuncs(L, meta, 0);
    lua_setmetatable(L, -2);
    task_own(task_check(L), &thing->owned, on_task_end);
    owned_now++;
    return 1;
}

struct pause_op {
    struct task *task;
    struct loop_timer timer;
};

static void pause_stop(void *op)
{
    loop_timer_stop(&((struct pause_op *)op)->timer);
}

static void on_pause_over(void *ctx)
{
    task_resume(((struct pause_op *)ctx)->task);
}

static int pause_done(lua_State *L, int status, lua_KContext context)
{
    (void)L, (void)status, (void)context;
    return 0;
}

/* probe.pause(ms): a wait that its caller bounds, as run:wait is */
static int probe_pause(lua_State *L)
{
    struct pause_op *op = task_op_new(L, sizeof(*op), true, pause_stop);
    op->task = task_check(L);
    loop_timer_start(script_loop(L), &op->timer, (uint64_t)luaL_checkinteger(L, 1), on_pause_over, op);
    return lua_yieldk(L, 0, (lua_KContext)op, pause_done);
}

static int probe_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"thing", probe_thing}, {"pause", probe_pause}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}

#define PROBE(deadline_ms, body)                                                                                       \
    "local probe, time = require('abx.probe'), require('abx.time')\n"                                                  \
    "local function compute(s) local t = os.clock() while os.clock() - t < s do end end\n"                             \
    "return {group='core', {method='GET', path='/t', name='t', summary='s', deadline_ms=" #deadline_ms ", "            \
    "handler=function(req)\n" body "\nend}}"

/* Waits that the request bounds do not count, what lies between them does. */
static void test_deadline_between_waits(void **state)
{
    (void)state;
    static const char spent[] = "handler_timeout: the handler was ended: apart from its bounded waits it took longer "
                                "than its deadline of 100 ms";
    static const char waited[] = "handler_timeout: the handler was ended: it waited beyond its deadline of 100 ms";
    check(PROBE(100, "probe.pause(200) return {1}"), "[1]");
    check(PROBE(100, "for i = 1, 10 do compute(0.02) probe.pause(1) end return {1}"), spent);
    check(PROBE(100, "pcall(function() while true do compute(0.02) probe.pause(0) end end) return {1}"), spent);
    /* On a busy machine the sleep may take all that is left. */
    const char *answer = run_handler(&fixture, PROBE(100, "compute(0.06) time.sleep(20) compute(0.06) probe.pause(1) "
                                                          "return {1}"));
    assert_true(strcmp(answer, spent) == 0 || strcmp(answer, waited) == 0);
    uint64_t before = loop_clock_ns();
    check(PROBE(100, "compute(0.05) time.sleep(60000)"), waited);
    uint64_t ms = (loop_clock_ns() - before) / 1000000;
    assert_in_range(ms, 95, 30000);
}

/* Nothing outlives its request, whatever the handler forgot; what it closed itself is not released twice. */
static void test_owned(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "local a, b = probe.thing('a'), probe.thing('b') return {}",
        "local a, b = probe.thing('a'), probe.thing('b') error('x')",
        "local a, b = probe.thing('a'), probe.thing('b') time.sleep(1) fail('busy', 'x')",
        "local a, b = probe.thing('a'), probe.thing('b') while true do end",
        "local a, b = probe.thing('a'), probe.thing('b') time.sleep(10000)",
        "local x <close> = setmetatable({}, {__close = function() probe.thing('b') end}) probe.thing('a') return {}",
    };
    char routes[2048];
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        owned_now = owned_released = 0;
        snprintf(routes, sizeof(routes), PROBE(200, "%s"), bodies[i]);
        run_handler(&fixture, routes);
        assert_int_equal(owned_now, 0);
        assert_int_equal(owned_released, 2);
        assert_memory_equal(release_order, "ba", 2); /* the newest first */
    }
    owned_released = 0;
    check(PROBE(200, "do local a <close> = probe.thing('a') end return {1}"), "[1]");
    check(PROBE(200, "local s = ('x'):rep(10000) for i = 1, 3000 do probe.thing('a') local t = s .. i end return {1}"),
          "[1]");
    assert_int_equal(owned_now, 0);
    assert_true(owned_released < 3000); /* the collector had most of them */
}

/* A request that keeps memory in a module costs the others at last: the log says why. */
static void test_kept_memory(void **state)
{
    (void)state;
    struct outcome outcome;
    size_t failed = 0;
    fixture_write(&fixture, "lua/kept.lua", KEPT);
    fixture_write(&fixture, "lua/routes/t.lua",
                  ROUTE("local kept = require('kept') local n = (kept.get('n') or 0) + 1\n"
                        "kept.set(n, ('x'):rep(7e6)) kept.set('n', n) return {}"));
    assert_string_equal(fixture_load(&fixture), "");
    struct vm *vm = generation_vm(fixture.generation);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(vm->told_kept, failed > 0);
        outcome_begin(&fixture, &outcome, "{}");
        assert_true(outcome.ended);
        failed += outcome.failed;
        outcome_end(&outcome);
    }
    assert_in_range(failed, 1, 6);
    assert_true(vm->left_bytes > 40 << 20);
}

/* ---- streams ---- */

static void begin(const char *routes, struct outcome *outcome)
{
    fixture_write(&fixture, "lua/routes/t.lua", routes);
    assert_string_equal(fixture_load(&fixture), "");
    outcome_begin(&fixture, outcome, "{}");
}

static char taken[1 << 20];
static size_t taken_len;

static void take_all(struct sink *sink)
{
    size_t len;
    const char *bytes;
    while ((bytes = sink_peek(sink, &len)) != NULL) {
        if (taken_len + len < sizeof(taken)) {
            memcpy(taken + taken_len, bytes, len);
            taken[taken_len + len] = '\0';
        }
        taken_len += len;
        sink_take(sink, len);
    }
}

static void run_stream(struct outcome *outcome, struct sink *sink)
{
    taken_len = 0;
    taken[0] = '\0';
    for (int i = 0; i < 10000 && (sink->state == SINK_OPEN || taken_len == 0); i++) {
        take_all(sink);
        if (!outcome->ended)
            fixture_turn(&fixture);
        else
            break;
    }
    take_all(sink);
}

static void test_stream(void **state)
{
    (void)state;
    struct outcome outcome;
    begin(
        ROUTE("return reply{status = 206, headers = {['Content-Type'] = 'text/plain'}, stream = function(out)\n"
              "for i = 1, 40 do assert(out:write(('x'):rep(100000))) end time.sleep(1) assert(out:write(req.id)) end}"),
        &outcome);
    assert_true(outcome.responded);
    assert_false(outcome.ended);
    assert_int_equal(outcome.response.status, 206);
    assert_int_equal(outcome.response.kind, RESPONSE_STREAM);
    assert_string_equal(response_header_find(&outcome.response, "content-type"), "text/plain");
    struct sink *sink = outcome.response.sink;
    size_t first;
    sink_peek(sink, &first);
    assert_true(first >= SINK_HIGH_WATER_BYTES && first < 2 * SINK_HIGH_WATER_BYTES); /* it waits */
    run_stream(&outcome, sink);
    assert_true(outcome.ended);
    assert_int_equal(sink->state, SINK_DONE);
    assert_int_equal(taken_len, 4000004);
    outcome_end(&outcome);
}

static void test_events(void **state)
{
    (void)state;
    struct outcome outcome;
    begin(ROUTE("return reply{headers = {['content-type'] = 'text/event-stream'}, stream = function(out)\n"
                "out:event('start', {id = 1}, '0.0') out:event('end') fail('busy', 'no \"more\"', 'x') end}"),
          &outcome);
    assert_string_equal(response_header_find(&outcome.response, "Cache-Control"), "no-cache");
    struct sink *sink = outcome.response.sink;
    run_stream(&outcome, sink);
    assert_int_equal(sink->state, SINK_ABORTED);
    assert_string_equal(taken, "id: 0.0\nevent: start\ndata: {\"id\":1}\n\nevent: end\ndata: {}\n\n"
                               "event: error\ndata: {\"status\":409,\"code\":\"busy\",\"detail\":\"no \\\"more\\\"\","
                               "\"field\":\"x\",\"request_id\":\"rq-1\"}\n\n");
    assert_false(outcome.failed); /* the answer was out */
    assert_true(outcome.ended);
    outcome_end(&outcome);
}

#define LEAVES(body)                                                                                                   \
    ROUTE("return reply{stream = function(out)\n"                                                                      \
          "local x <close> = setmetatable({}, {__close = function() require('kept').set(1, 'closed') end})\n" body     \
          "\nend}")

/* What the stream wrote into the module, seen by the next request of the same generation. */
static void assert_kept(const char *expected)
{
    struct outcome outcome;
    outcome_begin(&fixture, &outcome, "{}");
    assert_true(outcome.responded);
    size_t len;
    const char *bytes = sink_peek(outcome.response.sink, &len);
    assert_non_null(bytes);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(bytes, expected, len);
    sink_close(outcome.response.sink);
    assert_true(outcome.ended);
    outcome_end(&outcome);
}

/* A stream is cut when it has computed for its deadline, however long its client takes; what it owns lives until then.
 */
static void test_stream_deadline(void **state)
{
    (void)state;
    struct outcome outcome;
    owned_now = owned_released = 0;
    begin(PROBE(100, "local a = probe.thing('a') return reply{stream = function(out)\n"
                     "while a and out:write(('x'):rep(300000)) do compute(0.01) end end}"),
          &outcome);
    assert_true(outcome.responded);
    assert_int_equal(owned_now, 1);
    struct sink *sink = outcome.response.sink;
    for (int i = 0; i < 300; i++) /* the wait for the client does not count */
        fixture_turn(&fixture);
    assert_int_equal(sink->state, SINK_OPEN);
    run_stream(&outcome, sink);
    assert_true(outcome.ended);
    assert_int_equal(sink->state, SINK_ABORTED);
    assert_int_equal(owned_released, 1);
    outcome_end(&outcome);
}

static void test_client_leaves(void **state)
{
    (void)state;
    struct outcome outcome;
    fixture_write(&fixture, "lua/kept.lua", KEPT);
    /* in a write: it answers false; in another wait: the stream is over, <close> variables run */
    static const char *const bodies[] = {
        LEAVES("local get, set = require('kept').get, require('kept').set\n"
               "if get(1) then out:write(get(1) .. (get(2) or '')) time.sleep(1000) end\n"
               "while out:write(('x'):rep(100000)) do end set(2, '+false') set(2, get(2) .. tostring(out:write('')))"),
        LEAVES(
            "local get = require('kept').get if get(1) then out:write(get(1) .. '+falsefalse') time.sleep(1000) end\n"
            "time.sleep(60000)"),
    };
    for (size_t i = 0; i < 2; i++) {
        begin(bodies[i], &outcome);
        assert_true(outcome.responded);
        assert_false(outcome.ended);
        sink_close(outcome.response.sink);
        assert_true(outcome.ended);
        outcome_end(&outcome);
        assert_kept("closed+falsefalse");
    }
}

static void test_cancel(void **state)
{
    (void)state;
    struct outcome outcome;
    static const char *const bodies[] = {
        ROUTE("local x <close> = setmetatable({}, {__close = function() pcall(time.sleep, 1) while true do end end})\n"
              "time.sleep(60000)"),
        ROUTE("return reply{stream = function(out) while out:write(('x'):rep(100000)) do end end}"),
        ROUTE("return reply{headers = {['Content-Type'] = 'text/event-stream'},"
              "stream = function(out) time.sleep(1000) end}"),
    };
    for (size_t i = 0; i < 3; i++) {
        begin(bodies[i], &outcome);
        assert_false(outcome.ended);
        task_cancel(outcome.task);
        assert_false(outcome.ended);
        if (outcome.response.sink != NULL)
            assert_int_equal(outcome.response.sink->state, SINK_ABORTED);
        assert_int_equal(loop_handles_open(fixture.loop), 0);
        outcome_end(&outcome);
    }
}

/* Requests end in the generation where they began, which goes with the last of them. */
static void test_generations(void **state)
{
    (void)state;
    struct outcome outcome;
    begin(ROUTE("time.sleep(20) return {1}"), &outcome);
    unsigned number = generation_number(fixture.generation);
    fixture_write(&fixture, "lua/routes/t.lua", ROUTE("return {2}"));
    assert_string_equal(fixture_load(&fixture), "");
    assert_int_equal(generation_number(fixture.generation), number + 1);
    while (!outcome.ended)
        fixture_turn(&fixture);
    assert_memory_equal(outcome.response.bytes.data, "[1]", 3);
    outcome_end(&outcome);
}

/* Many requests that each leave garbage, all waiting at the same time: nobody pays for the others. */
static void test_memory(void **state)
{
    (void)state;
    enum { AT_ONCE = 40 };
    static struct outcome outcomes[AT_ONCE];
    fixture_write(&fixture, "lua/routes/t.lua",
                  ROUTE("local t = {} for i = 1, 2000 do t[i] = {('x'):rep(100) .. i} end time.sleep(1)\n"
                        "for i = 1, 50 do time.sleep(0) t = {('x'):rep(50000) .. i} end return {#t}"));
    assert_string_equal(fixture_load(&fixture), "");
    size_t before = generation_lua_bytes(fixture.generation);
    for (size_t i = 0; i < AT_ONCE; i++)
        outcome_begin(&fixture, &outcomes[i], "{}");
    for (size_t i = 0; i < AT_ONCE; i++) {
        while (!outcomes[i].ended)
            fixture_turn(&fixture);
        assert_string_equal(outcomes[i].failed ? outcomes[i].err.text : "", "");
        outcome_end(&outcomes[i]);
    }
    size_t after = generation_lua_bytes(fixture.generation);
    assert_true(after < before + (40 << 20)); /* garbage is left until the collector's next round */
}

/* More at once than coroutines are kept, twice: the second round takes what the first gave back. */
static void test_many(void **state)
{
    (void)state;
    enum { AT_ONCE = 150 };
    static struct outcome outcomes[AT_ONCE];
    fixture_write(&fixture, "lua/routes/t.lua", ROUTE("time.sleep(1) return {req.id}"));
    assert_string_equal(fixture_load(&fixture), "");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < AT_ONCE; i++)
            outcome_begin(&fixture, &outcomes[i], "{}");
        for (size_t i = 0; i < AT_ONCE; i++) {
            while (!outcomes[i].ended)
                fixture_turn(&fixture);
            assert_true(outcomes[i].responded);
            assert_memory_equal(outcomes[i].response.bytes.data, "[\"rq-1\"]", 8);
            outcome_end(&outcomes[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_coded_failures),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_client_leaves),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_deadline_between_waits),
        cmocka_unit_test(test_owned),
        cmocka_unit_test(test_kept_memory),
        cmocka_unit_test(test_stream_deadline),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
