/* script/raw_json: text that goes into answers as it is, and lives no longer than its request. */
#include "script_fixture.h"

#include "script/bindings.h"

/* raw.make(text): the text is taken for JSON. */
static int make(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    task_check(L);
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    lua_push_raw_json(L, copy, len);
    return 1;
}

static int open_raw(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, make);
    lua_setfield(L, -2, "make");
    return 1;
}

static const struct script_binding bindings[] = {{"abx.json", bind_json_open},
                                                 {"abx.time", bind_time_open},
                                                 {"abx.text", bind_text_open},
                                                 {"abx.raw", open_raw},
                                                 {NULL, NULL}};

static struct fixture fixture;

static int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture);
    fixture.options.bindings = bindings;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

#define RAW_ROUTE(body) ROUTE("local raw = require('abx.raw')\n" body)

static void goes_out_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(
        run_handler(&fixture, RAW_ROUTE("return { a = raw.make('\"x\\\\n\"'), b = { raw.make('[1]') } }")),
        "{\"a\":\"x\\n\",\"b\":[[1]]}");
    assert_string_equal(run_handler(&fixture, RAW_ROUTE("return { again = json.encode({ raw.make('\"x\"') }) }")),
                        "{\"again\":\"[\\\"x\\\"]\"}");
    assert_string_equal(run_handler(&fixture, RAW_ROUTE("return reply { json = raw.make('\"x\"') }")), "\"x\"");
}

static void shows_nothing_to_scripts(void **state)
{
    (void)state;
    assert_string_equal(
        run_handler(&fixture, RAW_ROUTE("local r = raw.make('\"x\"')\n"
                                        "return { type(r), getmetatable(r), (pcall(function() return #r end)),"
                                        " (pcall(function() return r.text end)) }")),
        "[\"userdata\",null,false,false]");
}

static void is_void_after_its_request(void **state)
{
    (void)state;
    static const char first[] = "{\"new\":\"x\",\"old\":\"none\"}";
    struct outcome outcome;
    fixture_write(&fixture, "lua/routes/t.lua",
                  "local raw, kept = require('abx.raw')\n"
                  "return {group='core', {method='GET', path='/t', name='t', summary='s', handler=function()\n"
                  "local old = kept kept = raw.make('\"x\"') return { old = old or 'none', new = kept } end}}");
    assert_string_equal(fixture_load(&fixture), "");
    outcome_begin(&fixture, &outcome, "{}");
    assert_true(outcome.responded && outcome.ended);
    assert_int_equal(outcome.response.bytes.len, strlen(first));
    assert_memory_equal(outcome.response.bytes.data, first, strlen(first));
    outcome_end(&outcome);
    outcome_begin(&fixture, &outcome, "{}");
    assert_true(outcome.failed);
    assert_int_equal(outcome.err.code, ERR_INTERNAL);
    outcome_end(&outcome);
}

static void is_collected_before_that_too(void **state)
{
    (void)state;
    assert_string_equal(run_handler(&fixture, RAW_ROUTE("for _ = 1, 100 do raw.make(('x'):rep(1000)) end\n"
                                                        "collectgarbage() return {}")),
                        "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(goes_out_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shows_nothing_to_scripts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_void_after_its_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_collected_before_that_too, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
